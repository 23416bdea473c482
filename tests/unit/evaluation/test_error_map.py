"""The picture of where a result is wrong, against counting by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llmkernel.display.bundle import report_bundle
from llmkernel.evaluation.error_map import COLUMNS, MATRICES, ROWS, error_map
from llmkernel.evaluation.evaluate import evaluate


def digit(block: np.ndarray) -> str:
    if not block.any():
        return "0"
    return "9" if block.all() else str(min(8, 1 + 8 * int(block.sum()) // block.size))


def by_hand(wrong: np.ndarray) -> list[str]:
    """The cells of all matrices together, one block after the other."""
    stack = wrong.reshape(-1, *((1, *wrong.shape)[-2:]))
    _, rows, columns = stack.shape
    down, across = min(rows, ROWS), min(columns, COLUMNS)
    row_block = np.arange(rows) * down // rows
    column_block = np.arange(columns) * across // columns
    return [
        "".join(digit(stack[:, row_block == r][:, :, column_block == c]) for c in range(across))
        for r in range(down)
    ]


@settings(max_examples=40)
@given(
    hnp.arrays(np.bool_, hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=70)).filter(
        lambda a: 2 <= a.size <= 200_000
    )
)
def test_every_block_has_the_share_of_its_wrong_elements(wrong):
    data = error_map(wrong.shape, [np.flatnonzero(wrong)])

    assert data["shape"] == list(wrong.shape)
    assert data["cells"] == by_hand(wrong)
    assert ("matrices" in data) == (wrong.ndim > 2)
    assert len(json.dumps(data)) < 2600


@given(st.integers(2, 200), st.integers(0, 10**6))
def test_each_matrix_of_a_batch_is_told_apart(count, seed):
    wrong = np.zeros((count, 3, 5), bool)
    bad = seed % count
    wrong[bad] = True
    data = error_map(wrong.shape, [np.flatnonzero(wrong)])
    blocks = min(count, MATRICES)

    assert [i for i, d in enumerate(data["matrices"]) if d != "0"] == [bad * blocks // count]
    assert set("".join(data["cells"])) == {str(1 + 8 // count) if count > 1 else "9"}


def test_a_large_result_that_is_wrong_everywhere_is_all_nines():
    parts = np.split(np.arange(2_000_000), 4)

    assert set("".join(error_map((2000, 1000), parts)["cells"])) == {"9"}


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 5), (3, 0, 2)])
def test_nothing_is_drawn_of_a_single_element(shape):
    assert error_map(shape, []) is None


SCALE = """//! scale(x: float32[B, M, N]) -> y: float32[B, M, N]
//! scale<<<ceil_div(B * M * N, 128), 128>>>(x, y, M, N, B * M * N)
__global__ void scale(const float* x, float* y, int M, int N, int total) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= total) return;
    int column = i % N, row = i / N % M, matrix = i / N / M;
    y[i] = matrix == 2 && row == 5 && column >= 90 ? WRONG : 2 * x[i];
}
"""


@pytest.mark.parametrize(("wrong", "outcome"), [("1.0f", "wrong_value"), ("NAN", "non_finite")])
def test_a_report_shows_which_matrices_rows_and_columns_are_wrong(wrong, outcome):
    x = np.random.default_rng(0).standard_normal((3, 7, 100)).astype(np.float32)
    report = evaluate(SCALE.replace("WRONG", wrong), lambda x: 2 * x, [x], device="cpu", level="quick")
    data = next(c for c in report.checks if c.status == "failed").evidence["map"]

    assert report.outcome == outcome
    assert data["shape"] == [3, 7, 100]
    assert [i for i, d in enumerate(data["matrices"]) if d != "0"] == [2]
    assert [i for i, line in enumerate(data["cells"]) if line.strip("0")] == [5]
    assert data["cells"][5].startswith("0" * 57)
    assert "0" not in data["cells"][5][58:]
    json.dumps(report.to_dict(), allow_nan=False)


SHIFT = """//! shift(x: float32[M, N]) -> y: float32[M, N]
//! shift<<<(ceil_div(N, 128), M), 128>>>(x, y, N)
__global__ void shift(const float* x, float* y, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (UNLESS) y[(long long)blockIdx.y * N + i] = x[(long long)blockIdx.y * N + i];
}
"""


def test_a_report_shows_which_elements_stayed_unwritten():
    x = np.random.default_rng(0).standard_normal((7, 100)).astype(np.float32)
    source = SHIFT.replace("UNLESS", "i < N && !(blockIdx.y == 4 && i >= 90)")
    report = evaluate(source, lambda x: x, [x], device="cpu", level="quick")
    evidence = next(c for c in report.checks if c.status == "failed").evidence

    assert report.outcome == "not_written"
    assert (evidence["count"], evidence["total"], evidence["element"]) == (10, 700, [4, 90])
    assert evidence["map"]["shape"] == [7, 100]
    assert [i for i, line in enumerate(evidence["map"]["cells"]) if line.strip("0")] == [4]
    assert evidence["map"]["shows"] == "unwritten"
    assert "the first at [4, 90], at M=7" in report.headline
    text = report_bundle(report)["text/plain"]
    assert "y (7 × 100) has unwritten elements in row 4, columns 90–99" in text
    assert "unwritten  10 of 700 elements" in text


def test_a_single_element_that_is_not_written_has_no_map():
    x = np.ones((1, 1), np.float32)
    report = evaluate(SHIFT.replace("UNLESS", "N < 0"), lambda x: x, [x], device="cpu", level="quick")

    assert report.outcome == "not_written"
    assert report_bundle(report)["text/plain"].count("unwritten elements in") == 0
