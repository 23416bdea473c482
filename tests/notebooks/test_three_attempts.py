"""A reply that does not compile, one that is wrong at N = 1023, one that is right: accepted after three attempts."""

from __future__ import annotations

import json

import pytest

from llmkernel.display.bundle import RECORD_MIME
from tests.wire.scripts import Script

from .running import data_of, run_notebook, text_of

pytestmark = pytest.mark.usefixtures("jupyter")

SETUP = """\
import numpy as np

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

x = np.random.default_rng(0).standard_normal((20, 256), dtype="float32")
"""
CHECK = "float(np.abs(softmax_cuda(x) - softmax(x)).max()) < 1e-6"

RIGHT = """\
//! softmax_cuda(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<ceil_div(M, 4), (32, 4)>>>(x, y, M, N)
__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int M, int N)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= M) return;
    x += static_cast<long long>(row) * N;
    y += static_cast<long long>(row) * N;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < N; i += 32) m = fmaxf(m, x[i]);
    for (int k = 16; k > 0; k /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, k));
    float s = 0.0f;
    for (int i = threadIdx.x; i < N; i += 32) s += expf(x[i] - m);
    for (int k = 16; k > 0; k /= 2) s += __shfl_xor_sync(0xffffffff, s, k);
    for (int i = threadIdx.x; i < N; i += 32) y[i] = expf(x[i] - m) / s;
}
"""
NOT_COMPILED = RIGHT.replace("float s = 0.0f;", "float s = 0.0f")
# The sum leaves the last elements out, but only in long rows whose length is not a multiple of four.
WRONG_AT_1023 = RIGHT.replace(
    "for (int i = threadIdx.x; i < N; i += 32) s +=",
    "for (int i = threadIdx.x; i < (N > 1000 ? N & ~3 : N); i += 32) s +=",
)


@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_three_attempts_each_visible(provider, wire_server, tmp_path):
    env = {
        "claude": {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url},
        "codex": {"OPENAI_API_KEY": "sk-proj-" + "test" * 10, "OPENAI_BASE_URL": wire_server.openai_url},
    }[provider]
    replies = [NOT_COMPILED, WRONG_AT_1023, RIGHT]
    wire_server.queue(*(Script(text=f"```cuda\n{r}```\n", thinking="Hm.") for r in replies))
    ask = f"%%cuda_from softmax --device cpu --provider {provider}\nSoftmax over the last axis.\n"
    notebook = run_notebook([SETUP, ask, CHECK], env=env, cwd=tmp_path, save_as="three.ipynb")

    assert text_of(notebook.cells[2]) == "True"
    (html,) = data_of(notebook.cells[1], "text/html")
    for seen in ("not_compiled", "wrong_value", "1023", "passed"):
        assert seen in html
    (record,) = data_of(notebook.cells[1], RECORD_MIME)
    assert record["attempts"] == 3
    assert record["provider"] == provider
    assert record["usage"]["output_tokens"] > 0

    folder = tmp_path / "kernels" / "softmax_cuda"
    lines = [
        json.loads(line) for line in (folder / "transcript.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    outcomes = [line["report"]["outcome"] for line in lines if "report" in line]
    assert outcomes == ["not_compiled", "wrong_value", "passed"]

    told = [str(request.body) for request in wire_server.requests]
    assert len(told) == 3
    assert "line 1" in told[1]  # the compiler's place
    assert "N=1023" in told[2]
    assert "expected" in told[2]
    for text in (*told, html, *(p.read_text(encoding="utf-8") for p in folder.iterdir() if p.is_file())):
        assert "testtesttest" not in text


CRASHES = {
    "illegal address": ("*(volatile int*)16 = 1;", "crashed"),
    "endless loop": ("for (volatile int k = 0;; k = k) {}", "timed_out"),
    "trap": ("__trap();", "crashed"),
}


@pytest.mark.parametrize(("line", "outcome"), CRASHES.values(), ids=CRASHES.keys())
def test_the_next_cell_still_reads_the_arrays(line, outcome, tmp_path):
    source = RIGHT.replace("float s = 0.0f;", f"{line} float s = 0.0f;")
    cells = [
        SETUP,
        f"from llmkernel import evaluate\nevaluate({source!r}, softmax, [x], device='cpu', timeout=2.0).outcome",
        "x.shape, float(softmax(x).sum())",
        f"evaluate({RIGHT!r}, softmax, [x], device='cpu').outcome",
    ]
    notebook = run_notebook(cells, cwd=tmp_path)
    assert text_of(notebook.cells[1]) == repr(outcome)
    assert text_of(notebook.cells[2]).startswith("((20, 256), 20.0")
    assert text_of(notebook.cells[3]) == "'passed'"


def test_an_accepted_kernel_is_found_again_without_a_key(wire_server, tmp_path):
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    # Nothing that ships computes this.
    setup = (
        "import numpy as np\n"
        "def odd(x):\n    return np.where(x > 0, x * np.float32(0.37), -x) + np.float32(0.11)\n"
        "x = np.random.default_rng(0).standard_normal(300, dtype='float32')\n"
    )
    source = (
        "//! odd_cuda(x: float32[N]) -> y: float32[N]\n//! odd<<<ceil_div(N, 64), 64>>>(x, y, N)\n"
        "__global__ void odd(const float* x, float* y, int N) {\n"
        "    const int i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (i < N) y[i] = (x[i] > 0 ? x[i] * 0.37f : -x[i]) + 0.11f;\n}\n"
    )
    ask = "%%cuda_from odd --device cpu --provider {}\nThe odd function.\n"
    wire_server.queue(Script(text=f"```cuda\n{source}```\n"))
    run_notebook([setup, ask.format("claude")], env=env, cwd=tmp_path / "one")

    again = run_notebook([setup, ask.format("library"), "odd_cuda(x).shape"], cwd=tmp_path / "two")

    assert text_of(again.cells[2]) == "(300,)"
    assert len(wire_server.requests) == 1
