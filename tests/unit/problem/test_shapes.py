import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float

from llmkernel.errors import ReferenceProblem
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.shapes import fit_output_dims, symbolic_dims


def problem_of(function, *inputs):
    return make_problem(*make_reference(function, inputs))


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def test_equal_sizes_of_the_example_are_tied():
    problem = problem_of(lambda x, y: x + y, ones(6), ones(6))
    assert str(problem.signature) == "kernel(x: float32[N], y_: float32[N]) -> y: float32[N]".replace(
        "y_", "y", 1
    ).replace("-> y:", "-> out_y:")


def test_matrix_product_shares_the_inner_symbol():
    problem = problem_of(lambda a, b: a @ b, ones(4, 6), ones(6, 8))
    assert str(problem.signature) == "kernel(a: float32[M, N], b: float32[N, K]) -> y: float32[M, K]"


def test_jaxtyping_names_win_over_inference():
    def f(a: Float[np.ndarray, "rows cols"], b: Float[np.ndarray, "rows"]):
        return a * b[:, None]

    problem = problem_of(f, ones(5, 5), ones(5))
    assert [str(s) for s in problem.signature.inputs] == ["a: float32[rows, cols]", "b: float32[rows]"]
    assert problem.sizes == {"rows": 5, "cols": 5}


def test_jaxtyping_literals_variadics_and_broadcasts():
    def f(a: Float[np.ndarray, "*batch n 3"], b: Float[np.ndarray, "#n"]):
        return a.sum()

    dims, _ = symbolic_dims(f, {"a": (2, 4, 7, 3), "b": (1,)})
    assert dims == {"a": ("batch_0", "batch_1", "n", "3"), "b": ("1",)}


def test_an_example_that_contradicts_its_annotation_is_refused():
    def f(a: Float[np.ndarray, "n n"]):
        return a

    with pytest.raises(ReferenceProblem, match="Axis 1 of a has size 3"):
        symbolic_dims(f, {"a": (2, 3)})


def test_output_sizes_may_be_expressions_or_scalars():
    def top(x, k):
        return np.sort(x, axis=-1)[:, ::-1][:, :k].copy(), np.diff(x, axis=-1)

    problem = problem_of(top, ones(4, 9), 3)
    assert [str(s) for s in problem.signature.outputs] == ["y0: float32[M, k]", "y1: float32[M, N - 1]"]


def test_a_full_convolution_is_recognised():
    problem = problem_of(np.convolve, ones(50), ones(7))
    assert [str(d) for d in problem.signature.outputs[0].dims] == ["N + M - 1"]


def test_zero_dimensional_results_have_no_brackets():
    assert str(problem_of(lambda x: x.sum(), ones(5)).signature.outputs[0]) == "y: float32"


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=3))
def test_every_axis_gets_a_symbol_that_has_its_size(shapes):
    given_shapes = {f"x{i}": tuple(s) for i, s in enumerate(shapes)}
    dims, sizes = symbolic_dims(lambda *_: None, given_shapes, taken=given_shapes)
    for name, shape in given_shapes.items():
        assert tuple(int(d) if d.isdigit() else sizes[d] for d in dims[name]) == shape


@given(st.integers(2, 50), st.integers(2, 50))
def test_fitted_dims_explain_what_was_observed(m, n):
    observed = [({"M": m, "N": n}, (m + n, m)), ({"M": 37, "N": 41}, (78, 37))]
    dims = fit_output_dims(observed, {})
    assert dims is not None
    for sizes, shape in observed:
        for text, size in zip(dims, shape, strict=True):
            assert eval(text, {}, dict(sizes)) == size


def test_what_a_header_cannot_write_gets_a_symbol_that_it_can():
    def reference(x, y): ...

    for name, dims in (("x", "8² class höhe N-1"), ("y", "höhe N_1 N-1 min")):
        reference.__annotations__[name] = type("Annotation", (), {"dim_str": dims})
    dims, sizes = symbolic_dims(reference, {"x": (3, 4, 5, 6), "y": (5, 7, 6, 8)})
    assert dims == {"x": ("x_0", "x_1", "h_he", "N_1"), "y": ("h_he", "N_1_", "N_1", "min_")}
    assert sizes == {"x_0": 3, "x_1": 4, "h_he": 5, "N_1": 6, "N_1_": 7, "min_": 8}


def test_there_are_names_for_any_number_of_sizes():
    shapes = {f"x{i}": tuple(range(2 + 5 * i, 7 + 5 * i)) for i in range(40)}
    dims, sizes = symbolic_dims(lambda *_: None, shapes)
    assert len(sizes) == 200
    assert all(tuple(sizes[d] for d in dims[name]) == shape for name, shape in shapes.items())
