from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.cli.drawing import draw
from llmkernel.cli.loading import load_object
from llmkernel.cli.main import main
from llmkernel.errors import LLMKernelError, UsageError

DOUBLE = """//! double_it(x: T[M, N], scale: float32) -> y: T[M, N]    where T in {float32, float16, bfloat16}
//! double_it<T><<<ceil_div(M * N, 256), 256>>>(x, y, scale, M * N)
template <typename T>
__global__ void double_it(const T* __restrict__ x, T* __restrict__ y, float scale, long long n) {
    long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n) y[i] = T(float(x[i]) * scale);
}
"""

TOP_K = """//! top(x: float32[M, N], index: int64[2 * M], k: int32, flag: bool) -> y: float32[M, k]
//! top<<<M, 32>>>(x, index, y, N, k, flag)
__global__ void top(const float* x, const long long* index, float* y, int N, int k, bool flag) {}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.cu").write_text(DOUBLE)
    (tmp_path / "wrong.cu").write_text(DOUBLE.replace("* scale)", "+ scale)"))
    (tmp_path / "my_references.py").write_text(
        "import numpy as np\n"
        "def scaled(x, scale):\n    return x * np.float32(scale)\n"
        "def inputs():\n    return [np.ones((3, 5), 'float32'), 2.0]\n"
        "def nothing():\n    return None\n"
        "class group:\n    scaled = staticmethod(scaled)\n"
        "constant = 3\n"
    )
    (tmp_path / "my_broken.py").write_text("raise RuntimeError('not today')")
    return tmp_path


def test_inputs_follow_the_signature():
    x, scale = draw(DOUBLE, "M=3,N=7,scale=1.5", "", "numpy", 0)

    assert (x.shape, x.dtype, scale) == ((3, 7), np.float32, 1.5)
    again, _ = draw(DOUBLE, "M=3, N=7", "", "numpy", 0)
    other, _ = draw(DOUBLE, "M=3, N=7", "", "numpy", 1)
    np.testing.assert_array_equal(x, again)
    assert not np.array_equal(x, other)
    assert draw(DOUBLE, "", "bfloat16", "numpy", 0)[0].dtype == ml_dtypes.bfloat16
    assert draw(DOUBLE, "", "T=float16", "numpy", 0)[0].dtype == np.float16


def test_sizes_that_are_not_named_differ_from_each_other():
    x, _ = draw(DOUBLE, "", "", "numpy", 0)

    assert x.shape[0] != x.shape[1]
    assert draw(DOUBLE, "M=0", "", "numpy", 0)[0].size == 0


def test_integers_and_scalars_are_drawn_too():
    x, index, k, flag = draw(TOP_K, "M=4,k=2,flag=false", "", "numpy", 0)

    assert index.shape == (8,)
    assert index.dtype == np.int64
    assert 0 <= index.min() <= index.max() < min(x.shape)
    assert (k, flag) == (2, False)


def test_torch_inputs():
    x, _ = draw(DOUBLE, "M=2,N=3", "bfloat16", "torch", 0)

    assert (x.dtype, tuple(x.shape)) == (torch.bfloat16, (2, 3))


@pytest.mark.parametrize(
    ("shapes", "dtype", "message"),
    [
        ("K=3", "", "has no K"),
        ("M=-1", "", "not a size"),
        ("M=3.5", "", "not a size"),
        ("M", "", "NAME=VALUE"),
        ("scale=much", "", "not a value"),
        ("", "int32", "T cannot be int32"),
        ("", "S=float16", "S cannot be"),
    ],
)
def test_what_the_signature_does_not_have_is_named(shapes, dtype, message):
    with pytest.raises(UsageError, match=message):
        draw(DOUBLE, shapes, dtype, "numpy", 0)


def test_a_dtype_for_a_header_without_variables_is_refused():
    with pytest.raises(UsageError, match="no type variables"):
        draw(TOP_K, "", "float16", "numpy", 0)


@given(st.text(max_size=20), st.text(max_size=12))
def test_options_of_any_text_draw_or_raise_one_of_our_errors(shapes, dtype):
    try:
        drawn = draw(DOUBLE.replace("[M, N]", "[M]").replace("M * N", "M"), shapes, dtype, "numpy", 0)
    except (LLMKernelError, MemoryError):
        return
    assert len(drawn) == 2


def test_objects_are_found_in_modules_files_and_classes(folder):
    x = np.ones(2, "float32")

    for words in (
        "my_references:scaled",
        "my_references.py:scaled",
        f"{folder}/my_references.py:group.scaled",
    ):
        np.testing.assert_array_equal(load_object(words, "--reference")(x, 3), 3 * x)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("scaled", "module:name"),
        ("my_references:scald", "Did you mean scaled"),
        ("my_references:constant", "not callable"),
        ("my_broken:f", "RuntimeError: not today"),
        ("no_such_module:f", "No module named"),
        ("missing.py:f", "FileNotFoundError"),
    ],
)
def test_objects_that_cannot_be_found_are_explained(folder, words, message):
    with pytest.raises(UsageError) as caught:
        load_object(words, "--reference")

    assert message in str(caught.value)


def test_a_right_kernel_passes_and_a_wrong_one_does_not(folder, capsys):
    options = ["--reference", "my_references:scaled", "--level", "quick", "--device", "cpu", "--json"]

    assert main(["verify", "kernel.cu", "--shapes", "M=33,N=5", *options]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "passed"
    assert main(["verify", "wrong.cu", "--inputs", "my_references:inputs", *options]) == 1
    assert json.loads(capsys.readouterr().out)["outcome"] == "wrong_value"


def test_a_records_folder_can_be_named_and_the_report_is_readable(folder, capsys):
    status = main(
        ["verify", ".", "--reference", "my_references.py:scaled", "--level", "quick", "--device", "cpu"]
    )

    text = capsys.readouterr().out
    assert status == 0
    assert "double_it" in text
    assert "passed" in text.lower()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.cu"], "cannot be read"),
        (["kernel.cu", "--inputs", "my_references:nothing"], "did not return inputs"),
        (["kernel.cu", "--shapes", "Q=1"], "has no Q"),
    ],
)
def test_mistakes_are_one_readable_error(folder, capsys, arguments, message):
    assert main(["verify", *arguments, "--reference", "my_references:scaled"]) == 1

    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kernel.cu"], "nothing to compare kernel.cu with"),
        (["missing.cu"], "cannot be read"),
        ([], "There is nothing to verify"),
    ],
)
def test_what_is_missing_is_said_by_name(folder, capsys, words, message):
    assert main(["verify", *words]) == 1

    assert message in capsys.readouterr().err
