"""Secrets that the rules of detect-secrets find, made when a test runs: none stands in the repository."""

from __future__ import annotations

import string

from hypothesis import strategies as st

LOWER = string.ascii_lowercase + string.digits
WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def body(length: int, alphabet: str = WORD) -> st.SearchStrategy[str]:
    """Text of exactly `length` characters with a digit in it and, where `alphabet` has them, small letters and capitals."""
    kinds = [alphabet, *(s for s in (string.digits, "abcdef", "ABCDEF") if set(s) <= set(alphabet))]
    return st.tuples(
        st.text(alphabet, min_size=length - len(kinds) + 1, max_size=length - len(kinds) + 1),
        *map(st.sampled_from, kinds[1:]),
    ).map("".join)


# Kind: what stands before the secret, the secret, what stands behind it.
Example = tuple[str, st.SearchStrategy[str], str]
EXAMPLES: dict[str, list[Example]] = {
    "AWS key": [
        ("", body(16, string.ascii_uppercase + string.digits).map("A3TX{}".format), ""),
        ("aws_session_token_of_mine = '", body(40, WORD + "/+"), "'"),
    ],
    "Azure storage key": [("AccountName=me;AccountKey=", body(86, WORD + "+/").map("{}==".format), ";")],
    "Discord token": [
        ("", st.builds("{}.{}.{}".format, body(23).map("M{}".format), body(6), body(27, WORD + "-_")), "")
    ],
    "GitHub token": [("", st.builds("gh{}_{}".format, st.sampled_from("pousr"), body(36)), "")],
    "GitLab token": [
        ("", body(20, WORD + "-_").map(f"{prefix}{{}}".format), "")
        for prefix in ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "GR1348941", "glcbt-", "glcbt-1a_")
    ]
    + [
        ("", body(length, WORD + "-_").map(f"{prefix}-{{}}".format), "")
        for prefix, length in (("glimt", 25), ("glptt", 40), ("glagent", 50), ("gloas", 64))
    ],
    "IBM Cloud key": [('ibm_cloud_iam_api_key = "', body(44, WORD + "-_"), '"')],
    "IBM COS key": [("cos_hmac_secret_access_key: ", body(48, HEX), "")],
    "Mailchimp key": [("", st.builds("{}-us{}".format, body(32, LOWER), st.integers(1, 20)), "")],
    "PyPI token": [
        ("", body(80, WORD + "-_").map(f"pypi-{start}{{}}".format), "")
        for start in ("AgEIcHlwaS5vcmc", "AgENdGVzdC5weXBpLm9yZw")
    ],
    "SendGrid key": [("", st.builds("SG.{}.{}".format, body(22, WORD + "-_"), body(43, WORD + "-_")), "")],
    "Slack token": [
        ("", body(24, LOWER).map("xoxb-123456789012-123456789012-{}".format), ""),
        ("https://hooks.slack.com/", st.builds("services/T{}/B{}/{}".format, body(8), body(8), body(24)), ""),
    ],
    "SoftLayer key": [
        ("softlayer_api_key = '", body(64, HEX), "'"),
        ("https://api.softlayer.com/soap/v3/", body(64, HEX), ""),
    ],
    "Square OAuth secret": [("", body(43, WORD + "-_").map("sq0csp-{}".format), "")],
    "Stripe key": [("", st.builds("{}k_live_{}".format, st.sampled_from("rs"), body(24)), "")],
    "Telegram bot token": [
        ("", st.builds("{}:{}".format, st.integers(10**8, 10**10 - 1), body(35, WORD + "-_")), "")
    ],
    "Twilio key": [("", st.builds("{}{}".format, st.sampled_from(("AC", "SK")), body(32, LOWER)), "")],
}
