import numpy as np
import pytest

from llmkernel.devices.base import DeviceLimits
from llmkernel.evaluation.binding import shape_arguments
from llmkernel.evaluation.branches import workloads_for_branches
from llmkernel.evaluation.evaluate import adopt_signature
from llmkernel.evaluation.judge import Judge
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.workloads import Workload

LIMITS = DeviceLimits("cpu", "host", "sm_80", 8)
KERNELS = """
__global__ void plain(const float* x, float* y, int n) {}
__global__ void other(const float* x, float* y, int n) {}
"""


def reached(header, *inputs):
    problem = make_problem(*make_reference(lambda x, *_: x * 2, inputs))
    judge = Judge(problem, header + KERNELS, "cpu")
    candidate = judge.parse()
    adopt_signature(problem, candidate.header.signature)
    found = workloads_for_branches(judge, [], LIMITS)
    return {launch.kernel: w.sizes for w, plan in found for launch in plan.launches}, judge.dropped


def branching(condition, scalar=""):
    return f"""//! f(x: float32[M, N]{scalar}) -> y: float32[M, N]
//! when {condition}:
//!     other<<<1, 1>>>(x, y, M)
//! otherwise:
//!     plain<<<1, 1>>>(x, y, M)
"""


X = np.ones((5, 6), np.float32)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("(M * 131 + N * 17) % 101 == 77", lambda m, n: (m * 131 + n * 17) % 101 == 77),
        ("N > 100000", lambda m, n: n > 100000),
        ("M == 1 and N >= 64", lambda m, n: m == 1 and n >= 64),
    ],
)
def test_sizes_are_found_that_lead_to_every_launch(condition, holds):
    found, dropped = reached(branching(condition), X)
    assert holds(*found["other"].values())
    assert not holds(*found["plain"].values())
    assert dropped == []


@pytest.mark.parametrize("condition", ["M * N > 1000000000", "num_sms > 10000"])
def test_a_launch_that_no_size_leads_to_is_listed(condition):
    found, dropped = reached(branching(condition), X)
    if "M" in condition:
        assert set(found) == {"plain"}
    assert "line 3: `other` was never launched: no draw leads there." in dropped


def test_sizes_that_the_header_excludes_are_not_drawn():
    header = branching("N > 500").replace("//! when", "//! require M < 9\n//! when", 1)
    found, _ = reached(header, X)
    assert all(sizes["M"] < 9 for sizes in found.values())


def test_a_branch_that_a_scalar_decides_is_listed():
    _, dropped = reached(branching("k > 7", ", k: int32"), X, 3)
    assert "line 3: `other` was never launched: no draw leads there." in dropped


def test_a_launch_of_fixed_size_meets_more_parts_than_threads():
    header = """//! f(x: float32[M, N]) -> y: float32[M, N]
//! let P = ceil_div(N, 64)
//! other<<<ceil_div(N, 64), 64>>>(x, y, N)
//! plain<<<1, 512>>>(x, y, P)
"""
    problem = make_problem(*make_reference(lambda x: x * 2, [X]))
    judge = Judge(problem, header + KERNELS, "cpu")
    candidate = judge.parse()
    adopt_signature(problem, candidate.header.signature)

    def plan(sizes):
        arguments = shape_arguments(problem, candidate, Workload(sizes, "normal", 1))
        return candidate.plan(arguments, LIMITS)

    few = [plan({"M": 3, "N": n}) for n in (100, 1000)]
    ((workload, _),) = workloads_for_branches(judge, few, LIMITS)
    assert workload.sizes["N"] > 64 * 512
    many = [*few, plan({"M": 3, "N": 70001})]
    assert workloads_for_branches(judge, many, LIMITS) == []
