"""Kernels that are written, measured and compared by hand, on a real GPU: `pytest tests/gpu -m gpu`."""

import numpy as np
import pytest

from llmkernel.devices.cuda.device import CudaDevice
from llmkernel.devices.cuda.profile import find_ncu
from llmkernel.devices.cuda.sanitizer import find_sanitizer
from llmkernel.errors import DeviceError, NotAcceptedError
from llmkernel.evaluation import profiling
from llmkernel.evaluation.comparing import compare_sources
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.synthesis.unverified_source import accept_unverified
from tests.unit.evaluation.kernels import ROW_SUM, row_sum

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(CudaDevice.unavailable_reason() is not None, reason="no usable GPU here"),
]

NARROW = ROW_SUM.replace("128", "32").replace("k = 64", "k = 16")

TWICE = """//! double(x: float32[N]) -> y: float32[N]
//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)
__global__ void twice(const float* x, float* y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = 2 * x[i];
}
"""


@pytest.fixture(scope="module")
def problem():
    x = np.random.default_rng(0).standard_normal((4096, 2048)).astype(np.float32)
    return make_problem(*make_reference(row_sum, [x]), intent="sums of rows")


def accept(source, x):
    return accept_unverified(source, inputs={"x": x}, name="double", device="cuda")


def test_an_unverified_kernel_takes_arrays_of_the_gpu_and_spares_them():
    import cupy

    x = cupy.arange(1000, dtype=cupy.float32)
    kernel = accept(TWICE, x)
    assert kernel.report.outcome == "unverified"
    result = kernel(x)
    assert isinstance(result, cupy.ndarray)
    assert bool((result == 2 * x).all())
    with pytest.raises(NotAcceptedError):
        accept(TWICE.replace("if (i < N)", ""), x)
    trapping = accept(TWICE.replace("if (i < N)", "if (x[0] < 0) __trap(); if (i < N)"), x)
    with pytest.raises(DeviceError, match="unverified kernel double ended"):
        trapping(-1 - x)
    assert float(x.sum()) == 499500
    assert bool((kernel(x) == 2 * x).all())


@pytest.mark.skipif(find_sanitizer() is None, reason="compute-sanitizer is not installed")
def test_a_read_beyond_an_array_is_seen():
    x = np.arange(1000, dtype=np.float32)
    with pytest.raises(NotAcceptedError) as caught:
        accept(TWICE.replace("2 * x[i]", "x[i] + 0 * x[i + 1]"), x)
    assert caught.value.attempts[-1].report.outcome == "out_of_bounds"


def test_our_own_counters_are_measured(problem, monkeypatch):
    monkeypatch.setattr("llmkernel.devices.cuda.profile.find_ncu", lambda: None)
    found = profiling.profile_problem(problem, ROW_SUM, device="cuda")
    assert found.source == profiling.OWN
    assert {"time", "achieved bandwidth", "occupancy", "registers", "spills"} == {
        f.name for f in found.figures
    }
    assert any("not installed" in note for note in found.notes)


@pytest.mark.skipif(find_ncu() is None, reason="Nsight Compute is not installed")
def test_ncu_gives_five_figures_or_says_why_not(problem):
    found = profiling.profile_problem(problem, ROW_SUM, device="cuda")
    if found.source == profiling.NCU:
        assert len(found.figures) == 5
        assert found.kernel == "row_sum"
    else:
        assert any(note.startswith("No counters: ") for note in found.notes)


def test_two_kernels_are_timed_in_turn_with_an_interval(problem):
    found = compare_sources(problem, (ROW_SUM, NARROW), ("wide", "narrow"), device="cuda")
    second = found.rows[1]
    assert second.ratio_low <= second.ratio <= second.ratio_high
    assert found.claim
    assert all("occupancy" in data for r in found.resources for data in r.values())
