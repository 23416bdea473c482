"""The rules of detect-secrets: each finds what it is for, nothing else goes, and without it our own shapes still hold."""

from __future__ import annotations

import base64
import importlib
import re
import subprocess
import sys
import uuid
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.cli.doctor_checks import check_redaction
from llmkernel.errors import UsageError
from llmkernel.magics.secrets import refuse_secrets
from llmkernel.prompts import detector
from llmkernel.prompts.detector import RULES, find_detected, load_rules
from llmkernel.prompts.redaction import MASK, find_secrets, redact
from tests.unit.prompts.detected import EXAMPLES, HEX, LOWER, WORD, body

ROOT = Path(__file__).parents[3]
PLANTED = [
    pytest.param(kind, *example, id=f"{kind} {i}")
    for kind, examples in EXAMPLES.items()
    for i, example in enumerate(examples)
]
# What does not touch a word, and announces nothing itself.
AROUND = st.text(max_size=40) | st.text("(){};,.* \n\t#<>|é→", max_size=60)


@pytest.mark.parametrize(("kind", "before", "secrets", "after"), PLANTED)
@settings(max_examples=25)
@given(data=st.data())
def test_a_secret_goes_and_the_text_around_it_stays(kind, before, secrets, after, data):
    secret, left, right = (data.draw(s) for s in (secrets, AROUND, AROUND))

    shown = redact(f"{left} {before}{secret}{after} {right}")

    assert shown == f"{left} {before}{MASK}{after} {right}"
    assert redact(shown) == shown


@pytest.mark.parametrize(("kind", "before", "secrets", "after"), PLANTED)
@settings(max_examples=10)
@given(data=st.data())
def test_its_rule_finds_it_without_our_own_shapes(kind, before, secrets, after, data):
    secret = data.draw(secrets)
    text = f"x = 1\n{before}{secret}{after}\n"

    found = set(find_detected(text))

    assert (6 + len(before), 6 + len(before) + len(secret), kind) in found


@pytest.mark.parametrize(("kind", "before", "secrets", "after"), PLANTED)
@settings(max_examples=5)
@given(data=st.data())
def test_a_cell_that_holds_one_is_not_sent_and_says_why(kind, before, secrets, after, data):
    secret = data.draw(secrets)

    with pytest.raises(UsageError, match=r"not sent: line 2 holds what looks like a secret \(.+\)") as caught:
        refuse_secrets(f"%%ask\n{before}{secret}{after}\nwhy is it slow?")

    assert secret not in str(caught.value)


def test_the_kind_is_said_where_only_a_rule_knows_it():
    with pytest.raises(UsageError, match=r"line 1 holds what looks like a secret \(Stripe key\)"):
        refuse_secrets("%ask why does " + "sk_" + "live_" + "a1B2" * 6 + " fail?")


@settings(max_examples=30)
@given(body(32, LOWER), st.text(LOWER + "_-", max_size=30), st.text(LOWER, max_size=20))
def test_nothing_stays_of_a_secret_that_is_longer_than_its_rule(secret, more, before):
    assert redact(f"key({before}SK{secret}{more})") == f"key({MASK})"


@settings(max_examples=10)
@given(body(32, LOWER))
def test_the_line_end_before_a_secret_in_json_stays(secret):
    assert redact(f'"a\\nAC{secret}\\n"') == f'"a\\n{MASK}\\n"'


@settings(max_examples=10)
@given(body(32, LOWER), st.integers(1, 30))
def test_a_secret_in_neighbouring_literals_goes(secret, at):
    key = f"SK{secret}"
    assert redact(f"k = '{key[:at]}' '{key[at:]}'") == f"k = '{MASK}'"


# ---- what is in the installed version ----


def test_every_rule_is_there_and_has_examples():
    assert [rule.kind for rule, _ in load_rules()] == [rule.kind for rule in RULES] == list(EXAMPLES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
@settings(max_examples=1)
@given(data=st.data())
def test_every_pattern_has_an_example(rule, data):
    # A pattern that a new version brings has none, and was not looked at.
    (patterns,) = (p for r, p in load_rules() if r == rule)
    texts = [f" {before}{data.draw(secrets)}{after} " for before, secrets, after in EXAMPLES[rule.kind]]
    if rule.kind == "Twilio key":
        texts = [f"AC{data.draw(body(32, LOWER))}", f"SK{data.draw(body(32, LOWER))}"]

    assert [p.pattern for p in patterns if not any(p.search(text) for text in texts)] == []


# What is not used of it is covered by our own shapes, which take linear time.
LEFT_OUT = {
    "basic_auth.BasicAuthDetector": st.builds(
        "git clone https://{}:{}@h.example/x".format, body(6), body(12, WORD + "-._~%")
    ),
    "jwt.JwtTokenDetector": st.builds(
        lambda payload, end: ".".join(
            base64.urlsafe_b64encode(part).decode().rstrip("=")
            for part in (b'{"alg": "HS256", "typ": "JWT"}', payload, end)
        ),
        st.sampled_from([b'{"sub": "someone"}', b'{ "iss":"x" }', b"{}", b'{\n"a": 1}']),
        st.binary(min_size=32, max_size=32),
    ),
    "npm.NpmDetector": (body(36).map("npm_{}".format) | st.uuids().map(str)).map(
        "//registry.example/:_authToken={}".format
    ),
    "openai.OpenAIDetector": st.builds(
        "task-sk-{}{}T3BlbkFJ{}".format, st.sampled_from(["", "None-", "a_b-", "x1-"]), body(20), body(20)
    ),
    "private_key.PrivateKeyDetector": st.builds(
        "{0}BEGIN {2} PRIVATE KEY{1}\n{3}\n{0}END {2} PRIVATE KEY{1}".format,
        st.just("-----"),
        st.just("-----"),
        st.sampled_from(["RSA", "EC", "DSA", "OPENSSH"]),
        body(64, WORD + "+/"),
    )
    | body(64, WORD + "+/").map(
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----".format
    )
    | st.builds(
        "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\n{}\nPrivate-MAC: {}".format,
        body(64),
        body(40, HEX),
    ),
}


@pytest.mark.parametrize("plugin", LEFT_OUT)
@settings(max_examples=40)
@given(data=st.data())
def test_what_is_left_out_is_found_by_our_own_shapes(plugin, data):
    module, name = plugin.split(".")
    left_out = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)()
    text = data.draw(LEFT_OUT[plugin])

    assert list(left_out.analyze_string(text))
    shown = redact(f"before\n{text}\nafter")
    assert not list(left_out.analyze_string(shown))
    assert shown.startswith("before\n")
    assert shown.endswith("\nafter")
    assert max(map(len, shown.replace(MASK, " ").replace("/", " ").split())) < 20


@settings(max_examples=20)
@given(
    st.sampled_from(
        ["auth_key", "service-key", "accountKey", "client_key", "DB_PASS", "key_pass", "contraseña", "pwd"]
    ),
    body(12),
)
def test_names_that_announce_a_secret_less_surely_do_so_for_a_value_with_letters_and_digits(name, value):
    assert redact(f"{name} = '{value}'") == f"{name} = '{MASK}'"
    for text in (f"{name} = '{value} and words'", f"{name}[{value}]", f"{name} = 'aFolder{name[0]}er'"):
        assert redact(text) == text


# ---- no false alarms ----

ORDINARY = [*ROOT.glob("examples/*.ipynb"), *ROOT.glob("tests/rogues/*.cu")]


def test_ordinary_files_are_unchanged():
    assert len(ORDINARY) > 100
    assert {
        path.name: find_secrets(text) for path in ORDINARY if redact(text := path.read_text("utf-8")) != text
    } == {}


def test_sources_pages_and_notebooks_with_pictures_have_nothing_for_any_rule():
    files = [
        p for pattern in ("llmkernel/**/*.py", "docs/**/*.md", "docs/**/*.ipynb") for p in ROOT.glob(pattern)
    ]
    assert len(files) > 150
    assert {p.name: found for p in files if (found := list(find_detected(p.read_text("utf-8"))))} == {}


PNG = b"\x89PNG"
NAMES = "key token AWS pass AC SK ghs_ Module Node Model sk gl rt 2 16 x4 float32 Of _ . :: SG"
PROSE = "The key of each token is kept, so pass the 16-byte aligned secret size 4097 on AWS: fast."
IDENTIFIERS = st.lists(
    st.sampled_from(NAMES.split()),
    min_size=1,
    max_size=12,
).map("".join)
# Names with a token's mark and its very length are tokens to anybody.
IDENTIFIERS = IDENTIFIERS.filter(lambda name: not re.search(r"gh[a-z]_[A-Za-z0-9_]{36}", name))
HARMLESS = {
    "git hashes": body(40, HEX),
    "short hashes": body(7, HEX),
    "sha256": body(64, HEX).map("sha256:{}".format),
    "UUIDs": st.uuids().map(str)
    | st.integers(10**7, 10**9).flatmap(lambda n: st.uuids().map(f"{n}:{{}}".format)),
    "images": st.binary(min_size=90, max_size=600).map(
        lambda data: f'<img src="data:image/png;base64,{base64.b64encode(PNG + data).decode()}">'
    ),
    "identifiers": st.builds("{} = {}({})".format, IDENTIFIERS, IDENTIFIERS, IDENTIFIERS),
    "arrays": st.lists(st.floats(width=32).map(repr) | st.integers(0, 2**63).map(hex), max_size=30).map(str),
    "mangled names": IDENTIFIERS.map("_ZN7cutlass6Kernel{}I4cute5tupleIJiiiiEEE".format),
    "tracebacks": st.builds(
        'File "/usr/lib/python3.12/{}.py", line {}, in {}\n    key = table[{}]\nKeyError: {!r}'.format,
        IDENTIFIERS,
        st.integers(1, 9999),
        IDENTIFIERS,
        IDENTIFIERS,
        body(12),
    ),
    "prose": st.lists(
        st.sampled_from(PROSE.split()),
        max_size=40,
    ).map(" ".join),
}


@pytest.mark.parametrize("what", HARMLESS)
@settings(max_examples=40)
@given(data=st.data())
def test_ordinary_text_is_unchanged(what, data):
    text = data.draw(HARMLESS[what])

    assert list(find_detected(f"x {text}\n")) == []


# ---- never slow ----


@pytest.mark.parametrize(("kind", "before", "secrets", "after"), PLANTED)
@settings(max_examples=1)
@given(data=st.data())
def test_what_nearly_matches_again_and_again_is_no_matter(kind, before, secrets, after, data):
    # In quadratic time one of these would take longer than all of the tests.
    text = before + data.draw(secrets)
    for piece in (
        f"{text[:-1]}! ",
        f"{text[: 1 + len(before) + len(text) // 2]}",
        f"{before}a1",
        f"{before or kind}      x",
    ):
        redact(piece * (150_000 // len(piece)))


def test_many_spaces_are_no_matter():
    value = "a1B2" * 11
    assert list(find_detected(f"key{' ' * 8}= '{value}'")) == [(14, 58, "IBM Cloud key")]

    text = f"ibm_cloud_iam_api_key{' ' * 50_000}{value}!{' ' * 50_000}"
    assert redact(text * 3) == text * 3


# ---- a broken installation ----


@pytest.fixture
def reloaded():
    load_rules.cache_clear()
    yield
    load_rules.cache_clear()


SECRET_OF_OURS = "ghp_" + "a1B2" * 9
SECRET_OF_THEIRS = "SK" + "a1b2" * 8


def test_a_missing_detector_is_said_once_and_our_own_shapes_hold(reloaded, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "detect_secrets"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "detect_secrets", None)
    text = f"{SECRET_OF_OURS} {SECRET_OF_THEIRS}"

    with pytest.warns(
        RuntimeWarning, match="detect-secrets cannot be used.*none of its rules is used"
    ) as said:
        shown = [redact(text) for _ in range(3)]

    assert shown == [f"{MASK} {SECRET_OF_THEIRS}"] * 3
    assert len(said) == 1
    assert "pip install" in str(said[0].message)
    (finding,) = check_redaction()
    assert (finding.verdict, "pip install" in finding.next_step) == ("problem", True)


def test_the_doctor_says_that_all_rules_are_there():
    (finding,) = check_redaction()
    assert (finding.verdict, finding.summary.endswith(f"{len(RULES)} rules")) == ("ok", True)


@pytest.mark.parametrize("denylist", [[], ["no pattern"], None])
def test_a_changed_rule_is_named_and_the_others_hold(reloaded, monkeypatch, denylist):
    from detect_secrets.plugins.stripe import StripeDetector

    monkeypatch.setattr(StripeDetector, "denylist", denylist)

    with pytest.warns(RuntimeWarning, match="these are not: Stripe key"):
        assert redact(f"{SECRET_OF_OURS} {SECRET_OF_THEIRS}") == f"{MASK} {MASK}"


def test_where_warnings_are_errors_the_text_is_redacted_all_the_same(reloaded, monkeypatch):
    monkeypatch.setattr(detector, "RULES", (*RULES, detector.Rule("other key", "no_such_module.Detector")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert redact(f"{SECRET_OF_OURS} {SECRET_OF_THEIRS}") == f"{MASK} {MASK}"


def test_it_is_imported_where_a_secret_may_stand_and_not_before():
    code = f"""
import sys
from llmkernel.prompts.redaction import redact
redact("__global__ void softmax_of_every_row(const float* x, int N) {{ }}  // 1024 threads\\n" * 9)
print("detect_secrets" in sys.modules)
redact({SECRET_OF_THEIRS!r})
print("detect_secrets" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]


def test_a_uuid_after_a_bus_number_is_no_telegram_token():
    assert redact(text := f"00000001:{uuid.UUID(int=2**100 + 7)}") == text
