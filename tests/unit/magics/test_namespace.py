from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import LLMKernelError, ReferenceProblem, UsageError
from llmkernel.magics.inputs import collect_inputs, parameters_of
from llmkernel.magics.namespace import resolve_callable


def softmax(x, axis=-1):
    return x


class Model:
    shape_of_weights = (3,)

    def forward(self, x, scale=2.0):
        return x * scale

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    @property
    def broken(self):
        raise RuntimeError("no weights loaded")


NAMESPACE = {
    "np": np,
    "softmax": softmax,
    "square": lambda x: x * x,
    "model": Model(),
    "Model": Model,
    "x": np.ones(4, "float32"),
    "_private": softmax,
}


@pytest.mark.parametrize(
    "words", ["softmax", "square", "model", "model.forward", "np.linalg.norm", "_private"]
)
def test_callables_are_found_by_dotted_name(words):
    assert resolve_callable(NAMESPACE, words, "reference") == eval(words, dict(NAMESPACE))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("sofmax", "Did you mean softmax?"),
        ("modle.forward", "Did you mean model?"),
        ("model.foward", "Did you mean forward?"),
        ("np.linalg.nrom", "Did you mean norm?"),
        ("x", "not callable"),
        ("model.shape_of_weights", "tuple"),
        ("Model", "model = Model(…)".replace("model", "model")),
        ("model.broken", "no weights loaded"),
        ("len", "no reference called len"),
    ],
)
def test_what_is_not_there_or_not_callable_is_explained(words, says):
    with pytest.raises(ReferenceProblem) as caught:
        resolve_callable(NAMESPACE, words, "reference")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "words", ["lambda x: x", "softmax()", "a[0]", "softmax.", ".x", "__import__('os').system", "1"]
)
def test_expressions_are_not_evaluated(words):
    with pytest.raises(UsageError):
        resolve_callable(NAMESPACE, words, "baseline")


@given(st.text())
def test_any_words_are_resolved_or_refused(words):
    try:
        assert callable(resolve_callable(NAMESPACE, words, "reference"))
    except LLMKernelError:
        pass


def inputs(reference, words=None, **more):
    return collect_inputs(NAMESPACE | more, reference, "f", words)


def test_inputs_are_the_variables_called_like_the_parameters():
    y = np.zeros(4)
    assert list(inputs(lambda y, x: x, y=y).items()) == [("y", y), ("x", NAMESPACE["x"])]


def test_a_default_stays_unless_its_variable_is_data():
    assert list(inputs(softmax)) == ["x"]
    assert inputs(softmax, axis=0)["axis"] == 0
    assert list(inputs(softmax, axis=lambda: None)) == ["x"]
    assert list(inputs(softmax, axis="rows")) == ["x"]


def test_a_module_has_the_parameters_of_forward():
    assert list(parameters_of(Model())) == ["x", "scale"]
    assert list(inputs(Model(), "x, 3.0")) == ["x", "scale"]


def test_a_missing_input_is_named():
    with pytest.raises(ReferenceProblem) as caught:
        inputs(lambda x, weights: x)
    assert "weights" in caught.value.what
    assert "--inputs" in caught.value.next_step


def test_inputs_are_written_like_a_call():
    found = inputs(lambda a, b, *, eps=0.0: a, "x[:2], b=np.zeros((2, 3)), eps=[e for e in (1e-6,)][0]")

    assert list(found) == ["a", "b", "eps"]
    assert (found["a"].shape, found["b"].shape, found["eps"]) == ((2,), (2, 3), 1e-6)


def test_a_variadic_reference_has_numbered_inputs():
    assert list(inputs(lambda x, *rest, **more: x, "x, x, x, k=2")) == ["x", "rest_0", "rest_1", "k"]
    with pytest.raises(ReferenceProblem, match="example input"):
        inputs(lambda *rest: rest)


def test_what_is_collected_is_what_a_problem_takes():
    from llmkernel.problem.reference import reference_from_names

    for function, words in [
        (softmax, None),
        (lambda *rest: rest[0], "x, x"),
        (lambda x, /, *, k=1: x, "x, k=2"),
    ]:
        reference, values = reference_from_names(function, inputs(function, words))
        assert values[0] is NAMESPACE["x"]
        assert reference.call(values) is not None


def test_a_callable_without_a_signature_has_numbered_inputs():
    def no_signature(*args):
        return args[0]

    no_signature.__signature__ = "hidden"
    with pytest.raises((TypeError, ValueError)):
        inspect.signature(no_signature)
    with pytest.raises(ReferenceProblem):
        inputs(no_signature)
    assert list(inputs(no_signature, "x, x[:2], k=3")) == ["inputs_0", "inputs_1", "k"]


@pytest.mark.parametrize(
    ("reference", "words", "says"),
    [
        (softmax, "x, y=1", "y"),
        (softmax, "", "x"),
        (softmax, "nowhere", "NameError"),
        (softmax, "x[0", "between the parentheses"),
        (softmax, "x)(x", "between the parentheses"),
        (softmax, "*x", "between the parentheses"),
        (softmax, "**x", "between the parentheses"),
        (softmax, "x) + f(x", "between the parentheses"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(reference, words, says):
    with pytest.raises(LLMKernelError) as caught:
        inputs(reference, words)
    assert says in str(caught.value)
