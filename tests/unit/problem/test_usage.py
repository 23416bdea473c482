import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.problem.reference import Reference, make_reference
from llmkernel.problem.usage import Usage, usages

PADDING = -7


def known(function, *values):
    return usages(make_reference(function, values)[0])


X = np.ones((4, 6), np.float32)
T = np.arange(4)


def ignores_a_label(x, t):
    keep = t != -100
    return np.where(keep, x[np.arange(len(t)), np.where(keep, t, 0)], 0)


def ignores_negative_labels(x, t):
    return np.where(t[:, None] >= 0, x, 0)


def drops_padding(x, t):
    return np.where(t.reshape(-1, 1) == PADDING, 0, x)


def asks_for_its_shape(x, t):
    return x * 2 if t.shape[0] > 3 else x + t.sum()


def assigns_its_parameter(x, t):
    x = x - x.mean()
    return np.where(x > 0, x, t[:, None])


@pytest.mark.parametrize(
    ("function", "marks"),
    [
        (ignores_a_label, {"t": (-100,)}),
        (ignores_negative_labels, {"t": (0, -1)}),
        (drops_padding, {"t": (PADDING,)}),
        (asks_for_its_shape, {}),
        (assigns_its_parameter, {}),
    ],
)
def test_numbers_that_an_input_is_compared_with_are_found(function, marks):
    assert {n: u.marks for n, u in known(function, X, T).items() if u.marks} == marks


def test_the_closest_numbers_on_both_sides_of_a_bound_are_meant():
    def between(x):
        return (x > 2) & (x >= PADDING) & (x == 0.5)

    assert set(known(between, X)["x"].marks) == {2, 3, PADDING, PADDING - 1, 0.5}


def masks_by_length(x, lengths):
    places = np.arange(x.shape[1])[None, :]
    return np.where(places < lengths[:, None], x, 0)


def test_what_positions_are_compared_with_is_a_length():
    assert known(masks_by_length, X, T)["lengths"].is_length
    assert "x" not in known(masks_by_length, X, T)


def test_what_is_searched_in_is_in_order():
    def by_function(a, v):
        return np.searchsorted(a, v, side="right")

    def by_method(a, v):
        return a.searchsorted(v)

    def by_keyword(v, a):
        return np.digitize(v, bins=a)

    def in_an_order_of_its_own(a, v, order):
        return np.searchsorted(a, v, sorter=order)

    for function in (by_function, by_method):
        assert known(function, X[0], X[1]) == {"a": Usage(is_sorted=True)}
    assert known(by_keyword, X[0], X[1])["a"].is_sorted
    assert known(np.searchsorted, X[0], X[1]) == {"a": Usage(is_sorted=True)}
    assert known(np.interp, X[0], X[1], X[2])["xp"].is_strict
    assert "a" not in known(in_an_order_of_its_own, X[0], X[1], T)


def test_only_what_is_calculated_with_is_a_number():
    def corrects(x, step):
        return x / (1 - 0.9**step)

    def repeats(x, step):
        for _ in range(step):
            x = x * 2
        return x

    def shifts(x, step):
        return np.roll(x, step) * step

    def raises(x, step):
        return x**step

    def slices(x, step):
        return x[step:] * 2

    assert known(corrects, X, 3)["step"].is_number
    for function in (repeats, shifts, raises, slices):
        assert not known(function, X, 3).get("step", Usage()).is_number


@given(st.text(max_size=80))
def test_any_source_is_answered(source):
    reference = Reference(lambda x: x, "f", ("x",), source=source)
    assert isinstance(usages(reference), dict)


@given(
    st.sampled_from(["x", "x[0]", "-x", "3", "np.arange(4)", "x.abs()"]),
    st.sampled_from(["<", "<=", "==", "!=", "is"]),
)
def test_any_comparison_is_answered(side, operator):
    source = f"def f(x):\n    return {side} {operator} {side}\n"

    def f(x):
        return x

    assert isinstance(usages(Reference(f, "f", ("x",), source=source)), dict)
