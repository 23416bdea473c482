"""Equal sizes of one array: the reference says whether they have to be equal."""

import numpy as np
import pytest
import torch

from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference

SQUARE = np.ones((8, 8), np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def total_of_pairs(x):
    if x.shape[0] > x.shape[1]:
        raise ValueError("too tall")
    return x.sum()


def head(x):
    return x[: min(len(x), 3)]


@pytest.mark.parametrize(
    ("reference", "inputs", "signature"),
    [
        (softmax, [SQUARE], "(x: float32[M, N]) -> y: float32[M, N]"),
        (np.matmul, [SQUARE, SQUARE], "(x0: float32[M, N], x1: float32[N, K]) -> y: float32[M, K]"),
        (lambda x, b: x + b, [SQUARE, SQUARE[0]], "(x: float32[M, N], b: float32[N]) -> y: float32[M, N]"),
        (lambda x: x.reshape(-1), [SQUARE], "(x: float32[M, N]) -> y: float32[M * N]"),
        (lambda x: x @ x.T, [SQUARE], "(x: float32[M, N]) -> y: float32[M, M]"),
        (
            lambda x: np.pad(x, 1),
            [np.ones((8, 8, 8), np.float32)],
            "(x: float32[B, M, N]) -> y: float32[B + 2, M + 2, N + 2]",
        ),
        (
            torch.nn.Linear(8, 8),
            [torch.ones(8, 8)],
            "(input: float32[M, N], weight: float32[K, N], bias: float32[K]) -> y: float32[M, K]",
        ),
    ],
    ids=["softmax", "matmul", "bias", "flat", "gram", "pad", "linear"],
)
def test_what_the_reference_computes_for_other_shapes_too_is_untied(reference, inputs, signature):
    problem = make_problem(*make_reference(reference, inputs))
    assert str(problem.signature).endswith(signature)
    assert set(problem.sizes.values()) == {8}


@pytest.mark.parametrize(
    ("reference", "inputs"),
    [
        (lambda x: x + x.T, [SQUARE]),
        (lambda x: np.linalg.inv(x + 9 * np.eye(len(x), dtype=np.float32)), [SQUARE]),
        (np.diag, [SQUARE]),
        (total_of_pairs, [SQUARE]),
    ],
    ids=["symmetric", "inverse", "diagonal", "refuses tall ones"],
)
def test_what_has_to_be_square_stays_so(reference, inputs):
    problem = make_problem(*make_reference(reference, inputs))
    assert str(problem.signature.inputs[0]).endswith("float32[M, M]")


def test_sizes_that_are_equal_between_arrays_stay_tied():
    q = torch.ones(2, 3, 5, 4)
    problem = make_problem(*make_reference(attention, [q, q, q]))
    assert len({tuple(map(str, s.dims)) for s in problem.signature.inputs}) == 1
    row = np.ones(9, np.float32)
    assert make_problem(*make_reference(np.add, [row, row])).sizes == {"N": 9}


def test_an_annotation_is_taken_at_its_word():
    from jaxtyping import Float32

    def scale(x: Float32[np.ndarray, "N N"]):
        return 2 * x

    problem = make_problem(*make_reference(scale, [SQUARE]))
    assert str(problem.signature.inputs[0]) == "x: float32[N, N]"


def test_a_kernel_from_a_square_example_takes_other_shapes():
    from llmkernel import synthesize

    kernel = synthesize(softmax, "softmax", inputs=[SQUARE], provider="library", device="cpu")
    x = np.random.default_rng(0).standard_normal((5, 70)).astype(np.float32)
    np.testing.assert_allclose(kernel(x), softmax(x), rtol=1e-5, atol=1e-7)
