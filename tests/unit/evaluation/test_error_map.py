"""The picture of where a result is wrong, against counting by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llmkernel.evaluation.error_map import COLUMNS, MATRICES, ROWS, error_map


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
