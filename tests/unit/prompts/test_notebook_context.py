"""What a prompt says of variables, cells and errors, whatever they do to be looked at."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.prompts.array_facts import MAX_ELEMENTS
from llmkernel.prompts.notebook_context import (
    MAX_OWN_WORDS,
    MAX_SOURCE,
    describe_cell,
    describe_error,
    describe_value,
    lookup,
)

KEY = "sk-ant-" + "a1B2" * 8


def test_an_array_is_described_and_not_sent():
    x = np.array([[0.125, np.nan, np.inf], [-7.5, np.nan, 1.0]], dtype="float32")

    assert describe_value("x", x) == (
        "`x`: numpy array float32[2, 3] on the host, C-contiguous; range -7.5 … 1, mean -2.125; 2 NaN; 1 infinite"
    )
    many = describe_value("y", np.arange(0.5, 1000))
    assert "998.5" not in many
    assert "no NaN" in many


@pytest.mark.parametrize(
    ("array", "facts"),
    [
        (np.array([3, -1], "int8"), ["int8[2]", "range -1 … 3"]),
        (np.array([True, False, True]), ["bool[3]", "2 of 3 True"]),
        (np.zeros((0, 4)), ["float64[0, 4]", "empty"]),
        (np.full(3, np.nan), ["3 NaN"]),
        (np.array([3 + 4j]), ["absolute values 5 … 5"]),
        (np.ones(3, ml_dtypes.bfloat16), ["bfloat16[3]", "range 1 … 1"]),
        (np.array([1, np.nan], ml_dtypes.float8_e5m2), ["float8_e5m2[2]", "1 NaN"]),
        (np.full(4, 60000, "float16"), ["mean 6"]),
        (np.ones((3, 4)).T, ["float64[4, 3]", "Fortran-contiguous"]),
        (np.ones((8, 8))[::2, ::2], ["strides (128, 16) bytes"]),
        (np.array(["a", "b"]), ["<U1[2]"]),
        (np.array([object()]), ["object[1]"]),
        (np.array(["2020-01-01"], "datetime64[D]"), ["range 2020-01-01"]),
        (np.array(2.5), ["float64[]", "range 2.5 … 2.5"]),
    ],
)
def test_arrays_of_every_kind(array, facts):
    found = describe_value("a", array)

    for fact in facts:
        assert fact in found


def test_a_large_array_is_sampled():
    large = np.broadcast_to(np.float32(1.0), (MAX_ELEMENTS, 3))

    assert "of one element in 4: range 1 … 1" in describe_value("a", large)


def test_tensors():
    torch = pytest.importorskip("torch")
    w = torch.tensor([[1.0, float("nan")]], dtype=torch.bfloat16).requires_grad_()

    found = describe_value("w", w)

    assert "torch tensor bfloat16[1, 2] on cpu, contiguous, requires_grad" in found
    assert "1 NaN" in found
    assert "range 1 … 1" in describe_value("f8", torch.ones(2).to(torch.float8_e4m3fn))
    assert "strides (1, 2) elements" in describe_value("t", torch.ones(3, 2).T)
    assert "sparse" in describe_value("s", torch.eye(3).to_sparse())
    assert "Linear(in_features=2" in describe_value("m", torch.nn.Linear(2, 2))


class SaysItself:
    def _repr_llm_(self):
        return "a queue of three jobs"

    def __repr__(self):
        raise AssertionError("its own words come first")


def test_a_value_speaks_for_itself():
    assert "a queue of three jobs" in describe_value("q", SaysItself())


def raising(kind):
    class Raises:
        def __repr__(self):
            raise kind("no")

        _repr_llm_ = __repr__

    return Raises()


@pytest.mark.parametrize("kind", [ValueError, RecursionError, SystemExit, BaseException, MemoryError])
def test_a_repr_may_raise_anything(kind):
    assert kind.__name__ in describe_value("v", raising(kind))


def test_an_interrupt_passes_through_a_repr():
    with pytest.raises(KeyboardInterrupt):
        describe_value("v", raising(KeyboardInterrupt))


class Says:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


@pytest.mark.parametrize(
    "value", [Says("y " * 5_000_000), Says("y" * 10_000_000), "y" * 10_000_000, b"y" * 10_000_000]
)
def test_ten_megabytes_are_cut(value):
    assert len(describe_value("v", value)) < 1500


@pytest.mark.parametrize("padding", [0, 390, 1590, 1600, 1605, 5000])
def test_a_secret_in_a_repr_is_not_sent_not_even_its_half(padding):
    for text in (
        "x" * padding + " " + KEY,
        ("y" * padding + ":" + KEY) * 3,
        "z " * (padding // 2) + KEY + " z" * 4000,
    ):
        for value in (Says(text), text, [text], {"k": text}, {text: 1}):
            assert "a1B2" not in describe_value("v", value)


def test_a_password_is_known_by_its_name():
    found = describe_value("db_password", "correct horse battery")

    assert "horse" not in found
    assert "looks like a secret" in found
    assert "horse" in describe_value("phrase", "correct horse battery")
    assert "horse" not in describe_value("settings", {"password": "correct horse battery"})


def test_functions_are_described_by_their_source():
    def scale(x, factor=2):
        # a comment
        return x * factor

    assert "# a comment\n    return x * factor" in describe_value("scale", scale)
    assert "builtins.len" in describe_value("len", len)
    assert "class" not in describe_value("f", np.sum).partition("```")[0]
    assert len(describe_value("re", re.compile)) < 2 * MAX_SOURCE
    assert "numpy" in describe_value("np", np)


def test_containers_are_opened_a_little():
    found = describe_value(
        "d", {"weights": np.ones((3, 4), "float32"), "n": [1, 2], "more": {"a": {"b": {"c": 1}}}}
    )

    assert found.startswith("`d`: dict of 3: ")
    assert "'weights': numpy array float32[3, 4]" in found
    assert "list of 2: int 1; int 2" in found
    assert "… 994 more" in describe_value("r", list(range(1000)))
    loop = []
    loop.append(loop)
    assert "list of 1" in describe_value("loop", loop)
    assert "int" in describe_value("big", 10**5000)


class EvilShape(np.ndarray):
    @property
    def shape(self):
        raise ValueError("no shape")


def test_an_array_whose_shape_raises():
    assert "ValueError" in describe_value("e", np.ones(3).view(EvilShape))


class Table:
    columns = ("a", KEY)
    dtypes = ("int64", "object")
    shape = (10, 2)

    def __repr__(self):
        raise AssertionError("rows are not sent")


def test_a_table_is_its_columns():
    found = describe_value("t", Table())

    assert "shape (10, 2), columns: a (int64)" in found
    assert "a1B2" not in found


@given(
    st.recursive(
        st.none() | st.text() | st.binary() | st.floats() | st.integers(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
    )
)
def test_any_plain_value_has_a_short_description(value):
    found = describe_value("v", value)

    assert found.startswith("`v`: ")
    assert len(found) < MAX_OWN_WORDS
    found.encode("utf-8")


def test_a_cell_is_sent_whole_or_not_at_all():
    assert describe_cell("cell [1]", "```\nx = 1") == "cell [1]:\n````python\n```\nx = 1\n````"
    left_out = describe_cell("cell [2]", f"x = 1\nkey = '{KEY}'")
    assert left_out == "cell [2] is left out: line 2 holds what looks like an Anthropic key."


def fail(depth):
    if depth:
        return fail(depth - 1)
    raise KeyError(f"missing\x1b[31m {KEY}")


def caught(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        return error
    raise AssertionError


def test_an_error_has_its_frames_and_no_secrets():
    found = describe_error(caught(fail, 2))

    assert "test_notebook_context.py, line" in found
    assert "in fail\n    return fail(depth - 1)" in found
    assert "KeyError: 'missing" in found
    assert "\x1b" not in found
    assert "a1B2" not in found


def test_a_deep_error_is_cut_in_the_middle():
    found = describe_error(caught(fail, 300))

    assert "frames left out" in found
    assert found.count("in fail") < 20


def test_causes_come_first():
    def chained():
        try:
            fail(0)
        except KeyError as error:
            raise ValueError("outer") from error

    found = describe_error(caught(chained))
    assert found.index("KeyError") < found.index("ValueError: outer")


def test_errors_may_be_hostile_too():
    class Hostile(Exception):
        def __str__(self):
            raise RuntimeError

    assert "raises RuntimeError" in describe_error(Hostile())
    assert len(describe_error(ValueError("x" * 10_000_000))) < 8000
    assert "f(" in describe_error(caught(compile, "f(\n", "cell", "exec"))


def test_a_library_is_named_without_the_folders_around_it():
    found = describe_error(caught(np.linalg.inv, np.zeros((2, 3))))

    assert "\nnumpy/linalg/" in found
    assert "site-packages" not in found


def test_names_with_dots():
    assert lookup({"np": np}, "np.linalg.norm") is np.linalg.norm
    with pytest.raises(AttributeError):
        lookup({"np": np}, "np.nothing")
