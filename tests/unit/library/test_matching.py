"""The library finds a kernel by what the reference computes, whatever it is called."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.reply import extract_source
from llmkernel.providers.base import Message, Reply, Request, Started, TextDelta
from llmkernel.providers.library import NoLibraryMatchError
from tests.unit.library.problems import ShippedOnly, entry_of, normal, problem_of, reply_of

F = torch.nn.functional


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rms(x, w, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


def jacobi(u, steps):
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u = v
    return u


def heat_on_torus(u, alpha, steps):
    for _ in range(steps):
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
        u = u + alpha * (around - 4 * u)
    return u


T = torch.randn
MATCHES = {
    "softmax": (softmax, normal(6, 50)),
    "softmax of a vector": (softmax, normal(50), "softmax"),
    "softmax of a rank-4 array": (softmax, normal(2, 3, 4, 5), "softmax"),
    "softmax in torch, bfloat16": (lambda x: torch.softmax(x, -1), T(4, 9, dtype=torch.bfloat16), "softmax"),
    "softmax without words": (lambda q: torch.exp(torch.log_softmax(q, 1)), T(4, 9), "softmax"),
    "gelu_erf": (F.gelu, T(4, 9)),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), T(4, 9, dtype=torch.float16)),
    "silu": (F.silu, T(7)),
    "relu": (lambda x: np.where(x < 0, 0, x).astype(x.dtype), normal(5)),
    "swiglu": (lambda gate, up: F.silu(gate) * up, T(3, 4), T(3, 4)),
    "swiglu, other order": (lambda up, gate: F.silu(gate) * up, T(3, 4), T(3, 4), "swiglu"),
    "bias_gelu_erf": (lambda x, b: F.gelu(x + b), T(3, 4), T(4)),
    "add": (lambda a, b: a + b, normal(3, 4), normal(3, 4)),
    "affine": (lambda x: 3 * x - 1, normal(9)),
    "axpby": (lambda a, x, y: a * x + y, 2.0, normal(9), normal(9)),
    "rms_norm": (rms, T(4, 9), T(9), 1e-5),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), T(4, 9), T(9), T(9)),
    "row_sum": (lambda x: x.sum(axis=-1), normal(4, 9)),
    "row_max": (lambda x: x.amax(-1), T(4, 9, dtype=torch.float16)),
    "column_sum": (lambda x: x.sum(axis=0), normal(4, 9)),
    "column_max over the first of three axes": (lambda x: x.amax(0), T(4, 9, 3), "column_max"),
    "total_mean": (lambda x: x.mean(), normal(4, 9)),
    "total_norm": (np.linalg.norm, normal(4, 9)),
    "cumsum": (lambda x: np.cumsum(x, axis=1), normal(4, 9)),
    "transpose": (lambda x: x.T, normal(4, 9)),
    "transpose of integers": (lambda x: x.T, np.arange(12).reshape(3, 4), "transpose"),
    "transpose of complex numbers": (lambda x: x.T, normal(3, 4, dtype=np.complex64), "transpose"),
    "matmul": (lambda a, b: a @ b, normal(4, 9), normal(9, 3)),
    "matmul of batches": (torch.bmm, T(2, 4, 9), T(2, 9, 3), "matmul"),
    "linear": (lambda x, w: x @ w.T, T(4, 9), T(3, 9)),
    "linear of a batch": (
        F.linear,
        T(2, 4, 8).bfloat16(),
        T(3, 8).bfloat16(),
        "linear_half",
    ),
    "scores of an attention": (lambda q, k: q @ k.mT, T(2, 4, 8), T(2, 5, 8), "matmul_turned"),
    "rows_matmul": (lambda x, w: x @ w, T(2, 4, 9), T(9, 3)),
    "matmul_half": (torch.mm, T(4, 8).half(), T(8, 3).half()),
    "bincount": (lambda x: np.bincount(x, minlength=256), np.arange(99, dtype=np.uint8)),
    "heat_fixed": (jacobi, normal(8, 9), 3),
    "heat_periodic": (heat_on_torus, normal(8, 9, dtype=np.float64), 0.1, 3),
}


@pytest.mark.parametrize("case", MATCHES)
def test_a_reference_finds_its_kernel(case):
    function, *inputs = MATCHES[case]
    expected = inputs.pop() if isinstance(inputs[-1], str) else case.split(",")[0]

    assert entry_of(function, *inputs) == expected


NO_MATCHES = {
    "softmax over axis 0": (lambda x: torch.softmax(x, 0), T(4, 9)),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), T(4, 9)),
    "softmax without its last division": (lambda x: torch.exp(x - x.amax(-1, keepdim=True)), T(4, 9)),
    "softmax, cast to another dtype": (lambda x: torch.softmax(x, -1).double(), T(4, 9)),
    "softmax of a scaled input": (lambda x: torch.softmax(x / 3, -1), T(4, 9)),
    "RMS norm without weight": (lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6), T(4, 9)),
    "RMS norm with 1 + weight": (lambda x, w: rms(x, 1 + w, 1e-6), T(4, 9), T(9)),
    "unbiased layer norm": (
        lambda x, w, b: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5) * w + b,
        T(4, 9),
        T(9),
        T(9),
    ),
    "sum over the middle axis": (lambda x: x.sum(axis=1), normal(4, 9, 3)),
    "sum with kept axis": (lambda x: x.sum(axis=-1, keepdims=True), normal(4, 9)),
    "exclusive cumsum": (lambda x: np.cumsum(x, axis=1) - x, normal(4, 9)),
    "product with a transposed first matrix": (lambda a, b: a.T @ b, normal(9, 4), normal(9, 3)),
    "hard swish": (F.hardswish, T(9)),
    "quick gelu": (lambda x: x * torch.sigmoid(1.702 * x), T(9)),
    "in place": (lambda x: x.__imul__(2) and None, T(1)),
    "two outputs": (lambda x: (x, x + 1), normal(9)),
    "random": (lambda x: x + np.random.default_rng().standard_normal(x.shape).astype(x.dtype), normal(9)),
    "integers": (lambda x: x * 2, np.arange(9)),
}


@pytest.mark.parametrize("case", NO_MATCHES)
def test_a_lookalike_finds_nothing(case):
    function, *inputs = NO_MATCHES[case]

    with pytest.raises(NoLibraryMatchError):
        entry_of(function, *inputs)


def test_words_do_not_decide():
    with pytest.raises(NoLibraryMatchError):
        entry_of(lambda x: x - x.mean(), normal(4, 9), intent="softmax softmax softmax", name="softmax")


@pytest.mark.parametrize("eps", [1e-5, 1e-6, 3e-4])
def test_a_constant_of_the_reference_is_filled_in(eps):
    def norm(x, weight):
        return rms(x, weight, eps)

    reply = reply_of(problem_of(norm, T(4, 9), T(9)))

    source = extract_source(reply.text).source
    candidate = parse_candidate(source)
    assert [s.name for s in candidate.signature.inputs] == ["x", "weight"]
    assert f"N, {eps!r})" in source
    assert f"# eps = {eps!r} is a constant of the reference" in source


def test_a_default_that_was_not_passed_is_a_constant():
    def norm(x, weight, *, epsilon=2e-3):
        return rms(x, weight, epsilon)

    assert "N, 0.002)" in reply_of(problem_of(norm, T(4, 9), T(9))).text


def test_a_small_difference_in_a_constant_is_seen():
    """eps = 1.1e-5 stands nowhere in the reference as a number, and no usual value is close enough."""
    with pytest.raises(NoLibraryMatchError):
        entry_of(lambda x, w: rms(x, w, float("1.1") * float("1e-5")), T(4, 9), T(9))


def test_constant_steps_become_a_let():
    source = extract_source(reply_of(problem_of(lambda u: jacobi(u, 25), normal(8, 9))).text).source

    candidate = parse_candidate(source)
    assert "//! let steps = 25" in source
    assert len(candidate.signature.inputs) == 1


def test_the_candidate_has_the_problems_name_and_order():
    problem = problem_of(lambda eps, w, x: rms(x, w, eps), 1e-5, T(9), T(2, 4, 9), name="my_norm")

    signature = parse_candidate(extract_source(reply_of(problem).text).source).signature

    assert signature.name == "my_norm"
    assert [s.name for s in signature.inputs] == ["eps", "weight", "x"]
    assert len(signature.outputs[0].dims) == 3


def test_the_reply_is_streamed():
    problem = problem_of(softmax, normal(4, 9))

    first, *deltas, last = ShippedOnly().stream(Request("", (Message("user", "x"),), problem=problem))

    assert isinstance(first, Started)
    assert len(deltas) > 3
    assert all(isinstance(d, TextDelta) for d in deltas)
    assert isinstance(last, Reply)
    assert "".join(d.text for d in deltas) == last.text
    assert last.stop_reason == "end"
    assert last.usage.output_tokens == 0


def test_a_later_attempt_gets_the_next_best():
    def doubled(a, b):
        return a + b

    problem = problem_of(doubled, normal(9), normal(9))
    names = [reply_of(problem, attempts=n).details["library_entry"] for n in range(3)]

    assert names == ["add", "axpby", "bias_add"]
    with pytest.raises(NoLibraryMatchError, match="Nothing else") as caught:
        reply_of(problem, attempts=3)
    assert "add, axpby, bias_add" in str(caught.value)


def test_no_match_says_what_was_looked_at_and_what_to_do():
    with pytest.raises(NoLibraryMatchError) as caught:
        entry_of(lambda x: x[::-1], normal(4, 9), name="flip")

    text = str(caught.value)
    assert "flip(float32[4, 9])" in text
    assert "entries were compared" in text
    for word in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "--provider openai-compatible"):
        assert word in text


def test_a_reference_that_takes_only_its_own_sizes_is_compared_on_them():
    def softmax_of_twelve(x):
        assert x.shape == (3, 12)
        return softmax(x)

    assert entry_of(softmax_of_twelve, normal(3, 12)) == "softmax"


def test_a_reference_that_prints_and_warns_stays_silent(capsys):
    def loud(x):
        print("computing")
        return np.log(-np.abs(x)) * 0 + x

    problem = problem_of(loud, normal(4, 9))
    capsys.readouterr()
    with pytest.raises(NoLibraryMatchError):
        reply_of(problem)

    assert capsys.readouterr() == ("", "")


def test_the_user_s_arrays_are_not_touched():
    x = normal(4, 9)
    before = x.copy()

    entry_of(softmax, x)

    assert np.array_equal(x, before)
