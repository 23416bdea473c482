import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.evaluation.tolerance import (
    allowance,
    comparable,
    deviation,
    floor_of,
    row_error,
    special_mismatch,
)


def judge(got, oracle, n=1, reference_error=0.0):
    mask = comparable(got, oracle, None)
    allowed = allowance(got.dtype.name, n, reference_error, user=None, has_oracle=True)
    return deviation(got, oracle, mask, allowed)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_zeros_fail_a_softmax_whose_every_value_is_tiny():
    oracle = softmax(np.random.default_rng(0).standard_normal((2, 393216)))
    zeros = np.zeros_like(oracle, dtype=np.float32)
    assert np.allclose(zeros, oracle, atol=1e-2)  # what an absolute tolerance says
    assert judge(zeros, oracle, n=393216).error == 1.0
    assert judge(zeros, oracle, n=393216).bad_count > 0


def test_one_wrong_row_is_seen_beside_a_row_of_much_greater_scale():
    oracle = np.stack([np.full(64, 1e6), np.full(64, 1e-3)])
    got = oracle.astype(np.float32)
    got[1] *= 1.01
    seen = judge(got, oracle)
    assert seen.bad_count == 64
    assert seen.bad.min() == 64


def test_half_precision_accumulation_fails_a_float32_contract():
    x = np.random.default_rng(0).standard_normal((32, 4096)).astype(np.float32)
    oracle = x.astype(float).sum(-1)
    half = np.add.accumulate(x.astype(np.float16), axis=-1, dtype=np.float16)[:, -1].astype(np.float32)
    assert judge(half, oracle, n=4096).bad_count > 0
    assert judge(x.sum(-1), oracle, n=4096).bad_count == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_correctly_rounded_result_always_passes(dtype):
    oracle = np.random.default_rng(0).standard_normal((16, 100))
    target = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    assert judge(oracle.astype(target), oracle).bad_count == 0


def test_results_in_the_denormal_range_are_allowed_their_spacing():
    oracle = np.full((1, 8), 3.3e-6)
    assert judge(oracle.astype(np.float16), oracle).bad_count == 0


def test_the_cap_never_undercuts_the_reference():
    bad_reference = 1000 * floor_of("float32", 16)
    assert allowance("float32", 16, bad_reference, user=None, has_oracle=True).relative >= bad_reference


def test_a_reference_without_noise_does_not_tighten_below_the_floor():
    assert allowance("float32", 16, 0.0, user=None, has_oracle=True).relative == floor_of("float32", 16)


def test_the_users_tolerance_replaces_the_derived_one():
    assert allowance("float32", 16, 1.0, user=0.5, has_oracle=True).relative == 0.5


@pytest.mark.parametrize(
    ("got", "expected", "count"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0),
        ([np.nan, 1.0], [1.0, np.nan], 2),
        ([np.inf], [-np.inf], 1),
        ([np.inf], [1.0], 1),
        ([1.0], [np.inf], 1),
        ([0.0], [-0.0], 0),
    ],
)
def test_special_values_match_by_position(got, expected, count):
    assert special_mismatch(np.array(got, np.float32), np.array(expected), None).size == count


def test_overflow_of_the_working_dtype_is_expected_there():
    oracle = np.array([1e39])
    assert special_mismatch(np.array([np.inf], np.float32), oracle, None).size == 0


def test_nothing_is_judged_where_the_reference_overflows_and_the_oracle_does_not():
    oracle, at_dtype = np.array([1.0]), np.array([np.inf], np.float32)
    for value in (1.0, np.inf, np.nan):
        assert special_mismatch(np.array([value], np.float32), oracle, at_dtype).size == 0


def test_an_overflow_within_the_tolerance_of_the_greatest_number_is_not_judged():
    oracle = np.array([3.39e38])
    assert special_mismatch(np.array([np.inf], np.float32), oracle, None, 1e-2).size == 0
    assert special_mismatch(np.array([np.inf], np.float32), oracle, None).size == 1


@given(
    st.integers(0, 2**32),
    st.sampled_from([(), (1,), (5,), (3, 4), (2, 3, 4)]),
    st.sampled_from(["float16", "float32", "float64", "complex64"]),
)
def test_error_is_zero_for_itself_and_scales_with_the_deviation(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    oracle = np.asarray(
        rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "complex64" else 0)
    )
    got = oracle.astype(dtype)
    mask = comparable(got, oracle, None)
    assert row_error(got, got.astype(oracle.dtype), mask) == 0
    assert judge((2 * got).astype(dtype), got.astype(oracle.dtype)).error == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 4), (2, 0, 3), (0, 0)])
def test_empty_results_of_any_shape_agree(shape):
    empty = np.zeros(shape, np.float32)
    assert special_mismatch(empty, empty.astype(np.float64), empty).size == 0
    assert judge(empty, empty.astype(np.float64)).bad_count == 0


def test_a_fused_product_in_float64_need_not_overflow_as_the_reference_does():
    oracle = np.array([-np.inf, -np.inf])
    assert special_mismatch(np.array([-1.2e308, -1.0]), oracle, oracle).tolist() == [1]
