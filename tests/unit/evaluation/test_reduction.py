import numpy as np
import pytest

from llmkernel.evaluation.reduction import ReductionLengths
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference


def lengths(function, sizes, *inputs):
    problem = make_problem(*make_reference(function, inputs))
    return ReductionLengths(problem).at(sizes, problem.host_inputs())


def ones(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "inputs", "sizes", "expected"),
    [
        (np.tanh, [ones(10**6)], {"N": 10**6}, 1),
        (softmax, [ones(20, 30)], {"M": 5000, "N": 4096}, 4096),
        (lambda x: x.sum(-1), [ones(20, 30)], {"M": 7, "N": 100}, 100),
        (lambda x: x.sum(), [ones(20, 30)], {"M": 7, "N": 100}, 700),
        (lambda a, b: a @ b, [ones(20, 30), ones(30, 40)], {"M": 5, "N": 4096, "K": 6}, 4096),
        (lambda x: x.T.copy(), [ones(20, 30)], {"M": 50, "N": 60}, 1),
    ],
    ids=["elementwise", "softmax", "row sum", "total", "product", "transpose"],
)
def test_the_length_is_measured_and_extrapolated(function, inputs, sizes, expected):
    assert lengths(function, sizes, *inputs) == [pytest.approx(expected, rel=0.2)]


def test_a_running_sum_has_half_its_axis_on_average():
    assert 20 <= lengths(lambda x: np.cumsum(x, axis=-1), {"M": 10, "N": 100}, ones(20, 30))[0] <= 120
