from itertools import pairwise

import numpy as np
import pytest

from llmkernel.problem.families import FAMILIES
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.relations import breaks_relation, restored
from llmkernel.problem.workloads import draw_inputs, full_workloads

X = np.random.default_rng(0).standard_normal((12, 40)).astype(np.float32)
LENGTHS = np.array([40, 3, 17, 9, 30, 31, 7, 1, 20, 5, 6, 12], np.int32)
COUNTS = np.random.default_rng(1).integers(0, 7, 9)
OFFSETS = np.concatenate([[0], COUNTS.cumsum()]).astype(np.int32)
VALUES = np.ones(int(OFFSETS[-1]), np.float32)


def problem_of(function, *inputs):
    return make_problem(*make_reference(function, inputs))


def ragged_sum(x, lengths):
    return np.where(np.arange(x.shape[1]) < lengths[:, None], x, 0).sum(-1)


def ragged_mean(x, lengths):
    return np.where(np.arange(x.shape[1]) < lengths[:, None], x, 0).sum(-1) / lengths


def segment_sum(offsets, values):
    return np.array([values[a:b].sum() for a, b in pairwise(offsets)], values.dtype)


def draws(problem, number):
    for family in FAMILIES:
        for workload in full_workloads(problem):
            inputs = draw_inputs(problem, workload.sizes, family, seed=workload.seed)
            yield workload.sizes, family, inputs[number]


@pytest.mark.parametrize(("function", "lowest"), [(ragged_sum, 0), (ragged_mean, 1)])
def test_lengths_stay_within_their_axis_and_are_zero_where_that_means_something(function, lowest):
    problem = problem_of(function, X, LENGTHS)
    least = 9
    for sizes, _, lengths in draws(problem, 1):
        if lengths.size and sizes["N"] > 0:
            assert lengths.max() <= sizes["N"]
            least = min(least, int(lengths.min()))
    assert least == lowest


def test_offsets_divide_their_axis():
    problem = problem_of(segment_sum, OFFSETS, VALUES)
    longest = 0.0
    for sizes, _, offsets in draws(problem, 0):
        if offsets.size < 2:
            continue
        assert offsets[0] == 0
        assert (np.diff(offsets) >= 0).all()
        size = next(n for s, n in sizes.items() if problem.sizes[s] == VALUES.size)
        assert offsets[-1] == size
        longest = max(longest, float(np.diff(offsets).max() / max(1, size)))
    assert longest == 1.0


@pytest.mark.parametrize("turn", [1, -1])
def test_what_is_searched_in_keeps_the_order_of_the_example(turn):
    bins = np.sort(X[0])[::turn].copy()
    problem = problem_of(np.digitize, X[1], bins)
    for _, _, drawn in draws(problem, 1):
        numbers = drawn[~np.isnan(drawn)][::turn]
        assert (numbers[1:] >= numbers[:-1]).all()
        assert breaks_relation(problem, [X[1], drawn]) == ""


def test_one_array_that_is_searched_and_searched_for_is_in_order():
    problem = problem_of(np.searchsorted, np.sort(X[0]), X[1])
    a, v = draw_inputs(problem, problem.sizes, "normal", seed=1, is_shared=True)
    assert a is v
    assert (a[1:] > a[:-1]).all()


def test_equal_places_are_not_drawn_where_a_line_goes_through_them():
    problem = problem_of(np.interp, X[0], np.sort(X[1]), X[2])
    for _, _, places in draws(problem, 1):
        assert (places[1:] > places[:-1]).all()


def test_an_example_without_order_asks_for_none():
    problem = problem_of(np.searchsorted, X[0], X[1])
    assert breaks_relation(problem, [X[2], X[3]]) == ""


def test_a_mixture_of_two_draws_is_put_in_order_again():
    problem = problem_of(np.searchsorted, np.sort(X[0]), X[1])
    mixed = np.concatenate([np.sort(X[2])[20:], np.sort(X[3])[:20]])
    assert breaks_relation(problem, [mixed, X[1]]) == "a"
    again = restored(problem, [mixed, X[1]])
    assert breaks_relation(problem, again) == ""
    assert np.array_equal(np.sort(mixed), again[0])
    assert np.array_equal(again[1], X[1])


def test_some_elements_are_numbers_that_the_reference_compares_them_with():
    labels = np.random.default_rng(0).integers(0, 40, 12)

    def loss(x, t):
        return np.where(t == -100, 0, x[np.arange(len(t)), np.where(t == -100, 0, t)])

    def strict_loss(x, t):
        if (t == -100).any():
            raise ValueError("no such label")
        return x[np.arange(len(t)), t]

    for function, is_met in ((loss, True), (strict_loss, False)):
        problem = problem_of(function, X, labels)
        drawn = [t for _, family, t in draws(problem, 1) if family == "decimals"]
        assert any((t == -100).any() for t in drawn) is is_met
        assert all(((t >= 0) | (t == -100)).all() for t in drawn)


def test_a_number_of_steps_goes_far_where_nothing_is_repeated():
    def corrects(x, step):
        return x / (1 - 0.9**step)

    def repeats(x, step):
        for _ in range(step):
            x = x * 0.5
        return x

    for function, least, most in ((corrects, 2000, 6000), (repeats, 80, 120)):
        problem = problem_of(function, X, 10)
        assert least <= draw_inputs(problem, problem.sizes, "normal", seed=1, scalars="far")[1] < most
