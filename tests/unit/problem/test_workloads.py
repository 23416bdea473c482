import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.problem.families import FAMILIES, float_array, integer_array
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.scalars import can_be_negated, scalar_value, with_scalars
from llmkernel.problem.workloads import draw_inputs, full_workloads, quick_workloads, secret_sizes

X = np.ones((64, 48), np.float32)


def problem_of(function, *inputs):
    return make_problem(*make_reference(function, inputs))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.name)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5, 0), (7, 3)])
def test_every_family_fills_every_dtype_and_shape(family, dtype, shape):
    array = float_array(family, np.random.default_rng(1), shape, dtype)
    assert array.shape == shape
    assert array.dtype.name == dtype


def test_full_workloads_cover_the_sizes_that_kernels_get_wrong():
    workloads = full_workloads(problem_of(lambda x: x * 2, X))
    sizes = {tuple(w.sizes.values()) for w in workloads}
    extents = {n for s in sizes for n in s}
    assert {0, 1, 127, 129, 1023, 4097} <= extents
    assert {w.family for w in workloads} == {*FAMILIES, "example"}
    assert {"misaligned", "strided"} <= {w.layout for w in workloads}
    assert len({w.seed for w in workloads}) == len(workloads)


def test_untied_symbols_get_different_sizes():
    sizes = quick_workloads(problem_of(lambda x: x * 2, X))[1].sizes
    assert len(set(sizes.values())) == 2


def test_seeds_differ_from_evaluation_to_evaluation():
    problem = problem_of(lambda x: x * 2, X)
    assert quick_workloads(problem)[1].seed != quick_workloads(problem)[1].seed


def test_labels_stay_below_the_number_of_classes():
    labels = np.random.default_rng(0).integers(0, 48, 64)
    problem = problem_of(lambda x, t: x[np.arange(len(t)), t], X, labels)
    for classes in (3, 127):
        drawn = draw_inputs(problem, {"M": 10, "N": classes}, "normal", seed=5)
        assert drawn[1].max() < classes
        problem.run_reference(drawn)


def test_scalars_take_other_values_but_sizes_do_not():
    problem = problem_of(lambda x, eps, k: x[:, :k] + eps, X, 1e-5, 48)
    _, eps, k = draw_inputs(problem, {"M": 4, "N": 60}, "normal", seed=5, scalars="other")
    assert eps != 1e-5
    assert k == 48


@given(st.integers(0, 2**32), st.sampled_from(["int8", "uint8", "int16", "int32", "int64", "uint64", "bool"]))
def test_integers_stay_within_the_examples_range(seed, dtype):
    rng = np.random.default_rng(seed)
    example = (
        rng.integers(0, 2, 20).astype(dtype) if dtype == "bool" else rng.integers(3, 100, 20).astype(dtype)
    )
    drawn = integer_array(rng, (50,), example, None)
    assert drawn.dtype == example.dtype
    if dtype != "bool":
        assert example.min() <= drawn.min()
        assert drawn.max() <= example.max()


@given(st.integers(0, 2**32), st.one_of(st.booleans(), st.integers(-100, 100), st.floats(-1e3, 1e3)))
def test_a_varied_scalar_differs_and_keeps_its_type(seed, value):
    other = scalar_value(np.random.default_rng(seed), value, is_size=False)
    assert type(other) is type(value)
    assert other != value


@given(
    st.integers(0, 2**32), st.sampled_from([np.int8(127), np.int32(2**31 - 1), np.uint8(255), np.int64(5), 7])
)
def test_integers_are_varied_within_their_type(seed, value):
    rng = np.random.default_rng(seed)
    for change in ("other", "far", "negated"):
        other = scalar_value(rng, value, change, is_size=False)
        assert type(other) is type(value)
        assert other != value
        assert (other < 0) == (change == "negated" and can_be_negated(value))


def test_iterations_go_far_beyond_the_example():
    assert scalar_value(np.random.default_rng(0), 3, "far", is_size=False) >= 80


def test_scalars_are_drawn_otherwise_three_times_where_one_can_be_negative():
    workloads = full_workloads(problem_of(lambda x, k: x * k, X, 3))
    assert [w.scalars for w in workloads if w.scalars != "none"] == ["other", "far", "negated"]
    workloads = full_workloads(problem_of(lambda x, a: x * a, X, 0.5))
    assert [w.scalars for w in workloads if w.scalars != "none"] == ["other", "far"]


@pytest.mark.parametrize(
    ("array", "scalar", "bound", "is_met"),
    [
        (np.zeros(2000, np.float32), 0.5, None, True),
        (
            np.zeros(2000, np.float32),
            0.1,
            None,
            False,
        ),  # float32 holds no 0.1: the oracle would compare otherwise
        (np.zeros(2000, np.float32), np.float32(0.1), None, True),
        (np.zeros(2000, np.float32), 3, None, False),
        (np.arange(2000, dtype=np.int32), -100, None, True),
        (np.arange(2000, dtype=np.int32), -100, 3000, False),  # an index
        (np.arange(2000, dtype=np.int32), 2000, None, False),
        (np.arange(2000, dtype=np.uint32), -1, None, False),
        (np.arange(2000, dtype=np.int32), True, None, False),
        (np.zeros(0, np.int32), -1, None, False),
    ],
)
def test_some_elements_equal_a_scalar(array, scalar, bound, is_met):
    marked = with_scalars(np.random.default_rng(0), array, [scalar], bound)
    assert marked.dtype == array.dtype
    assert bool(((marked == scalar) & (array != scalar)).any()) is is_met


def test_decimals_and_halves_are_numbers_that_people_write():
    rng = np.random.default_rng(0)
    assert {0.1, 0.25, 0.5, -0.3} <= {
        round(float(v), 3) for v in float_array(FAMILIES["decimals"], rng, (20000,), "float32")
    }
    halves = float_array(FAMILIES["halves"], rng, (100,), "float16")
    assert (halves * 2 == np.rint(halves * 2)).all()
    assert (halves != np.rint(halves)).any()


def test_integers_are_sorted_equal_and_extreme_too():
    example = np.arange(3, 90)

    def drawn(family):
        return integer_array(np.random.default_rng(1), (40, 5), example, None, family)

    assert (np.diff(drawn("ramp").ravel()) >= 0).all()
    assert np.unique(drawn("constant")).size == 1
    assert np.unique(drawn("crowded"), return_counts=True)[1].max() > 180
    assert set(np.unique(drawn("extremes"))) == {3, 89}
    assert (drawn("zeros") == 3).all()
    assert np.unique(drawn("normal")).size > 20


def test_inputs_of_one_dtype_and_shape_are_once_one_array():
    y = np.ones((32, 48), np.float32)
    problem = problem_of(lambda x, y, w: x[:, None, :].sum() + y * w, X, y, np.ones(48))
    shared = next(w for w in full_workloads(problem) if w.layout == "shared")
    x, y, w = draw_inputs(problem, shared.sizes, "normal", seed=1, is_shared=True)
    assert x is y
    assert w is not x
    assert all(w.layout != "shared" for w in full_workloads(problem_of(lambda x: x * 2, X)))


def test_one_array_for_several_integer_inputs_holds_what_each_of_them_may_be():
    x, y = np.arange(-50, 50, dtype=np.int32), np.arange(1, 101, dtype=np.int32)
    problem = problem_of(lambda x, y: x // y, x, y)
    a, b = draw_inputs(problem, {"N": 1023}, "normal", seed=1, is_shared=True)
    assert a is b
    assert a.min() >= 1
    assert a.max() <= 49
    apart = problem_of(lambda x, y: x // y, -y, y)
    a, b = draw_inputs(apart, {"N": 1023}, "normal", seed=1, is_shared=True)
    assert b.min() >= 1
    assert a is not b


def test_some_sizes_are_drawn_anew_for_every_verification():
    problem = problem_of(lambda x: x * 2, X)
    drawn = [{tuple(s.values()) for s in secret_sizes(problem)} for _ in range(4)]
    assert len(set().union(*drawn)) > 2
    assert all(2 <= n <= 1 << 15 for sizes in drawn for s in sizes for n in s)
    assert secret_sizes(problem_of(lambda x: x * 2, np.ones(()))) == []


def test_an_array_that_several_threads_fill_is_normal_and_the_same_again():
    def drawn():
        return float_array(FAMILIES["normal"], np.random.default_rng(7), (1100, 1000), "float64")

    first = drawn()
    assert first.shape == (1100, 1000)
    assert np.array_equal(first, drawn())
    assert abs(first.mean()) < 0.01
    assert abs(first.std() - 1.0) < 0.01
    assert not np.array_equal(first[:137], first[138:275])


def test_crowded_integers_fill_more_than_sixteen_bits():
    problem = problem_of(lambda x: np.bincount(x, minlength=8), np.arange(100) % 8)
    long = [w for w in full_workloads(problem) if w.is_long]
    assert [w.family for w in long] == ["crowded"]
    drawn = draw_inputs(problem, long[0].sizes, "crowded", seed=3)[0]
    assert np.bincount(drawn).max() > 1 << 16


def test_the_greatest_elements_of_a_ramp_are_neighbours_but_no_row_is_sorted():
    rows = float_array(FAMILIES["ramp"], np.random.default_rng(2), (50, 40), "float32")
    assert np.unique(rows).size == rows.size
    assert (np.argsort(np.argsort(rows, axis=1), axis=1) != np.arange(40)).any(axis=1).mean() > 0.9
    places = np.sort(np.argsort(-rows, axis=1)[:, :5], axis=1)
    assert ((np.diff(places, axis=1) == 1).sum(axis=1) >= 3).all()


def test_some_elements_lie_halfway_between_multiples_of_a_scalar():
    marked = with_scalars(np.random.default_rng(0), np.zeros(2000, np.float32), [0.25], None)
    assert {0.25, 0.375, 0.625} <= set(marked.tolist())
    assert np.unique(marked / 0.25 % 1).tolist() == [0.0, 0.5]
