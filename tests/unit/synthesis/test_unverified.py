"""Kernels without a reference, run for real on the cpu device: what is refused, what may be called, what it is called."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import pydoc

import numpy as np
import pytest
import torch

from llmkernel.errors import BindingError, DeviceError, NotAcceptedError, RecordError, UsageError
from llmkernel.evaluation.report import Report
from llmkernel.records.ledger import VerifiedLedger
from llmkernel.records.record import Record, record_key
from llmkernel.records.store import RecordStore
from llmkernel.synthesis.generated_kernel import GeneratedKernel
from llmkernel.synthesis.unverified_source import accept_unverified

X = np.arange(1000, dtype=np.float32)
BODY = """__global__ void twice(const float* x, float* y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = 2 * x[i];
}
"""
SOURCE = "//! double(x: float32[N]) -> y: float32[N]\n//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)\n" + BODY


def accept(source, inputs=None, **options):
    return accept_unverified(
        source, inputs={"x": X} if inputs is None else inputs, name="double", device="cpu", **options
    )


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    return accept(SOURCE, records_dir=tmp_path_factory.mktemp("kernels"))


def test_it_is_called_as_its_header_says(kernel):
    np.testing.assert_array_equal(kernel(X), 2 * X)
    np.testing.assert_array_equal(kernel(x=X[:7]), 2 * X[:7])
    assert kernel(np.zeros(0, np.float32)).shape == (0,)
    assert str(inspect.signature(kernel)) == "(x)"
    result = kernel(torch.ones(5))
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [2.0] * 5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((X, X), "count"),
        ((), "count"),
        ((X.astype(np.float64),), "dtype"),
        ((X.reshape(10, 100),), "rank"),
        (("x",), "kind"),
        ((torch.ones(3, requires_grad=True),), "grad"),
    ],
)
def test_it_refuses_by_name_what_its_header_does_not_take(kernel, arguments, reason):
    with pytest.raises(BindingError) as caught:
        kernel(*arguments)
    assert caught.value.reason == reason


def test_it_says_in_words_everywhere_that_it_is_unverified(kernel):
    assert kernel.report.outcome == "unverified"
    assert not kernel.report.is_passed
    assert not kernel.report.is_verified
    assert kernel.report.timing is None
    shown = io.StringIO()
    pydoc.Helper(output=shown)(kernel)
    for text in (
        repr(kernel),
        kernel._repr_html_(),
        kernel._repr_llm_(),
        shown.getvalue(),
        kernel.record.to_json(),
    ):
        assert "unverified" in text.lower()
    assert any("results" in sentence for sentence in kernel.report.not_checked)


def test_it_is_no_verified_kernel(kernel):
    assert not isinstance(kernel, GeneratedKernel)
    assert copy.deepcopy(kernel) is kernel
    with pytest.raises(UsageError, match="cannot be pickled"):
        pickle.dumps(kernel)


def test_a_report_without_a_reference_cannot_have_passed():
    with pytest.raises(ValueError, match="needs a reference"):
        Report("passed", "", is_verified=False)
    with pytest.raises(ValueError, match="has none"):
        Report("unverified", "")


@pytest.mark.parametrize(
    ("change", "outcome", "says"),
    [
        (("2 * x[i]", "2 * q[i]"), "not_compiled", "line 6"),
        (("if (i < N)", ""), "out_of_bounds", "`y`"),
        (("y[i] = 2 * x[i]", "y[i] = x[i] + 0 * x[i + 1]"), "out_of_bounds", "Element 1000 of `x`"),
        (("if (i < N)", "if (i < N / 2)"), "not_written", "500 elements"),
        (("y[i] = 2 * x[i]", "y[i] = x[i], ((float*)x)[i] = 0"), "input_mutated", "`x`"),
        (("2 * x[i]", "x[i] + 1 + y[i]"), "uninitialised_read", "`y`"),
        (("if (i < N)", "if (i == 0) for (;;) x = x + 0; else"), "timed_out", ""),
        (("twice<<<ceil_div(N, 256), 256>>>", "twice<<<1, 2048>>>"), "launch_failed", ""),
        (("twice<<<", "thrice<<<"), "rejected", "thrice"),
    ],
)
def test_what_leaves_its_arrays_or_does_not_compile_cannot_be_called(change, outcome, says, monkeypatch):
    monkeypatch.setattr("llmkernel.synthesis.unverified_source.evaluate_unverified", short_time_limit)
    with pytest.raises(NotAcceptedError) as caught:
        accept(SOURCE.replace(*change))
    report = caught.value.attempts[-1].report
    assert report.outcome == outcome, report.headline
    assert says in report.headline
    assert not report.is_verified


def short_time_limit(*args, **options):
    from llmkernel.evaluation.unverified import evaluate_unverified

    return evaluate_unverified(*args, timeout=1.0, **options)


def test_a_race_is_told_from_atomics_whose_order_is_free():
    racy = BODY.replace("if (i < N) y[i] = 2 * x[i]", "y[0] = (float)i")
    header = "//! last(x: float32[N]) -> y: float32[1]\n//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)\n"
    with pytest.raises(NotAcceptedError) as caught:
        accept(header + racy)
    assert caught.value.attempts[-1].report.outcome in ("data_race", "non_deterministic")
    exchanged = BODY.replace("if (i < N) y[i] = 2 * x[i]", "atomicExch(y, (float)i)")
    kernel = accept(header.replace("float32[1]", "float32[1] = 0") + exchanged)
    assert kernel.report.outcome == "unverified"
    assert any("atomics" in w or "order" in w for w in kernel.report.warnings)


def test_outputs_scalars_and_arrays_in_place_follow_the_header():
    source = """//! f(inout x: float32[N], a: float32, k: int32) -> (s: float32[k] = 0, n: int64)
//! f<<<1, 32>>>(x, a, s, n, N, k)
__global__ void f(float* x, float a, float* s, long long* n, int N, int k)
{
    for (int i = threadIdx.x; i < N; i += 32) x[i] *= a;
    if (threadIdx.x < k && threadIdx.x % 2) s[threadIdx.x] = 1;
    if (threadIdx.x == 0) *n = N;
}
"""
    kernel = accept(source, {"x": X.copy(), "a": 3.0, "k": 4})
    x = X.copy()
    s, n = kernel(x, 3.0, 4)
    np.testing.assert_array_equal(x, 3 * X)
    np.testing.assert_array_equal(s, [0, 1, 0, 1])
    assert (n.shape, n.dtype, int(n)) == ((), np.int64, 1000)
    tensor = torch.ones(8)
    kernel(tensor, 3.0, 1)
    assert tensor.tolist() == [3.0] * 8


def test_a_call_that_leaves_its_arrays_spares_the_notebooks():
    source = SOURCE.replace("if (i < N)", "if (i < 1000)").replace("x: float32[N]", "inout x: float32[N]")
    source = source.replace("const float* x", "float* x").replace("2 * x[i]", "2 * x[i]; if (i < N) x[i] = 7")
    kernel = accept(source)
    x = np.ones(10, np.float32)
    with pytest.raises(DeviceError, match="unverified kernel double ended `out_of_bounds`"):
        kernel(x)
    assert x.tolist() == [1.0] * 10
    np.testing.assert_array_equal(kernel(X.copy()), 2 * X)


def test_its_record_is_never_replayed(kernel, tmp_path):
    store = RecordStore(tmp_path / "kernels", ledger=VerifiedLedger(tmp_path / "ledger"))
    record = kernel.record
    # As if somebody had given it the key of a problem: what it says of itself still counts.
    key = record_key("f", record.problem.intent, record.problem.signature, record.problem.header_version)
    text = record.to_json().replace(record.key, key)
    claimed = Record.from_json(text.replace('"reference_fingerprint": ""', '"reference_fingerprint": "f"'))
    stored = store.save(claimed, kernel.source, is_verified_here=True)
    assert store.find(claimed.key) is None
    assert store.find(claimed.key, name="double") is None
    assert store.reason_to_verify(stored, claimed.environment) == "It was never verified."
    store.mark_verified(stored, claimed.environment)
    assert store.reason_to_verify(stored, claimed.environment) is not None
    # Nor does it become a verified one by a word: `passed` needs a reference.
    with pytest.raises(RecordError):
        Record.from_json(
            record.to_json().replace('"outcome": "unverified"', '"outcome": "passed"')
        ).read_report()
