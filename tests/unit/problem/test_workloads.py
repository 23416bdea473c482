import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.problem.families import FAMILIES, float_array, integer_array
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.scalars import scalar_value
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
    assert {w.family for w in workloads} >= set(FAMILIES)
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


def test_some_sizes_are_drawn_anew_for_every_verification():
    problem = problem_of(lambda x: x * 2, X)
    drawn = [{tuple(s.values()) for s in secret_sizes(problem)} for _ in range(4)]
    assert len(set().union(*drawn)) > 2
    assert all(2 <= n <= 1 << 15 for sizes in drawn for s in sizes for n in s)
    assert secret_sizes(problem_of(lambda x: x * 2, np.ones(()))) == []
