"""What keys look like: the shapes of well-known ones, and the words that announce one.

Kernels are full of long hexadecimal constants and hashes, so length and entropy alone never make a secret here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LEFT = r"(?<![A-Za-z0-9_])"
_BODY = r"[A-Za-z0-9_\-]"
# A fragment is what remains of a key when its middle is masked by a provider: "sk-ant-...abcd", "sk-ab***yz".
_MASKING = r"(?:\*{3,}|\.{3,}|…|•{2,}|x{4,}|X{4,})"

_LESS_SURE_NAMES = [
    (name, "key") for name in ("auth", "service", "account", "client", "db", "database", "priv")
]
_LESS_SURE_NAMES += [(name, "pass") for name in ("db", "database", "key")]


@dataclass(frozen=True)
class Shape:
    """One way in which a secret shows.

    Attributes
    ----------
    kind : str
        What it is called, such as ``GitHub token``.
    pattern : re.Pattern
        The group ``secret``, or else ``bare``, is the secret; the whole match is, where the pattern has neither. Where
        neither took part there is no secret: so does a pattern pass over at once what it would search again and again.
    triggers : tuple of str
        A text without any of these, in lower case, is not searched: a pattern costs a hundred times as much.
    """

    kind: str
    pattern: re.Pattern[str]
    triggers: tuple[str, ...]


def _shape(kind: str, triggers: str, pattern: str) -> Shape:
    return Shape(kind, re.compile(pattern), tuple(triggers.split()))


SHAPES: tuple[Shape, ...] = (
    _shape(
        "private key",
        "private",
        # Four dashes and spaces are how SSH2's own format writes it.
        r"-{4,5} ?BEGIN (?P<label>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?) ?-{4,5}"
        r"[\s\S]*?(?:-{4,5} ?END (?P=label) ?-{4,5}|\Z)",
    ),
    _shape(
        "private key",
        "putty-user-key-file-",
        r"PuTTY-User-Key-File-[0-9]+:[\s\S]*?(?:Private-(?:MAC|Hash):[ \t]*[0-9A-Fa-f]+|\Z)",
    ),
    _shape(
        "URL credentials",
        "://",
        # A password, or a token that stands alone in its place: long, and with a digit.
        r"(?<=://)(?P<secret>[^\s/@:'\"<>]*:[^\s/@'\"<>]+|(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{20,})(?=@)",
    ),
    _shape(
        "URL parameter",
        "token= key= sig= signature= credential= secret= password= auth=",
        r"(?i:[?&](?:[\w\-]{0,30}(?:token|key|signature|credential|secret|password)|sig|auth)=)"
        r"(?P<secret>(?=[A-Za-z_\-.~%+/]*[0-9])[A-Za-z0-9_\-.~%+/]{12,}=*)",
    ),
    _shape(
        "provider key fragment",
        "sk- pk- rk- xai-",
        # Not with an underscore: `sk_args...` is a parameter pack in C++.
        rf"{_LEFT}(?:sk|pk|rk|xai)-{_BODY}{{0,40}}?{_MASKING}(?:[A-Za-z0-9_\-*…•]|\.(?=[A-Za-z0-9_\-*.]))*",
    ),
    _shape(
        "provider key",
        "incorrect invalid",
        r"(?i:incorrect api key provided|invalid (?:x-)?api[- ]key(?: provided)?)\s*:\s*"
        r"(?P<secret>[^\s,;]+?)(?=[.,;]?(?:\s|$))",
    ),
    _shape("Anthropic key", "sk-ant-", rf"sk-ant-{_BODY}{{8,}}"),
    _shape("OpenRouter key", "sk-or-", rf"{_LEFT}sk-or-{_BODY}{{8,}}"),
    _shape(
        "OpenAI key",
        "sk-",
        # The bare form has no underscore: `sk-num_tokens_per_block2` is a subtraction.
        rf"(?:sk-(?:proj|svcacct|admin)-{_BODY}{{16,}}|{_LEFT}sk-(?:(?:[A-Za-z]{{3,}}-)+{_BODY}{{16,}}"
        rf"|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{20,}}{_BODY}*))",
    ),
    _shape(
        # Whatever stands before the mark in the middle, also letters before `sk-`.
        "OpenAI key",
        "t3blbkfj",
        rf"(?P<secret>sk-{_BODY}*[A-Za-z0-9]{{20}}T3BlbkFJ{_BODY}{{20,}})|sk-{_BODY}*",
    ),
    _shape("provider key", "xai- pplx- nvapi-", rf"{_LEFT}(?:xai|pplx|nvapi)-{_BODY}{{20,}}"),
    _shape(
        "provider key",
        "gsk_ r8_ fw_ tgp_v1_",
        # Without underscores in the rest: `fw_partial_sums_of_the_block` is an identifier.
        rf"{_LEFT}(?:gsk|r8|fw|tgp_v1)_(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{20,}}",
    ),
    _shape(
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_LEFT}gh[pousr]_[A-Za-z0-9]{{20,}}|gh[pousr]_[A-Za-z0-9]{{36}}|github_pat_[A-Za-z0-9_]{{20,}}",
    ),
    _shape("GitLab token", "glpat-", rf"{_LEFT}glpat-{_BODY}{{16,}}"),
    _shape(
        "AWS key id",
        "akia asia abia acca",
        rf"{_LEFT}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}(?![A-Za-z0-9])",
    ),
    _shape("Google key", "aiza", rf"{_LEFT}AIza{_BODY}{{35}}"),
    _shape("Google OAuth token", "ya29. gocspx-", rf"{_LEFT}(?:ya29\.{_BODY}{{20,}}|GOCSPX-{_BODY}{{20,}})"),
    _shape("Hugging Face token", "hf_ api_org_", rf"{_LEFT}(?:hf_|api_org_)[A-Za-z0-9]{{20,}}"),
    _shape(
        "Slack token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-",
        rf"{_LEFT}xox[abeoprs]-[A-Za-z0-9\-]{{10,}}",
    ),
    _shape(
        "Slack webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_\-]{20,})",
    ),
    _shape("Artifactory key", "akcp", rf"{_LEFT}AKCp[A-Za-z0-9]{{60,}}"),
    _shape("PyPI token", "pypi-", rf"{_LEFT}pypi-{_BODY}{{32,}}"),
    _shape("npm token", "npm_", rf"{_LEFT}npm_[A-Za-z0-9]{{32,}}"),
    _shape(
        "JSON web token",
        "eyj",
        # Without its signature too: what is in it names people. Two dots, where a key was agreed on and none is in it.
        rf"{_LEFT}(?:(?P<secret>eyJ{_BODY}{{10,}}={{0,2}}\.{{1,2}}{_BODY}{{2,}}={{0,2}}(?:\.{_BODY}+={{0,2}})*)|eyJ{_BODY}*)",
    ),
    _shape(
        "key in base64",
        # sk-ant-, sk-proj-, sk-or-, ghp_ and github_pat_, as a text that begins with them is encoded.
        "c2styw50l c2stchjvai c2stb3it z2hwx z2l0ahvix3bhd",
        rf"{_LEFT}(?:c2stYW50L|c2stcHJvai|c2stb3It|Z2hwX|Z2l0aHViX3BhdF)[A-Za-z0-9+/_\-]{{16,}}={{0,2}}",
    ),
    _shape(
        "authorization header",
        "bearer basic",
        r"\b(?i:bearer|authorization:\s*basic)\s+(?P<secret>[A-Za-z0-9_\-.~+/]{12,}=*)",
    ),
    _shape(
        # A quoted value, or a bare one as in .env files, HTTP headers and shell exports.
        "assigned secret",
        "key secret token passw passphrase",
        r"""(?ix)
        (?:(?:api|access|private)[_\-]?key|secret(?:[_\-]?(?:access[_\-]?)?key)?
          |(?:auth|access|refresh|api|bearer)[_\-]?token|pass(?:word|wd|phrase))
        ["']?\s*(?:=>|:=|=|:)\s*
        (?: (?P<quote>["'])(?P<secret>(?:(?!(?P=quote))[^\n\\]|\\.){8,})(?P=quote)
          | (?P<bare>(?=[A-Za-z0-9_\-.~+/]*[0-9])(?=[A-Za-z0-9_\-.~+/]*[A-Za-z])
              [A-Za-z0-9_\-.~+/]{16,}=*) )
        """,
    ),
    _shape(
        # Names that announce a secret less surely: a quoted value with a letter and a digit; `pwd` is a folder, too.
        "assigned secret",
        " ".join(f"{name}{joint}{word}" for name, word in _LESS_SURE_NAMES for joint in ("", "_", "-"))
        + " pwd contrase",
        r"""(?ix)
        (?:(?:auth|service|account|client|db|database|priv)[_\-]?key|(?:db|database|key)[_\-]?pass|contrase(?:ñ|n)a
          |pwd(?!["']?\s*(?:=>|:=|=|:)\s*["'][^"'\n]{0,200}/))
        ["']?\s*(?:=>|:=|=|:)\s*(?P<quote>["'])
        (?P<secret>(?=[^\s"'\\]*[0-9])(?=[^\s"'\\]*[A-Z])[^\s"'\\/~.$%{<\[][^\s"'\\]{7,})(?P=quote)
        """,
    ),
)


def find_shapes(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of everything in `text` that looks like a secret."""
    lower = text.lower()
    for shape in SHAPES:
        if not any(trigger in lower for trigger in shape.triggers):
            continue
        for match in shape.pattern.finditer(text):
            groups = match.groupdict()
            name = next((g for g in ("secret", "bare") if groups.get(g)), None)
            if name:
                yield *match.span(name), shape.kind
            elif "secret" not in groups:
                yield *match.span(), shape.kind
