"""Secrets that detect-secrets knows: the rules of a maintained detector, run in linear time and with our own caution.

Only its compiled patterns are used, never its scan: that reads settings and files, and may ask a service whether a key
is valid. What its other rules would add, and why they are left out, is in docs/adr/0011-rules-of-a-maintained-detector.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

# Every secret that a rule finds has such a run in it, with a letter and a digit: the rest of a text is not searched.
_RUN = re.compile(r"[A-Za-z0-9_\-+/=]{16,}")
_MIN_SECRET_LENGTH = 16
_LETTER, _DIGIT = re.compile(r"[A-Za-z]"), re.compile(r"[0-9]")
_LOWER, _UPPER = re.compile(r"[a-z]"), re.compile(r"[A-Z]")
# What a rule reads before such a run: a name, an equals sign, quotes. None reads as many characters.
_BEFORE = 100
# The rules for assignments take cubic time in the number of spaces in a row: no searched piece has more of them.
_MANY_SPACES = " " * 9
_NAME_OR_HOST = re.compile(r"\w+=|(?i:https?)://[^/]*/")
_REST = re.compile(r"[A-Za-z0-9_\-]*")


@dataclass(frozen=True)
class Rule:
    """One plugin of detect-secrets.

    Attributes
    ----------
    kind : str
        What its secrets are called here.
    plugin : str
        Module and class below ``detect_secrets.plugins``.
    is_strict : bool
        Whether its secrets have capitals and small letters and are whole words: what else it finds are names in a program,
        or stands in the middle of encoded data.
    words : str
        A text without any of these, in lower case, is not searched: patterns that may begin anywhere are the dear ones.
    """

    kind: str
    plugin: str
    is_strict: bool = False
    words: str = ""


_NAMES = "key pass pwd pw token"
RULES: tuple[Rule, ...] = (
    Rule("AWS key", "aws.AWSKeyDetector"),
    Rule("Azure storage key", "azure_storage_key.AzureStorageKeyDetector"),
    Rule("Discord token", "discord.DiscordBotTokenDetector", is_strict=True),
    Rule("GitHub token", "github_token.GitHubTokenDetector", is_strict=True),
    Rule("GitLab token", "gitlab_token.GitLabTokenDetector"),
    Rule("IBM Cloud key", "ibm_cloud_iam.IbmCloudIamDetector", is_strict=True, words=_NAMES),
    Rule("IBM COS key", "ibm_cos_hmac.IbmCosHmacDetector", words="secret"),
    Rule("Mailchimp key", "mailchimp.MailchimpDetector"),
    Rule("PyPI token", "pypi_token.PypiTokenDetector"),
    Rule("SendGrid key", "sendgrid.SendGridDetector"),
    Rule("Slack token", "slack.SlackDetector"),
    Rule("SoftLayer key", "softlayer.SoftlayerDetector", words=f"{_NAMES} softlayer.com"),
    Rule("Square OAuth secret", "square_oauth.SquareOAuthDetector"),
    Rule("Stripe key", "stripe.StripeDetector"),
    Rule("Telegram bot token", "telegram_token.TelegramBotTokenDetector", is_strict=True),
    Rule("Twilio key", "twilio.TwilioKeyDetector"),
)


def find_detected(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of everything in `text` that a rule of detect-secrets takes for a secret."""
    for start, end in _pieces(text):
        lower = text[start:end].lower()
        for rule, patterns in load_rules():
            if rule.words and not any(word in lower for word in rule.words.split()):
                continue
            for pattern in patterns:
                yield from _matches(rule, pattern, text, start, end)


@lru_cache(maxsize=1)
def load_rules() -> tuple[tuple[Rule, tuple[re.Pattern[str], ...]], ...]:
    """Return every rule that can be loaded with its patterns; warn, once a process, of those that cannot."""
    loaded: list[tuple[Rule, tuple[re.Pattern[str], ...]]] = []
    errors: dict[str, str] = {}
    for rule in RULES:
        module, name = rule.plugin.split(".")
        try:
            with warnings.catch_warnings():
                # Of its dependencies' versions, which nobody reads for the first time in the middle of a cell.
                warnings.simplefilter("ignore")
                plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)
            patterns = tuple(plugin.denylist)
            if not patterns or not all(isinstance(pattern, re.Pattern) for pattern in patterns):
                raise TypeError("its patterns are no compiled regular expressions")
            loaded.append((rule, patterns))
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises, the other rules hold
            errors[rule.kind] = f"{type(error).__name__}: {error}"
    if errors:
        # Where warnings are errors too, the text is redacted by what there is.
        with suppress(RuntimeWarning):
            warnings.warn(_say(errors), RuntimeWarning, stacklevel=2)
    return tuple(loaded)


def _say(errors: dict[str, str]) -> str:
    what = (
        "none of its rules is"
        if len(errors) == len(RULES)
        else f"these are not: {', '.join(errors)}. The rest is"
    )
    return (
        f"detect-secrets cannot be used as it is installed ({next(iter(errors.values()))}); {what} used to take out "
        "secrets. The shapes that llmkernel knows itself still are. "
        "Run: python -m pip install --force-reinstall 'detect-secrets>=1.5'"
    )


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of `text` in which a secret may stand, apart and in order."""
    first = last = -1
    for run in _RUN.finditer(text):
        start, end = run.span()
        if not (_DIGIT.search(text, start, end) and _LETTER.search(text, start, end)):
            continue
        before = max(0, start - _BEFORE)
        spaces = text.rfind(_MANY_SPACES, before, start)
        if spaces >= 0:
            before = spaces + len(_MANY_SPACES) - 1
        if before > last:
            if last >= 0:
                yield first, last
            first = before
        # One more for what closes a value.
        last = min(end + 1, len(text))
    if last >= 0:
        yield first, last


def _matches(
    rule: Rule, pattern: re.Pattern[str], text: str, start: int, end: int
) -> Iterator[tuple[int, int, str]]:
    done = start
    for match in pattern.finditer(text, start, end):
        first, last = _secret_of(match)
        if first < done or not _DIGIT.search(text, first, last):
            continue
        beginning = _beginning(text, first, done)
        if rule.is_strict and not (
            beginning == first and _LOWER.search(text, first, last) and _UPPER.search(text, first, last)
        ):
            continue
        # A rule for 24 characters finds 24 of a longer one: none may stay.
        done = _REST.match(text, last).end()  # type: ignore[union-attr]
        yield beginning, done, rule.kind


def _secret_of(match: re.Match[str]) -> tuple[int, int]:
    """Return where the secret is in what matched: in a group, or behind the name or the host that it stands with."""
    for i in range(1, match.re.groups + 1):
        if len(match[i] or "") >= _MIN_SECRET_LENGTH:
            return match.span(i)
    start, end = match.span()
    with_it = _NAME_OR_HOST.match(match[0])
    return start + (with_it.end() if with_it else 0), end


def _beginning(text: str, start: int, least: int) -> int:
    """Return where the word begins that goes on at `start`: at `least`, or after it."""
    first = start
    while first > least and text[first - 1].isascii() and text[first - 1].isalnum():
        first -= 1
    # In "\\nkey" the letter belongs to the line's end.
    is_escape = first < start and text[first - 1 : first] == "\\" and text[first] in "nrt"
    return first + is_escape
