import copy
import inspect
import io
import pickle
import pydoc

import numpy as np
import pytest
import torch

import llmkernel
from llmkernel.errors import BindingError, NotAcceptedError, ReferenceProblem, UsageError

X = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    return llmkernel.synthesize(
        softmax,
        "softmax over the last axis",
        inputs=[X],
        provider="library",
        device="cpu",
        records_dir=tmp_path_factory.mktemp("kernels"),
    )


def test_it_is_called_as_the_reference_is(kernel):
    for call in (lambda: kernel(X), lambda: kernel(x=X)):
        np.testing.assert_allclose(call(), softmax(X), rtol=1e-5)


def test_it_takes_other_sizes_and_empty_arrays(kernel):
    for shape in [(1, 1), (3, 1023), (0, 5)]:
        x = np.ones(shape, np.float32)
        assert kernel(x).shape == shape


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (X.astype(np.float64), "dtype"),
        (X[0], "rank"),
        (X.T, "layout"),
        (torch.from_numpy(X), "kind"),
        (np.ma.masked_array(X, mask=X > 0), "kind"),
        (X.view(np.recarray), "kind"),
        (X.astype(X.dtype.newbyteorder()), "dtype"),
        (X.astype(object), "dtype"),
        (X.tolist(), "kind"),
        (None, "kind"),
    ],
)
def test_it_refuses_by_name_what_it_was_not_verified_for(kernel, value, reason):
    with pytest.raises(BindingError) as caught:
        kernel(value)
    assert caught.value.reason == reason
    assert caught.value.argument == "x"
    assert caught.value.next_step


def test_it_is_one_thing_that_is_shared_by_its_record(kernel):
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy([kernel])[0] is kernel
    with pytest.raises(UsageError, match="cannot be pickled") as caught:
        pickle.dumps(kernel)
    assert "record" in caught.value.next_step
    assert str(inspect.signature(kernel)) == "(x)"


def удвоить(икс):  # noqa: PLC2401 - the point is the script
    return 2 * икс


def test_names_in_other_scripts_and_words_of_the_header():
    x = np.arange(5, dtype=np.float32)
    kernel = llmkernel.synthesize(удвоить, "удвой это", inputs=[x], provider="library", device="cpu")
    assert kernel.__name__ == "удвоить_cuda"
    np.testing.assert_array_equal(kernel(икс=x), 2 * x)
    with pytest.raises(BindingError, match="икс"):
        kernel(x.astype(np.float64))
    max_kernel = llmkernel.synthesize(
        lambda max: 2 * max,  # noqa: A006 - as NumPy calls it
        "double",
        inputs=[x],
        provider="library",
        device="cpu",
    )
    np.testing.assert_array_equal(max_kernel(max=x), 2 * x)


def test_wrong_calls_are_explained(kernel):
    with pytest.raises(ReferenceProblem, match="missing"):
        kernel()
    with pytest.raises(ReferenceProblem, match="unexpected"):
        kernel(X, axis=0)


def test_it_tells_what_it_is(kernel):
    assert kernel.report.outcome == "passed"
    assert "softmax_cuda" in kernel.source
    assert kernel.record.provider == "library"
    assert kernel.launch_plan(X).launches
    assert "passed" in repr(kernel)
    assert "softmax_cuda" in kernel._repr_html_()
    out = io.StringIO()
    pydoc.doc(kernel, output=out)
    text = out.getvalue()
    assert "softmax_cuda(x: float32[M, N])" in text
    assert "Not checked" in text
    assert isinstance(kernel, llmkernel.GeneratedKernel)


def test_a_module_takes_its_current_weights_and_refuses_gradients():
    module = torch.nn.Linear(6, 4)
    x = torch.randn(5, 6)
    source = """//! linear(input: float32[M, K], weight: float32[N, K], bias: float32[N]) -> y: float32[M, N]
//! linear<<<ceil_div(M * N, 64), 64>>>(input, weight, bias, y, M, N, K)
__global__ void linear(const float* x, const float* w, const float* b, float* y, int M, int N, int K) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= M * N) return;
    float s = b[i % N];
    for (int k = 0; k < K; ++k) s = fmaf(x[i / N * K + k], w[i % N * K + k], s);
    y[i] = s;
}
"""
    from llmkernel.synthesis.source import accept_source

    kernel = accept_source(source, module, inputs=[x], name="linear_cuda", device="cpu")
    with pytest.raises(BindingError) as caught:
        kernel(x)
    assert caught.value.reason == "grad"
    with torch.no_grad():
        torch.testing.assert_close(kernel(x), module(x))
        module.weight.mul_(2.0)
        torch.testing.assert_close(kernel(x), module(x))


GENERAL = """//! f(x: float32[M, N], w: float32[K]) -> y: float32[M, N]
//! scale<<<ceil_div(M * M, 128), 128>>>(x, w, y, M)
__global__ void scale(const float* x, const float* w, float* y, int M) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < M * M) y[i] = (x[i] + x[i % M * M + i / M]) * w[i % M];
}
"""


def test_a_kernel_that_was_verified_on_squares_takes_no_other_shapes():
    from llmkernel.synthesis.source import accept_source

    x, w = np.ones((9, 9), np.float32), np.ones(9, np.float32)
    kernel = accept_source(
        GENERAL, lambda x, w: (x + x.T) * w, inputs={"x": x, "w": w}, name="f", device="cpu"
    )
    larger = np.full((40, 40), 2, np.float32)

    np.testing.assert_array_equal(kernel(larger, np.arange(40, dtype=np.float32))[3], 4.0 * np.arange(40))
    with pytest.raises(BindingError, match="axis 0 of `x` is 4 and axis 1 of `x` is 9") as caught:
        kernel(np.ones((4, 9), np.float32), w)
    assert (caught.value.argument, caught.value.reason) == ("x", "shape")
    with pytest.raises(BindingError, match="axis 0 of `w` is 3"):
        kernel(x, w[:3])
    with pytest.raises(BindingError, match="axis 0 of `w` is 3"):
        kernel(w=w[:3], x=x)


def test_a_kernel_that_was_verified_on_one_row_takes_no_others():
    one = np.ones((1, 40), np.float32)
    kernel = llmkernel.synthesize(
        lambda x: np.maximum(x, 0), "relu", inputs=[one], device="cpu", provider="library"
    )

    assert kernel(one[:, :7]).shape == (1, 7)
    with pytest.raises(BindingError, match=r"axis 0 of `x` is 3\.") as caught:
        kernel(np.ones((3, 40), np.float32))
    assert "float32[1, M]" in caught.value.rule
    with pytest.raises(BindingError, match=r"axes|axis"):
        kernel(np.ones(40, np.float32))


def test_a_header_that_says_as_much_as_the_problem_costs_nothing():
    from llmkernel.candidate.header import parse_header
    from llmkernel.synthesis.same_sizes import same_sizes_only

    square, free = (
        parse_header(f"//! f(x: float32[{dims}]) -> y: float32[{dims}]\n//! k<<<1, 1>>>(x, y)\n").signature
        for dims in ("M, M", "M, N")
    )

    assert same_sizes_only(print, square, square, ["x"]) is print
    assert same_sizes_only(print, free, free, ["x"]) is print
    assert same_sizes_only(print, free, square, ["x"]) is print
    assert same_sizes_only(print, square, free, ["x"]) is not print


def test_a_source_without_a_launch_header_is_shown_how_its_begins():
    from llmkernel.synthesis.source import accept_source

    source = "__global__ void twice(const float* x, float* y, int N) {}\n"
    with pytest.raises(NotAcceptedError) as caught:
        accept_source(source, lambda x: 2 * x, inputs={"x": X}, name="double_cuda", device="cpu")

    assert "`//! double_cuda(x: float32[M, N]) -> y: float32[M, N]`" in caught.value.next_step
    assert "`//! twice<<<" in caught.value.next_step


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"intent": "  "}, "intent is empty"),
        ({"attempts": 0}, "at least one attempt"),
        ({"replay": "sometimes"}, "no replay mode"),
        ({"device": "tpu"}, "no device"),
        ({"shapes": [{"Q": 3}]}, "no dimension 'Q'"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_sent(change, message):
    options = {"intent": "softmax", "inputs": [X], "device": "cpu", "provider": "library", **change}
    with pytest.raises(UsageError, match=message):
        llmkernel.synthesize(softmax, options.pop("intent"), **options)
