"""Secrets go, kernels stay."""

from __future__ import annotations

import base64
import json
import string
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import llmkernel
from llmkernel.display.clean import clean
from llmkernel.errors import LLMKernelError
from llmkernel.prompts import redaction
from llmkernel.prompts.redaction import MASK, find_secrets, redact, redact_all, remember_secret

WORD = string.ascii_letters + string.digits


def body(length, alphabet=WORD):
    """Text of exactly `length` characters with a letter and a digit in it, as generated keys have."""
    return st.text(alphabet, min_size=length - 2, max_size=length - 2).map(lambda t: f"a{t}7")


SHAPES = {
    "Anthropic": body(95).map("sk-ant-api03-{}".format),
    "Anthropic, admin": body(40, WORD + "-_").map("sk-ant-admin01-{}".format),
    "OpenAI": body(48).map("sk-{}".format),
    "OpenAI, project": body(60, WORD + "-_").map("sk-proj-{}".format),
    "OpenAI, service": body(40).map("sk-svcacct-{}".format),
    "OpenRouter": body(64, "abcdef0123456789").map("sk-or-v1-{}".format),
    "Groq": body(52).map("gsk_{}".format),
    "xAI": body(60).map("xai-{}".format),
    "NVIDIA": body(64, WORD + "-_").map("nvapi-{}".format),
    "GitHub": st.builds("gh{}_{}".format, st.sampled_from("pousr"), body(36)),
    "GitHub, fine-grained": body(82, WORD + "_").map("github_pat_{}".format),
    "GitLab": body(20).map("glpat-{}".format),
    "Artifactory": body(69).map("AKCp{}".format),
    "AWS id": st.text(string.ascii_uppercase + "234567", min_size=16, max_size=16).map("AKIA{}".format),
    "Google": body(35, WORD + "-_").map("AIza{}".format),
    "Hugging Face": body(34).map("hf_{}".format),
    "Slack": st.builds("xox{}-{}".format, st.sampled_from("bpas"), body(40, WORD + "-")),
    "PyPI": body(120, WORD + "-_").map("pypi-{}".format),
    "npm": body(36).map("npm_{}".format),
    "JSON web token": st.builds("eyJ{}.eyJ{}.{}".format, body(20), body(40), body(43)),
}
# What stands around a secret, with {} for it.
PLACES = st.sampled_from(
    [
        "{}",
        "key = '{}'",
        'client = Anthropic(api_key="{}")',
        "%env ANTHROPIC_API_KEY={}",
        "Incorrect API key provided: {}. You can find your key in your account.",
        "(see {})",
        "https://api.example.com/v1?key={}&x=1",
        'os.environ["TOKEN"] = "{}"',
        "__global__ void k() {{ }} // {}\n",
        "\n{}\n",
        "…{}…",
    ]
)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40)
@given(st.data())
def test_no_planted_key_survives(shape, data):
    secret = data.draw(SHAPES[shape])
    text = data.draw(PLACES).format(secret)

    shown = redact(text)

    assert secret not in shown
    # Nor does a usable piece of it: its last twelve characters.
    assert secret[-12:] not in shown
    assert MASK in shown


@given(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=4), st.data())
def test_several_keys_in_one_text_all_go(shapes, data):
    secrets = [data.draw(SHAPES[shape]) for shape in shapes]

    shown = redact(" and ".join(secrets))

    assert not [s for s in secrets if s in shown]


FRAGMENTS = {
    "stars": "sk-ab***yz",
    "many stars": "sk-proj-********************************WxYz",
    "dots": "sk-ant-...abcd",
    "ellipsis": "sk-ant-api03-Ab…wxyz",
    "crosses": "sk-xxxxxxxxWxYz",
}


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
@pytest.mark.parametrize("place", ["{}", "Incorrect API key provided: {}.", "key {} is disabled", '"{}"'])
def test_what_a_provider_leaves_of_a_key_goes_too(fragment, place):
    shown = redact(place.format(fragment))

    assert shown == place.format(MASK)


ASSIGNED = [
    "api_key",
    "API-KEY",
    "openai_api_key",
    "client_secret",
    "password",
    "auth_token",
    "aws_secret_access_key",
]
FORMS = ['{} = "{}"', "{}: '{}'", '"{}": "{}"', "{}={}", "export {}={}", "X-{}: {}"]


@given(st.sampled_from(ASSIGNED), st.sampled_from(FORMS), body(24, WORD + "+/"))
def test_an_assigned_secret_of_no_known_shape_goes(name, form, value):
    shown = redact(form.format(name, value))

    assert value not in shown
    assert name in shown


def test_a_quoted_password_with_spaces_and_escapes_goes():
    assert redact(r'password = "correct horse \" battery"') == f'password = "{MASK}"'


@given(st.sampled_from(["Bearer", "bearer", "Basic"]), body(30, WORD + "-._~+/"))
def test_a_header_keeps_its_scheme_only(scheme, value):
    assert redact(f"Authorization: {scheme} {value}") == f"Authorization: {scheme} {MASK}"


@given(body(14), body(14))
def test_credentials_in_a_url_go_and_the_host_stays(user, password):
    assert redact(f"https://{user}:{password}@proxy.corp:3128/x") == f"https://{MASK}@proxy.corp:3128/x"


@pytest.mark.parametrize(
    "label", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
)
def test_a_private_key_block_goes_even_without_its_end(label):
    block = f"-----BEGIN {label}-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASC\n"

    assert redact(f"before\n{block}-----END {label}-----\nafter") == f"before\n{MASK}\nafter"
    assert redact(f"before\n{block}") == f"before\n{MASK}"


@pytest.mark.parametrize(
    "name", ["MY_SERVICE_KEY", "DEPLOY_TOKEN", "DB_PASSWORD", "SIGNING_SECRET", "some_secret"]
)
# The path of a file that exists is no secret, and Hypothesis knows some.
@given(
    value=st.text(string.printable.strip(), min_size=12, max_size=40).filter(lambda v: not Path(v).exists())
)
def test_the_value_of_a_secret_variable_goes(name, value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)

        assert value not in redact(f"before {value} after").replace(MASK, "")


def test_a_variable_that_names_a_file_or_is_short_is_no_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_KEY_FILE", "ordinary words here")
    monkeypatch.setenv("MY_KEY", "short")
    monkeypatch.setenv("MY_TOKEN_STORE", str(tmp_path))

    text = f"ordinary words here, short, {tmp_path}"
    assert redact(text) == text


def test_a_key_that_was_loaded_goes(monkeypatch):
    monkeypatch.setattr(redaction, "_loaded", set())
    remember_secret("no shape at all")

    assert redact("x no shape at all y") == f"x {MASK} y"


def test_a_secret_is_found_with_its_kind_and_line_but_without_its_text():
    text = "a\nb ghp_" + "a1" * 18

    (secret,) = find_secrets(text)

    assert (secret.kind, secret.line, text[secret.start :]) == ("GitHub token", 2, "ghp_" + "a1" * 18)
    assert "a1a1" not in repr(secret)


@given(st.text())
def test_redaction_is_idempotent(text):
    assert redact(redact(text)) == redact(text)


@given(st.lists(st.sampled_from(sorted(SHAPES)), max_size=3), st.text(max_size=20), st.data())
def test_positions_are_ordered_and_apart(shapes, between, data):
    text = between.join([data.draw(SHAPES[s]) for s in shapes])

    found = find_secrets(text)

    for before, after in pairwise(found):
        assert before.end <= after.start
    assert all(0 <= s.start < s.end <= len(text) for s in found)


KERNEL = r"""
//! sha256(x: uint32[N, 16]) -> y: uint32[N, 8]
//! sha256_blocks<<<ceil_div(N, 256), 256, 0x2000>>>(x, y, N)
#include <cuda_bf16.h>
__constant__ uint32_t K[4] = {0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u};
__device__ const unsigned long long SEED = 0x9E3779B97F4A7C15ull, PRIME = 0xff51afd7ed558ccdULL;
// commit 3f786850e387550fdab836ed7e6dc881de23001b, md5 d41d8cd98f00b204e9800998ecf8427e
template <typename T, int HEAD_DIM, int BLOCK_M>
__global__ void __launch_bounds__(256, 2) attention(const T* __restrict__ query, const T* __restrict__ key,
                                                    const T* __restrict__ value, T* out, int num_tokens) {
  extern __shared__ __align__(128) unsigned char smem[];
  T* key_tile = reinterpret_cast<T*>(smem); T* token_ids = key_tile + 64 * HEAD_DIM;
  int key_index = blockIdx.x * blockDim.x + threadIdx.x, token = key_index / HEAD_DIM;
  const int max_tokens_per_block = 1234567890123456;
  const char* secret_sauce = nullptr; bool is_masked = key_index >= num_tokens;
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1}, %2, %3, p, 1, 1, 0, 0;\n");
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1];");
  sk_reduce<256>(smem); hf_transform(key_tile);
  float per_token = accumulated_sum_0123456789; int n = sk-num_tokens_per_block2, m = sk-**pointer;
  f(sk_args..., hf_args...); fw_accumulate_partial_sums2(hf_weights_of_the_block4); api_key_kernel<<<1, 1>>>();
  xai_kernel: out[key_index] = __shfl_xor_sync(0xffffffffu, value[token], 16);
}
def reference(q, k, v, key_padding_mask=None, tokenizer="bert-base-uncased"):
    token = k @ q.T   # basic attention, bearer of the mask: [..., None]
    mask = x[..., 0]; sk = x[...]; key = a...b
    return _ZN7cutlass6KernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEE
"""


def test_a_kernel_is_unchanged():
    assert redact(KERNEL) == KERNEL
    assert find_secrets(KERNEL) == []


def test_the_packages_own_sources_are_unchanged():
    root = Path(llmkernel.__file__).parent
    paths = [p for p in root.rglob("*") if p.suffix in {".cu", ".cuh", ".h", ".py", ".md"}]
    paths.remove(
        Path(redaction.__file__).with_name("secret_shapes.py")
    )  # its comments show what it looks for

    found = {p.name: find_secrets(p.read_text("utf-8")) for p in paths}

    assert {name: secrets for name, secrets in found.items() if secrets} == {}


NUMBERS = st.integers(0, 2**64 - 1).map(lambda n: f"0x{n:016X}ULL") | st.floats(allow_nan=False).map(
    lambda f: f"{f!r}f"
)
NAMES = st.sampled_from(
    ["key", "token", "x", "smem", "tile_k", "acc", "hash", "seed", "basic", "sk", "per_token"]
)
STATEMENTS = st.builds(
    "    {} = {} + {}[{}];".format, NAMES, NUMBERS, NAMES, st.integers(0, 10**18)
) | st.builds("    // {} {}".format, NAMES, st.binary(min_size=16, max_size=32).map(bytes.hex))


@given(st.lists(STATEMENTS, max_size=12).map("\n".join))
def test_generated_device_code_is_unchanged(source):
    assert redact(source) == source


JOINTS = ["\n", "\n    ", "' '", "'\n    '", '" + "', '" \\\n  "', "\\\n", ", ", "' f'"]
VALUE = "zqX9vT4mK2pL8wR7" + "aB3cD5eF7gH9"


@pytest.mark.parametrize("joint", JOINTS)
@given(at=st.integers(1, len(VALUE) - 1))
def test_a_known_value_in_pieces_goes(joint, at):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_SERVICE_TOKEN", VALUE)

        assert redact(f"x = '{VALUE[:at]}{joint}{VALUE[at:]}';") == f"x = '{MASK}';"


@given(st.binary(max_size=5), st.binary(max_size=5), st.sampled_from([None, 7, 76]), st.booleans())
def test_a_known_value_in_base64_goes_whatever_stands_beside_it(before, after, width, is_for_urls):
    encode = base64.urlsafe_b64encode if is_for_urls else base64.b64encode
    text = encode(before + VALUE.encode() + after).decode()
    lines = [text[i : i + width] for i in range(0, len(text), width)] if width else [text]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_SERVICE_TOKEN", VALUE)
        shown = redact("\n".join(lines))

    left = shown.replace(MASK, "").replace("\n", "")
    assert MASK in shown
    assert len(left) <= len(text) - len(VALUE)


def test_a_known_value_in_hexadecimal_goes(monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", VALUE)

    assert redact(f"0x{VALUE.encode().hex()}") == f"0x{MASK}"


@pytest.mark.parametrize("joint", ["' '", "'\n    '", '" + "', '" \\\n  "'])
@pytest.mark.parametrize("at", [2, 5, 11, 30])
def test_a_key_in_neighbouring_literals_goes(joint, at):
    key = "sk-ant-api03-" + "a1B2" * 8

    assert redact(f"k = '{key[:at]}{joint}{key[at:]}'  # mine") == f"k = '{MASK}'  # mine"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h.example/v1?key=a1B2c3D4e5F6g7&x=1", f"https://h.example/v1?key={MASK}&x=1"),
        (
            "https://h.example/a?x=1&X-Amz-Signature=0f1e2d3c4b5a69",
            f"https://h.example/a?x=1&X-Amz-Signature={MASK}",
        ),
        ("https://h.example/b?sv=2024&sig=a%2Fb1c2d3e4f5%3D", f"https://h.example/b?sv=2024&sig={MASK}"),
        ("https://a1b2c3d4e5f6a7b8c9d0@h.example/x.git", f"https://{MASK}@h.example/x.git"),
        ("https://h.example/docs?key=value&page=2", "https://h.example/docs?key=value&page=2"),
        ("https://someone@h.example/x", "https://someone@h.example/x"),
    ],
)
def test_what_a_url_carries_goes(text, shown):
    assert redact(text) == shown


def test_a_password_in_a_variable_that_is_a_url_goes(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://me:correct-horse-7@db.example/x")

    assert redact("login failed for correct-horse-7") == f"login failed for {MASK}"


@given(st.recursive(st.sampled_from(["fine", VALUE]) | st.integers() | st.none(), st.lists, max_leaves=8))
def test_data_keeps_its_form(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_SERVICE_TOKEN", VALUE)
        done = redact_all({"a": data})

    assert json.dumps(done) == json.dumps({"a": data}).replace(VALUE, MASK)


def test_errors_and_reports_are_shown_without_secrets():
    key = "sk-ant-api03-" + "a1B2" * 8

    assert key not in str(LLMKernelError("no", rule=key, received=f"x {key}", next_step=key))
    assert clean(f"\x1b[1m{key}\x1b[0m") == MASK
