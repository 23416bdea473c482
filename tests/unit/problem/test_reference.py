import functools
import sys
import threading

import numpy as np
import pytest
import torch

from llmkernel.candidate.header import parse_header
from llmkernel.errors import ReferenceProblem
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference, reference_from_names
from llmkernel.problem.silence import silent_stdout

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


class Celsius(np.ndarray):
    """An array that means more than its numbers."""


def fake_tensor():
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode().from_tensor(torch.ones(4))


def nested_tensor():
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


UNUSUAL = {
    "masked": (lambda: np.ma.masked_array(X, mask=X > 2), "is a numpy.ma.MaskedArray"),
    "matrix": (lambda: np.asmatrix(X), "is a numpy.matrix"),
    "subclass": (lambda: X.view(Celsius), "Celsius"),
    "other byte order": (lambda: X.astype(X.dtype.newbyteorder()), "byte order"),
    "objects": (lambda: np.array([1, None]), "dtype 'object'"),
    "text": (lambda: np.array(["a"]), "dtype 'str"),
    "fields": (lambda: np.zeros(3, [("a", "f4")]), "dtype 'void"),
    "extended precision": (lambda: X.astype(np.longdouble), "dtype 'float"),
    "sparse COO": (lambda: torch.eye(3).to_sparse(), "is a sparse tensor"),
    "sparse CSR": (lambda: torch.eye(3).to_sparse_csr(), "is a sparse tensor"),
    "nested": (nested_tensor, "is a nested tensor"),
    "meta": (lambda: torch.empty(3, device="meta"), "on the device meta"),
    "fake": (fake_tensor, "FakeTensor"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "dtype 'qint8'"),
    "half complex": (lambda: torch.zeros(3, dtype=torch.complex32), "dtype 'complex32'"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "message"), UNUSUAL.values(), ids=UNUSUAL.keys())
def test_an_input_that_is_more_than_its_elements_is_refused_by_name(make, message):
    with pytest.raises(ReferenceProblem, match=message) as caught:
        make_problem(*make_reference(lambda x: x, [make()]))
    assert str(caught.value).startswith("x")
    assert caught.value.next_step


@pytest.mark.parametrize(
    "result",
    [np.ma.masked_array(X, mask=X > 2), np.array([None, 1]), 10**30],
    ids=["masked", "objects", "int"],
)
def test_a_result_that_is_no_plain_array_is_refused(result):
    with pytest.raises(ReferenceProblem, match="A result of the reference"):
        make_problem(*make_reference(lambda x: result, [X]))


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "x",
    [
        X[::-1],
        X.T,
        np.asfortranarray(X),
        np.broadcast_to(X[:1], (4, 3)),
        read_only(X.copy()),
        X[:0],
        X[0, 0:1],
    ],
    ids=["backwards", "transposed", "Fortran", "broadcast", "read-only", "empty", "one"],
)
def test_any_layout_of_a_plain_array_is_an_example(x):
    problem = make_problem(*make_reference(double, [x]))
    np.testing.assert_array_equal(problem.evaluate_reference(problem.host_inputs())[0], 2 * x)


def test_a_file_that_is_mapped_read_only_is_an_example(tmp_path):
    X.tofile(tmp_path / "x")
    x = np.memmap(tmp_path / "x", dtype=np.float32, mode="r")
    assert make_problem(*make_reference(double, [x])).contract.shapes == ((6,),)


def test_shapes_that_depend_on_values_are_refused():
    with pytest.raises(ReferenceProblem, match="depends on the values"):
        make_problem(*make_reference(lambda x: x[x > 0], [X]))
    with pytest.raises(ReferenceProblem, match="depends on the values"):
        make_problem(*make_reference(np.unique, [X]))


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), MemoryError(), RecursionError("too deep")])
def test_whatever_a_reference_raises_is_one_readable_error(error):
    def fails(x):
        raise error

    with pytest.raises(ReferenceProblem, match=f"The reference raised {type(error).__name__}"):
        make_problem(*make_reference(fails, [X]))


def test_an_interrupt_inside_the_reference_stays_an_interrupt():
    def stopped(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_problem(*make_reference(stopped, [X]))


def test_what_a_reference_prints_is_not_repeated_for_every_draw(capsys):
    def talks(x):
        print("hello")
        return x

    make_problem(*make_reference(talks, [X]))
    assert capsys.readouterr().out == ""


def test_what_another_thread_prints_meanwhile_is_shown(capsys):
    def talks(x):
        other = threading.Thread(target=print, args=["from the cell beside it"])
        other.start()
        other.join()
        print("dropped")
        return x

    before = sys.stdout
    problem = make_problem(*make_reference(talks, [X]))
    assert sys.stdout is before
    capsys.readouterr()
    problem.evaluate_reference([X])
    assert capsys.readouterr().out == "from the cell beside it\n"


def test_silence_ends_with_the_last_of_several_threads(capsys):
    entered, left = threading.Event(), threading.Event()

    def hold():
        with silent_stdout():
            entered.set()
            left.wait(60)

    before = sys.stdout
    other = threading.Thread(target=hold)
    with silent_stdout():
        other.start()
        assert entered.wait(60)
        print("dropped")
    print("shown")
    left.set()
    other.join()

    assert sys.stdout is before
    assert capsys.readouterr().out == "shown\n"


def удвоить(икс):  # noqa: PLC2401 - the point is the script
    return 2 * икс


def sorted(x):  # noqa: A001 - the point is that it hides the builtin
    return 2 * x


def test_names_in_other_scripts_and_names_of_builtins_are_names():
    problem = make_problem(*make_reference(удвоить, [X]))
    assert problem.name == "удвоить"
    np.testing.assert_array_equal(problem.evaluate_reference([X])[0], 2 * X)
    assert make_problem(*make_reference(sorted, [X])).name == "sorted"


def clip(x, min, max, float32):  # noqa: A002 - as NumPy and torch call them
    return np.clip(x, min, max) * float32


@pytest.mark.parametrize(
    ("function", "inputs"),
    [(удвоить, [X]), (clip, [X, -1.0, 1.0, 2.0])],
    ids=["other script", "words of the header"],
)
def test_the_signature_that_a_provider_sees_is_one_that_a_header_can_hold(function, inputs):
    signature = make_problem(*make_reference(function, inputs)).signature
    launches = "k<<<1, 1>>>(" + ", ".join(s.name for s in (*signature.inputs, *signature.outputs)) + ")"
    assert parse_header(f"//! {signature}\n//! {launches}\n").signature == signature


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
