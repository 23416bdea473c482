"""Compiling in the spare worker while draws run in the other."""

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.evaluation import aside
from llmkernel.evaluation.aside import Aside
from llmkernel.evaluation.worker.client import POOL, Worker, WorkerLostError

TWICE = """//! twice(x: float32[N]) -> y: float32[N]
//! when N > 1000:
//!     twice<float, 4><<<ceil_div(N, 256), 256>>>(x, y, N)
//! otherwise:
//!     twice<float, 1><<<ceil_div(N, 256), 256>>>(x, y, N)
template <typename T, int V>
__global__ void twice(const T* x, T* y, int N) {
    static_assert(V < 8, "too many at once");
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) y[i] = T(2) * x[i];
}
"""


@pytest.fixture
def _on_cpu(monkeypatch):
    monkeypatch.setattr(aside, "DEVICES", frozenset(("cpu",)))


def judged(source):
    return evaluate(source, lambda x: 2 * x, [np.ones(64, np.float32)], device="cpu", level="full")


@pytest.mark.usefixtures("_on_cpu")
def test_kernels_that_the_first_draws_do_not_launch_are_compiled_aside():
    report = judged(TWICE)
    assert report.outcome == "passed", report.headline
    assert sorted(report.compile["names"]) == ["twice<float, 1>", "twice<float, 4>"]
    assert next(c for c in report.checks if c.name == "compile").summary.startswith("2 kernels")


@pytest.mark.usefixtures("_on_cpu")
def test_a_kernel_that_only_the_full_verification_launches_may_fail_to_compile():
    report = judged(TWICE.replace("float, 4", "float, 9"))
    assert report.outcome == "not_compiled"
    assert "too many at once" in report.headline


@pytest.mark.usefixtures("_on_cpu")
def test_nobody_waits_for_what_is_still_being_compiled():
    work = Aside("cpu", 5.0)
    compilation = work.begin(TWICE + "// another\n", ["twice<float, 1>"], None)
    worker = work.worker
    work.end()
    assert not worker.is_alive
    with pytest.raises(WorkerLostError):
        compilation.wait()


@pytest.mark.usefixtures("_on_cpu")
def test_what_was_compiled_aside_runs_there_and_the_worker_comes_back_as_the_spare():
    current = POOL.get("cpu")
    work = Aside("cpu", 5.0)
    first = work.begin(TWICE, ["twice<float, 1>"], None)
    second = work.begin(TWICE, ["twice<float, 4>"], None)
    first.wait()
    second.wait()
    assert first.session.worker is second.session.worker is not current
    worker = work.worker
    work.end()
    assert POOL.lend("cpu") is worker
    POOL.take_back(worker)


def test_a_device_that_compiles_on_the_host_has_no_second_compilation():
    assert Aside("cpu", 5.0).begin(TWICE, ["twice<float, 1>"], None) is None


def test_a_lent_worker_that_is_one_too_many_is_ended():
    first, second = POOL.lend("cpu"), POOL.lend("cpu")
    assert first is not second
    POOL.take_back(first)
    POOL.take_back(second)
    assert first.is_alive
    assert not second.is_alive


@pytest.mark.usefixtures("_on_cpu")
def test_a_candidate_that_does_not_compile_is_told_so_although_its_reference_fails_too():
    def reference(x):
        if x.dtype == np.float64:
            raise ValueError("no doubles")
        return 2 * x

    x = np.ones(64, np.float32)
    good = evaluate(TWICE, reference, [x], device="cpu")
    assert good.outcome == "passed", good.headline
    report = evaluate(TWICE.replace("float, 1", "float, 8"), reference, [x], device="cpu")
    assert report.outcome == "not_compiled"


@pytest.mark.usefixtures("_on_cpu")
def test_a_wrong_shape_is_found_while_the_compiler_still_runs():
    report = judged(TWICE.replace("y: float32[N]\n", "y: float32[N + 1]\n"))
    assert report.outcome == "wrong_shape", report.headline
    assert POOL.get("cpu").is_alive


@pytest.mark.usefixtures("_on_cpu")
def test_without_a_second_worker_the_first_compiles_it_all(monkeypatch):
    def no_worker(device):
        worker = Worker(device)
        worker.close()
        return worker

    monkeypatch.setattr(POOL, "lend", no_worker)
    report = judged(TWICE + "// alone\n")
    assert report.outcome == "passed", report.headline
    assert sorted(report.compile["names"]) == ["twice<float, 1>", "twice<float, 4>"]


def test_what_an_interrupt_left_lent_is_taken_back():
    lent = POOL.lend("cpu")
    Aside("cpu", 5.0).end()
    assert POOL.lend("cpu") is lent
    POOL.take_back(lent)
