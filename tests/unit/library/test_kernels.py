"""Every library kernel, run on the cpu device against its NumPy reference at the sizes where kernels go wrong."""

from __future__ import annotations

import numpy as np
import pytest

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.rules import check_rules
from llmkernel.library.catalogue import entry, shipped_entries
from llmkernel.library.entry import Entry
from llmkernel.problem.dtypes import DTYPES
from tests.unit.library.support import UNAVAILABLE, error, expected, flat_source, run

pytestmark = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))

SCALARS = {"eps": 1e-5, "alpha": 0.2, "beta": 1.5, "steps": 3, "bins": 9}
ROWS = ("softmax", "rms_norm", "layer_norm", "cumsum", "row_sum", "row_max")
# Row lengths around every change of strategy: one element, packs, warps, blocks, several chunks.
LENGTHS = (0, 1, 7, 8, 31, 127, 129, 1023, 2048, 4097, 8191)


def rng_of(*parts: int) -> np.random.Generator:
    return np.random.default_rng([11, *parts])


def inputs_of(
    e: Entry, sizes: dict[str, int], dtype: str | None = None, scale: float = 1.0, shift: float = 0.0
) -> list:
    """Random inputs of the entry; `dtype` takes the place of T."""
    rng = rng_of(*sizes.values())
    made: list = []
    for term in e.signature.inputs:
        if term.dims is None:
            made.append(SCALARS[term.name])
            continue
        name = dtype or e.signature.types[term.dtype][0]
        shape = tuple(sizes[d] for d in term.dims if d != "B")
        if DTYPES[name].kind in "fc":
            made.append((rng.standard_normal(shape) * scale + shift).astype(DTYPES[name].numpy))
        else:
            made.append(rng.integers(0, 2 if name == "bool" else 8, shape).astype(DTYPES[name].numpy))
    return made


def tolerance(dtype: str, length: int = 1) -> float:
    """A few roundings of the result, and the accumulation of a sum of `length` terms in float32 or float64."""
    wide = 2.0**-52 if dtype == "float64" else 2.0**-23
    return 2 * DTYPES[dtype].eps + 8 * wide * max(1, length) ** 0.5


@pytest.mark.parametrize("name", [e.name for e in shipped_entries()])
def test_an_entry_is_a_candidate_and_right_on_odd_sizes(name):
    e = entry(name)
    source = flat_source(e)
    assert source.startswith("// LLM-CUDA's own kernel: ")
    check_rules(source)
    inputs = inputs_of(e, {"M": 37, "N": 129, "K": 33})

    got = run(source, *inputs)

    types = next(iter(e.signature.types.values()))
    assert error(got, expected(e, *inputs)) <= tolerance(types[0], 129)
    assert str(parse_candidate(source).signature)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_every_length(name, length):
    e = entry(name)
    if length == 0 and name in ("row_max", "softmax"):
        pytest.skip("the largest of nothing is not defined")
    for dtype in ("float32", "bfloat16"):
        inputs = inputs_of(e, {"M": 5, "N": length}, dtype)

        got = run(e.source, *inputs)

        assert error(got, expected(e, *inputs)) <= tolerance(dtype, length)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_every_dtype(name, dtype):
    e = entry(name)
    for length in (129, 2050):
        inputs = inputs_of(e, {"M": 3, "N": length}, dtype)

        assert error(run(e.source, *inputs), expected(e, *inputs)) <= tolerance(dtype, length)


@pytest.mark.parametrize("name", ROWS)
def test_many_short_rows_and_no_rows(name):
    e = entry(name)
    for rows, length in ((131, 3), (0, 5), (1, 1)):
        inputs = inputs_of(e, {"M": rows, "N": length})

        assert error(run(e.source, *inputs), expected(e, *inputs)) <= tolerance("float32", length)


@pytest.mark.parametrize("length", [17, 20_000, 40_000])
@pytest.mark.parametrize("name", ROWS)
def test_long_rows_and_misaligned_views(name, length):
    e = entry(name)
    inputs = inputs_of(e, {"M": 2, "N": length})

    for misalign in (0, 1):
        got = run(e.source, *inputs, misalign=misalign)
        assert error(got, expected(e, *inputs)) <= tolerance("float32", length)


@pytest.mark.parametrize("name", ["softmax", "rms_norm", "layer_norm", "cumsum", "row_mean", "total_sum"])
def test_offsets_and_scales(name):
    """A mean of 1e4 beside a spread of 1 ruins one-pass variances; small values show eps."""
    e = entry(name)
    for scale, shift in ((1.0, 1e4), (1e-3, 0.0), (50.0, -200.0)):
        for length in (129, 20_000):
            inputs = inputs_of(e, {"M": 2, "N": length}, "float32", scale, shift)

            assert error(run(e.source, *inputs), expected(e, *inputs)) <= tolerance("float32", length)


@pytest.mark.parametrize("length", [6, 300, 20_000])
@pytest.mark.parametrize("special", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [-np.inf] * 6])
@pytest.mark.parametrize("name", ["softmax", "row_max", "row_sum", "cumsum", "layer_norm"])
def test_nan_and_infinities_stand_where_the_reference_has_them(name, special, length):
    e = entry(name)
    inputs = inputs_of(e, {"M": 3, "N": length})
    inputs[0][1, -len(special) :] = special

    got, want = run(e.source, *inputs), expected(e, *inputs)

    assert error(got, want) <= tolerance("float32", length)


@pytest.mark.parametrize("name", ["column_sum", "column_mean", "column_max", "column_norm"])
def test_columns_of_every_length(name):
    e = entry(name)
    for dtype in ("float32", "bfloat16", "float64"):
        for rows, columns in ((1, 1), (7, 33), (300, 31), (2000, 5), (3, 4097), (5, 0)):
            inputs = inputs_of(e, {"M": rows, "N": columns}, dtype)

            assert error(run(e.source, *inputs), expected(e, *inputs)) <= tolerance(dtype, rows)


def test_rows_that_are_all_minus_infinity_are_nan():
    for length in (5, 300, 20_000):
        x = np.full((2, length), -np.inf, np.float32)

        assert np.isnan(run(entry("softmax").source, x)).all()


@pytest.mark.parametrize("name", ["relu", "silu", "gelu_tanh", "swiglu", "bias_gelu_erf", "axpby"])
def test_elementwise_at_the_edges_of_packs(name):
    e = entry(name)
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        for size in (0, 1, 3, 1023, 4097):
            inputs = inputs_of(e, {"M": 3, "N": size}, dtype, 3.0)
            for misalign in (0, 1):
                got = run(e.source, *inputs, misalign=misalign)

                assert error(got, expected(e, *inputs)) <= 4 * tolerance(dtype)


def test_denormals_are_kept():
    x = np.array([1e-40, -3e-42, 1e-45, 0.0], np.float32)

    assert np.array_equal(run(entry("copy").source, x), x)
    assert np.array_equal(run(entry("relu").source, x), np.maximum(x, 0))
    assert run(entry("row_sum").source, x[None])[0] == x.astype(np.float64).sum().astype(np.float32)


@pytest.mark.parametrize("dtype", entry("transpose").signature.types["T"])
def test_transposes_of_every_dtype(dtype):
    e = entry("transpose")
    for sizes in ({"M": 1, "N": 130}, {"M": 66, "N": 34}, {"M": 65, "N": 3}, {"M": 0, "N": 4}):
        (x,) = inputs_of(e, sizes, dtype)

        assert np.array_equal(run(flat_source(e), x), x.T)


@pytest.mark.parametrize("form", ["matmul", "matmul_turned"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_matrix_products_of_every_shape(form, dtype):
    e = entry(form + ("" if dtype.startswith("float") and dtype != "float16" else "_half"))
    for m, n, k in (
        (1, 1, 1),
        (129, 65, 33),
        (64, 136, 40),
        (3, 300, 7),
        (5, 6, 0),
        (0, 4, 4),
        (257, 128, 64),
    ):
        a, b = inputs_of(e, {"M": m, "N": n, "K": k}, dtype)
        want = expected(e, a, b)

        got = run(flat_source(e), a, b)

        # The scale of a dot product is that of its terms, not of a sum in which they may cancel.
        allowed = tolerance(dtype, k) * np.sqrt(max(k, 1)) * 4
        assert np.abs(got.astype(np.float64) - want).max(initial=0.0) <= allowed


def test_products_of_small_integers_are_exact():
    rng = rng_of(1)
    for name, dtype in (("matmul", "float32"), ("matmul_half", "float16")):
        a, b = (rng.integers(-3, 4, s).astype(dtype) for s in ((70, 90), (90, 50)))

        assert np.array_equal(
            run(flat_source(entry(name)), a, b), (a.astype(int) @ b.astype(int)).astype(dtype)
        )


def test_batches_of_products_and_transposes():
    a, b = (rng_of(2).standard_normal(s).astype(np.float32) for s in ((3, 20, 17), (3, 17, 9)))

    assert error(run(entry("matmul").source, a, b), a.astype(float) @ b.astype(float)) < 1e-5
    assert np.array_equal(run(entry("transpose").source, a), a.swapaxes(1, 2))


@pytest.mark.parametrize("dtype", entry("bincount").signature.types["T"])
def test_histograms_of_every_dtype(dtype):
    source = entry("bincount").source
    for size in (0, 1, 15, 4097, 70_000):
        x = rng_of(size).integers(0, 100, size).astype(dtype)
        for bins in (100, 128):
            assert np.array_equal(run(source, x, bins), np.bincount(x, minlength=bins))


def test_histograms_with_many_bins_and_numbers_without_a_bin():
    source = entry("bincount").source
    x = rng_of(3).integers(-5, 20_000, 9_000).astype(np.int32)
    inside = x[x >= 0]

    assert np.array_equal(run(source, x, 20_000), np.bincount(inside, minlength=20_000))
    assert np.array_equal(run(source, x, 10), np.bincount(inside[inside < 10], minlength=10))


@pytest.mark.parametrize("name", ["heat_fixed", "heat_periodic", "heat_zero"])
def test_stencils_on_small_and_odd_grids(name):
    e = entry(name)
    for dtype in ("float32", "float64"):
        for shape in ((1, 1), (2, 3), (1, 70), (17, 65), (40, 129), (0, 5)):
            if 0 in shape and name == "heat_periodic":
                continue
            u = rng_of(*shape).standard_normal(shape).astype(dtype)
            for alpha, steps in ((0.2, 0), (0.25, 1), (0.1, 4)):
                assert error(run(e.source, u, alpha, steps), expected(e, u, alpha, steps)) <= 8 * tolerance(
                    dtype
                )


def test_jacobi_s_step_does_not_look_at_the_cell_itself():
    u = np.zeros((5, 5), np.float32)
    u[2, 2] = np.inf

    assert run(entry("heat_fixed").source, u, 0.25, 1)[2, 2] == 0


def test_runs_are_bitwise_the_same():
    for name in ("total_sum", "row_mean", "cumsum", "bincount"):
        e = entry(name)
        inputs = inputs_of(e, {"M": 2, "N": 70_000})

        assert run(e.source, *inputs).tobytes() == run(e.source, *inputs).tobytes()
