from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.binding import convert_scalar
from llmkernel.candidate.candidate import Candidate, parse_candidate
from llmkernel.candidate.layout import contiguous_strides
from llmkernel.errors import BindingError, PreconditionError

KERNEL = "__global__ void k() {}"


def candidate(signature: str, *lines: str) -> Candidate:
    return parse_candidate("".join(f"//! {line}\n" for line in (signature, *lines, "k<<<1, 1>>>()")) + KERNEL)


def array(
    *shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None, address: int = 0
) -> ArrayArgument:
    return ArrayArgument(dtype, shape, strides, address)


def test_types_dimensions_and_scalars() -> None:
    found = candidate(
        "f(x: T[M, 2 * N], y: T[N], k: int32, a: T, flag: bool) -> z: T[M, k] where T in {float32, float16}"
    ).bind(
        [
            array(3, 8, dtype="float16"),
            array(4, dtype="float16"),
            ScalarValue(5),
            ScalarValue(0.1),
            ScalarValue(value=True),
        ]
    )

    assert found.types == {"T": "float16"}
    assert found.dims == {"M": 3, "N": 4}
    assert found.scalars == {"k": 5, "a": float(np.float16(0.1)), "flag": True}
    assert found.arrays["z"].shape == (3, 5)
    assert found.dtype("T") == "float16"
    assert found.dtype("int8") == "int8"


@pytest.mark.parametrize(
    ("dims", "size", "expected"),
    [
        ("2 * N", 8, 4),
        ("N + 1", 1, 0),
        ("3 * N - 2", 7, 3),
        ("N", 0, 0),
        ("10 - N", 4, 6),
        ("4 * (N + k)", 20, 2),
    ],
)
def test_a_dimension_inside_an_expression_is_solved(dims: str, size: int, expected: int) -> None:
    found = candidate(f"f(x: float32[{dims}], k: int32) -> y: float32[N]")

    assert found.bind([array(size), ScalarValue(3)]).dims == {"N": expected}


@settings(max_examples=50, deadline=None)
@given(n=st.integers(0, 1000), a=st.integers(1, 50), b=st.integers(0, 50))
def test_every_linear_size_is_solved(n: int, a: int, b: int) -> None:
    found = candidate(f"f(x: float32[{a} * N + {b}]) -> y: float32[N]")

    assert found.bind([array(a * n + b)]).dims == {"N": n}


SIGNATURE = (
    "f(x: T[M, N], w: float32[N], s: strided float32[M], p: float32[], k: int32, e: float16)"
    " -> y: T[M] where T in {float32, float16}"
)
GOOD: tuple[CallArgument, ...] = (array(2, 3), array(3), array(2), array(), ScalarValue(1), ScalarValue(1.5))


@pytest.mark.parametrize(
    ("index", "argument", "name", "reason", "words"),
    [
        (0, array(2, 3, dtype="float64"), "x", "dtype", "one of float32, float16 is needed, got float64"),
        (1, array(3, dtype="float64"), "w", "dtype", "float32 is needed, got float64"),
        (0, array(2), "x", "rank", "2 axes are needed, got 1"),
        (3, array(1), "p", "rank", "0 axes are needed, got 1"),
        (1, array(4), "w", "shape", "axis 0 has size 4, `N` (3) is needed"),
        (2, array(5), "s", "shape", "`M` (2)"),
        (0, array(2, 3, strides=(1, 2)), "x", "layout", "view with strides (1, 2)"),
        (1, array(3, strides=(0,)), "w", "layout", "view"),
        (1, array(3, strides=(-1,)), "w", "layout", "view"),
        (0, ScalarValue(1.0), "x", "rank", "an array is needed, got a scalar"),
        (4, array(), "k", "rank", "a scalar is needed, got an array"),
        (4, ScalarValue(2**31), "k", "value", "2147483648 does not fit in int32"),
        (4, ScalarValue(1.0), "k", "value", "1.0 does not fit in int32"),
        (5, ScalarValue(1e6), "e", "value", "does not fit in float16"),
        (5, ScalarValue(1j), "e", "value", "does not fit in float16"),
        (5, ScalarValue(2049), "e", "value", "does not fit in float16"),
    ],
)
def test_what_does_not_fit_is_named(
    index: int, argument: CallArgument, name: str, reason: str, words: str
) -> None:
    arguments = list(GOOD)
    arguments[index] = argument

    with pytest.raises(BindingError) as caught:
        candidate(SIGNATURE).bind(arguments)

    error = caught.value
    assert (error.argument, error.reason) == (name, reason)
    assert words in error.what
    assert error.rule
    assert error.received
    assert error.next_step


def test_the_number_of_arguments() -> None:
    with pytest.raises(BindingError, match="takes 6 arguments, got 5") as caught:
        candidate(SIGNATURE).bind(GOOD[:-1])

    assert caught.value.reason == "count"


def test_one_type_variable_is_one_dtype() -> None:
    found = candidate("f(x: T[N], y: T[N]) -> z: T[N] where T in {float32, float16}")

    with pytest.raises(BindingError, match="T is float16 by an argument before it, got float32") as caught:
        found.bind([array(3, dtype="float16"), array(3)])
    assert (caught.value.argument, caught.value.reason) == ("y", "dtype")


@pytest.mark.parametrize("dims", ["2 * N", "N // 2", "ceil_div(N, 4)", "N * N", "M * N"])
def test_a_size_that_no_dimension_explains(dims: str) -> None:
    found = candidate(f"f(x: float32[M, {dims}]) -> y: float32[N]")

    with pytest.raises(BindingError) as caught:
        found.bind([array(2, 7)])
    assert (caught.value.argument, caught.value.reason) == ("x", "shape")


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2, 3), (3, 1)), ((1, 3), (99, 1)), ((2, 1), (1, 7)), ((0, 3), (5, 7)), ((), ()), ((1,), (0,))],
)
def test_what_counts_as_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    dims = ", ".join(f"D{i}" for i in range(len(shape)))
    found = candidate(f"f(x: float32[{dims}]) -> y: float32[1]")

    assert found.bind([ArrayArgument("float32", shape, strides)]).arrays["x"].shape == shape


@settings(max_examples=50, deadline=None)
@given(shape=st.lists(st.integers(0, 5), max_size=4))
def test_contiguous_strides_are_numpys(shape: list[int]) -> None:
    x = np.zeros(shape, np.int8)
    if x.size:
        assert contiguous_strides(shape) == x.strides


def test_strided_inputs_keep_their_strides() -> None:
    found = candidate(
        "f(x: strided float32[M, N]) -> y: float32[M]", "let a = x.stride(0) + 100 * x.stride(1)"
    )

    assert found.bind([array(4, 6, strides=(1, 4))]).environment["x.stride(1)"] == 4
    assert found.bind([array(4, 6)]).environment["x.stride(0)"] == 6


def test_a_broadcast_view_is_not_written_to() -> None:
    found = candidate("f(inout x: strided float32[M, N])")

    assert found.bind([array(4, 6, strides=(12, 2))]).dims == {"M": 4, "N": 6}
    with pytest.raises(BindingError, match="broadcast view") as caught:
        found.bind([array(4, 6, strides=(0, 1))])
    assert caught.value.reason == "layout"


def test_preconditions_of_the_arguments() -> None:
    found = candidate(
        "f(x: float32[N], k: int32) -> y: float32[k]", "let half = N // 2", "require 1 <= k <= half"
    )

    assert found.bind([array(8), ScalarValue(4)]).dims == {"N": 8}
    with pytest.raises(PreconditionError) as caught:
        found.bind([array(8), ScalarValue(5)])
    assert "requires `1 <= k <= half`" in str(caught.value)
    assert "half = 4, k = 5" in str(caught.value)
    assert "line 3" in str(caught.value)


def test_an_output_of_negative_size() -> None:
    found = candidate("f(x: float32[N]) -> y: float32[N - 4]")

    with pytest.raises(BindingError, match="negative size") as caught:
        found.bind([array(3)])
    assert caught.value.argument == "y"


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.5, "float16", 1.5),
        (0.1, "bfloat16", 0.10009765625),
        (0.1, "float32", float(np.float32(0.1))),
        (0.1, "float64", 0.1),
        (float("inf"), "float32", float("inf")),
        (1e39, "float32", None),
        (3, "float32", 3.0),
        (2**24 + 1, "float32", None),
        (2**53 + 1, "float64", None),
        (10**400, "float64", None),
        (True, "bool", True),
        (1, "bool", True),
        (2, "bool", None),
        (1.0, "bool", None),
        (True, "int32", 1),
        (-129, "int8", None),
        (255, "uint8", 255),
        (-1, "uint64", None),
        (2**64 - 1, "uint64", 2**64 - 1),
        (1 + 2j, "complex64", 1 + 2j),
        (1.5, "complex128", 1.5 + 0j),
        (1e300 + 0j, "complex64", None),
    ],
)
def test_scalars_keep_their_value_or_are_refused(value: complex, dtype: str, expected: object) -> None:
    actual = convert_scalar(value, dtype)

    assert actual == expected
    assert type(actual) is type(expected)


def test_numpy_scalars_are_taken() -> None:
    found = candidate("f(x: float32[N], k: int32) -> y: float32[k]")

    assert found.bind([array(8), ScalarValue(np.int64(4))]).scalars == {"k": 4}
    half = candidate("f(x: float32[N], e: bfloat16) -> y: float32[N]")
    assert half.bind([array(8), ScalarValue(ml_dtypes.bfloat16(1.5))]).scalars == {"e": 1.5}
