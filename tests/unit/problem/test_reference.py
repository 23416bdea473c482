import functools

import numpy as np
import pytest
import torch

from llmkernel.errors import ReferenceProblem
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference, reference_from_names

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def double(x):
    return 2 * x


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return self.factor * x


def closure(factor):
    def inner(x):
        return factor * x

    return inner


@pytest.mark.parametrize(
    "function",
    [
        double,
        lambda x: 2 * x,
        closure(2),
        Scaler(2).apply,
        functools.partial(lambda factor, x: factor * x, 2),
    ],
    ids=["function", "lambda", "closure", "method", "partial"],
)
def test_every_kind_of_callable_is_a_reference(function):
    problem = make_problem(*make_reference(function, [X]))
    np.testing.assert_array_equal(problem.evaluate_reference([X])[0], 2 * X)


def test_a_ufunc_is_a_reference():
    problem = make_problem(*make_reference(np.exp, [X]))
    assert problem.contract.dtypes == ("float32",)


def test_a_modules_parameters_become_inputs_and_run_in_float64():
    module = torch.nn.Linear(3, 4)
    problem = make_problem(*make_reference(module, [torch.from_numpy(X)]))
    assert [s.name for s in problem.signature.inputs] == ["input", "weight", "bias"]
    wide = problem.run_reference(problem.host_inputs(), is_wide=True).results[0]
    assert wide.dtype == np.float64
    expected = (
        X.astype(float) @ module.weight.detach().double().numpy().T + module.bias.detach().double().numpy()
    )
    np.testing.assert_allclose(wide, expected, rtol=1e-14)


def test_a_call_takes_the_modules_current_weights():
    module = torch.nn.Linear(3, 4)
    reference, _ = make_reference(module, [torch.from_numpy(X)])
    with torch.no_grad():
        module.bias.fill_(7.0)
    inputs = reference.inputs_of_call((torch.from_numpy(X),), {})
    assert float(inputs[2][0]) == 7.0


def test_defaults_are_fixed_unless_a_value_is_there():
    def norm(x, eps=1e-5, mode="rms"):
        return x / (np.sqrt((x * x).mean()) + eps)

    reference, inputs = reference_from_names(norm, {"x": X})
    assert reference.parameters == ("x",)
    assert reference.fixed == {"eps": 1e-5, "mode": "rms"}
    reference, inputs = reference_from_names(norm, {"x": X, "eps": 1e-3})
    assert reference.parameters == ("x", "eps")
    assert inputs[1] == 1e-3


def test_a_fixed_parameter_refuses_another_value():
    reference, _ = reference_from_names(lambda x, scale=2.0: scale * x, {"x": X})
    with pytest.raises(ReferenceProblem, match=r"scale was fixed at 2\.0"):
        reference.inputs_of_call((X, 3.0), {})
    assert reference.inputs_of_call((X,), {"scale": 2.0})[0] is X


def test_in_place_references_are_recognised():
    def scale_(x, a):
        x *= a

    problem = make_problem(*make_reference(scale_, [X.copy(), 2.0]))
    assert problem.contract.mutated == (0,)
    assert problem.signature.inputs[0].is_inout
    np.testing.assert_array_equal(problem.evaluate_reference([X.copy(), 3.0])[0], 3 * X)


def test_the_example_itself_is_never_changed():
    x = X.copy()

    def clobber(x):
        x[:] = 0
        return x + 1

    make_problem(*make_reference(clobber, [x]))
    np.testing.assert_array_equal(x, X)


async def coroutine(x):
    return x


def generator(x):
    yield x


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        (3, [X], "cannot be called"),
        (Scaler, [X], "is a class"),
        (coroutine, [X], "coroutine"),
        (generator, [X], "generator"),
        (double, [X, X], "cannot be called with these inputs"),
        (double, [3.0], "None of the inputs is an array"),
        (lambda x: {"y": x}, [X], "not an array"),
        (lambda x: None, [X], "returned nothing"),
        (lambda x: 1 / 0, [X], "raised ZeroDivisionError"),
        (lambda x: x, [X.astype("datetime64[s]")], "dtype"),
        (lambda xs: xs[0], [[X, X]], "list of arrays"),
    ],
)
def test_what_cannot_be_a_problem_is_refused_clearly(function, inputs, message):
    with pytest.raises(ReferenceProblem, match=message) as caught:
        make_problem(*make_reference(function, inputs))
    assert caught.value.next_step or message == "cannot be called with these inputs"


def test_a_sparse_tensor_is_refused_by_name():
    with pytest.raises(ReferenceProblem, match="x is a sparse tensor"):
        make_problem(*make_reference(lambda x: x, [torch.eye(3).to_sparse()]))


def test_bfloat16_tensors_keep_their_bits():
    x = torch.randn(5, 3).to(torch.bfloat16)
    problem = make_problem(*make_reference(lambda x: x * 2, [x]))
    host = problem.host_inputs()[0]
    assert host.dtype.name == "bfloat16"
    back = problem.evaluate_reference([host])[0]
    assert torch.equal(torch.from_numpy(back.view(np.int16).copy()).view(torch.bfloat16), x * 2)


def test_results_in_namedtuples_are_results():
    problem = make_problem(*make_reference(torch.sort, [torch.randn(4, 5)]))
    assert problem.contract.dtypes == ("float32", "int64")
    assert problem.contract.returns_tuple
