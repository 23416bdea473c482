"""One candidate for each way of going wrong, and honest ones beside them, on the `cpu` device."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from llmkernel import Report, evaluate
from llmkernel.errors import ReferenceProblem, UsageError
from tests.unit.evaluation.kernels import AXPY, ROW_SUM, axpy, axpy_inputs, row_sum, row_sum_inputs


def judge(source, reference=axpy, inputs=None, level="full", **options):
    values = axpy_inputs() if inputs is None else inputs
    return evaluate(source, reference, values, device="cpu", level=level, **options)


def changed(old, new, source=AXPY):
    assert old in source
    return source.replace(old, new)


WRONG = {
    "no bounds check": (changed("if (i < N)", ""), "out_of_bounds"),
    "write behind the end": (changed("z[i] = a", "if (i == N - 1) z[N] = 1; z[i] = a"), "out_of_bounds"),
    "read far away": (changed("+ y[i]", "+ y[i + 100000]"), "out_of_bounds"),
    "last element left out": (changed("if (i < N)", "if (i < N - 1)"), "not_written"),
    "does nothing": (changed("z[i] = a * x[i] + y[i];", ""), "not_written"),
    "constant built in": (changed("a * x[i]", "2.0f * x[i]"), "wrong_value"),
    "zeros": (changed("a * x[i] + y[i]", "0.0f"), "wrong_value"),
    "copies its input": (changed("a * x[i] + y[i]", "x[i]"), "wrong_value"),
    "a little wrong": (changed("+ y[i]", "+ 1.0001f * y[i]"), "wrong_value"),
    "right only at the example's size": (
        changed("z[i] = a", "z[i] = (N == 1000 ? 1 : 2) * a"),
        "wrong_value",
    ),
    "changes an input": (
        changed("z[i] = a", "((float*)x)[i] += 0.0f; if (N > 3) ((float*)y)[2] = 9; z[i] = a"),
        "input_mutated",
    ),
    "adds to what was there": (changed("z[i] = a", "z[i] += a"), "uninitialised_read"),
    "NaN for large inputs": (
        changed(
            "z[i] = a * x[i] + y[i];", "z[i] = x[i] > 1e3f ? __int_as_float(0x7fc00000) : a * x[i] + y[i];"
        ),
        "non_finite",
    ),
    "never ends": (
        changed("z[i] = a", "while (z[i] == z[i] || N > 0) ((volatile float*)z)[i] = 1; z[i] = a"),
        "timed_out",
    ),
    "traps": (changed("z[i] = a", "__trap(); z[i] = a"), "crashed"),
    "null pointer": (changed("z[i] = a", "*(volatile int*)16 = 1; z[i] = a"), "crashed"),
    "does not compile": (changed("z[i] = a", "z[i] = undeclared + a"), "not_compiled"),
    "too many threads": (changed("ceil_div(N, 128), 128>>>", "ceil_div(N, 128), 2048>>>"), "launch_failed"),
    "declares another dtype": (
        AXPY.replace("-> z: float32", "-> z: float64").replace("float* z", "double* z"),
        "wrong_dtype",
    ),
    "declares another shape": (
        AXPY.replace("-> z: float32[N]", "-> z: float32[N, 2]"),
        "wrong_shape",
    ),
    "takes another number of inputs": (
        "//! f(x: float32[N]) -> z: float32[N]\n//! f<<<1, 1>>>(x, z)\n__global__ void f(const float* x, float* z) {}",
        "wrong_shape",
    ),
    "host code": (AXPY + "\nint main() { return 0; }\n", "rejected"),
    "no kernel": ("I am sorry, I cannot do that.", "rejected"),
    "nothing": ("", "rejected"),
    "a character that cannot be stored": (AXPY + "// \ud800\n", "rejected"),
    "ten megabytes": (AXPY + "// " + 10_000_000 * "a" + "\n", "rejected"),
    "bytes": (b"\xff\xfe no kernel", "rejected"),
    "no text": (None, "rejected"),
    "binary": ("\x00\xff" * 50, "rejected"),
    "excludes the user's own size": (
        AXPY.replace("\n//! axpy<<<", "\n//! require N <= 10\n//! axpy<<<"),
        "rejected",
    ),
}


@pytest.mark.parametrize(("source", "outcome"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_candidate_gets_its_outcome(source, outcome):
    report = judge(source, timeout=2.0)
    assert report.outcome == outcome, report.headline
    assert report.headline
    assert report.feedback
    assert report.timing is None


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (changed("        __syncthreads();\n    }\n    if", "    }\n    if", ROW_SUM), "data_race"),
        (changed("s += x[", "s = s + (float)(short)x[", ROW_SUM), "wrong_value"),
        (changed("i < N; i += 128", "i < N - N % 128; i += 128", ROW_SUM), "wrong_value"),
    ],
    ids=["missing barrier", "narrowed accumulator", "tail left out"],
)
def test_reductions_that_go_wrong(source, outcome):
    assert judge(source, row_sum, row_sum_inputs()).outcome == outcome


def each(signature, body):
    """A candidate with one thread an element: the names of the signature's arrays are the kernel's parameters."""
    name, _, rest = signature.partition("(")
    words = re.findall(r"(\w+): (\w+)(\[[^\]]*\])?", rest)
    kinds = {"float32": "float", "int32": "int", "bool": "bool"}
    outputs = rest.partition("->")[2]
    parameters = [
        f"{'' if f'{n}:' in outputs or 'inout' in rest else 'const '}{kinds[t]}* {n}" for n, t, _ in words
    ]
    names = ", ".join(n for n, _, _ in words)
    return (
        f"//! {signature}\n//! {name}<<<ceil_div(N, 64), 64>>>({names}, N)\n"
        f"__global__ void {name}({', '.join(parameters)}, int N) {{\n"
        f"    int i = blockIdx.x * 64 + threadIdx.x;\n    if (i < N) {{ {body} }}\n}}\n"
    )


def normal(*shape):
    return [np.random.default_rng(0).standard_normal(shape).astype(np.float32)]


HONEST = {
    "axpy": (AXPY, axpy, axpy_inputs()),
    "row sum": (ROW_SUM, row_sum, row_sum_inputs()),
    "torch tensors": (
        AXPY,
        lambda a, x, y: a * x + y,
        [2.0, *(torch.from_numpy(v) for v in axpy_inputs()[1:])],
    ),
    "float atomics in any order": (
        each("total(x: float32[N]) -> y: float32 = 0", "atomicAdd(y, x[i]);"),
        lambda x: x.sum(),
        normal(500),
    ),
    "in place": (each("double_(inout x: float32[N])", "x[i] *= 2;"), lambda x: x.__imul__(2), normal(100)),
    "the identity": (each("copy(x: float32[N]) -> y: float32[N]", "y[i] = x[i];"), np.copy, normal(100)),
    "integers that wrap": (
        each("mul(x: int32[N]) -> y: int32[N]", "y[i] = (int)((unsigned)x[i] * 1664525u + 1013904223u);"),
        lambda x: x * np.int32(1664525) + np.int32(1013904223),
        [np.random.default_rng(0).integers(-(2**31), 2**31, 100).astype(np.int32)],
    ),
    "two results": (
        each("both(x: float32[N]) -> (y: float32[N], p: bool[N])", "y[i] = -x[i]; p[i] = x[i] > 0;"),
        lambda x: (-x, x > 0),
        normal(100),
    ),
    "two axes, either of which may be empty": (
        AXPY.replace("float32[N]", "float32[M, N]")
        .replace("y, z, N)", "y, z, M * N)")
        .replace("ceil_div(N", "ceil_div(M * N"),
        axpy,
        [2.0, *normal(8, 12), *normal(8, 12)],
    ),
    "NaN in, NaN out": (
        each("root(x: float32[N]) -> y: float32[N]", "y[i] = sqrtf(x[i]);"),
        np.sqrt,
        normal(100),
    ),
    "a size the header fixes": (
        each(
            "row_norm(x: float32[N, 3]) -> y: float32[N]",
            "float s = 0; for (int k = 0; k < 3; ++k) s += x[3 * i + k] * x[3 * i + k]; y[i] = s;",
        ),
        lambda x: (x * x).sum(-1),
        normal(100, 3),
    ),
}


@pytest.mark.parametrize(("source", "reference", "inputs"), HONEST.values(), ids=HONEST.keys())
def test_an_honest_candidate_passes(source, reference, inputs):
    report = judge(source, reference, inputs)
    assert report.outcome == "passed", report.headline
    assert {c.name for c in report.checks if c.status == "passed"} >= {
        "compile",
        "values",
        "trivial controls",
    }
    assert any("GPU" in n for n in report.not_checked)


def test_half_precision_under_a_float32_contract_is_named():
    source = "#include <cuda_fp16.h>\n" + AXPY.replace(
        "z[i] = a * x[i] + y[i];",
        "z[i] = __half2float(__float2half(a)) * __half2float(__float2half(x[i])) + __half2float(__float2half(y[i]));",
    )
    assert judge(source).outcome == "precision_downgraded"


def test_a_reference_that_ignores_its_inputs_is_inconclusive():
    source = each("seven(x: int32[N]) -> y: int32[N]", "y[i] = 7;")
    report = judge(source, lambda x: np.full_like(x, 7), [np.arange(50, dtype=np.int32)])
    assert report.outcome == "inconclusive"
    assert "hardly depends" in report.headline


def test_a_report_is_json_and_comes_back_equal():
    report = judge(AXPY, with_timing=True)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert Report.from_dict(data).to_dict() == data
    assert report.timing is not None
    assert report.timing.is_emulation
    assert "nothing about speed" in report.timing.claim


def test_the_example_is_untouched():
    inputs = axpy_inputs()
    before = [np.copy(v) for v in inputs]
    judge(changed("z[i] = a", "((float*)x)[i] = 0; z[i] = a"), inputs=inputs)
    for a, b in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_quick_says_that_it_was_quick():
    report = judge(AXPY, level="quick")
    assert report.outcome == "passed"
    assert "Quick check only" in report.headline
    assert any("no further value families" in n for n in report.not_checked)


def test_the_tolerance_of_floats_is_said_where_none_was_compared():
    report = judge(changed("if (i < N)", "if (i < N - 1)"))
    assert report.outcome == "not_written"
    assert report.tolerance["policy"] == "derived"


def test_a_widened_tolerance_is_said():
    report = judge(changed("+ y[i]", "+ 0.9999f * y[i]"), tolerance=1e-2)
    assert report.outcome == "passed"
    assert report.tolerance["policy"] == "user"
    assert "0.01" in report.tolerance["reason"]


def test_an_explicit_signature_unties_or_ties_sizes():
    report = judge(
        AXPY, signature="axpy(a: float32, x: float32[K], y: float32[K]) -> z: float32[K]", level="quick"
    )
    assert report.workloads[1]["sizes"].keys() == {"K"}


def test_wrong_questions_are_refused_before_anything_runs():
    with pytest.raises(UsageError, match="no device 'tpu'"):
        evaluate(AXPY, axpy, axpy_inputs(), device="tpu")
    with pytest.raises(UsageError, match="no level"):
        evaluate(AXPY, axpy, axpy_inputs(), device="cpu", level="deep")
    with pytest.raises(ReferenceProblem):
        evaluate(AXPY, axpy, axpy_inputs()[:2], device="cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1.0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"tolerance": -1e-3}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"tolerance": "1e-3"}, "tolerance"),
        ({"arch": "hopper"}, "architecture"),
        ({"arch": 90}, "architecture"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(UsageError, match=message) as caught:
        judge(AXPY, **options)
    assert caught.value.next_step


@pytest.mark.parametrize("inputs", [None, 3, "x", np.ones(3, np.float32)])
def test_inputs_that_are_no_list_are_refused(inputs):
    with pytest.raises(UsageError, match=r"Write inputs=\[x\]"):
        evaluate(AXPY, axpy, inputs, device="cpu")


@pytest.mark.parametrize(
    "source",
    ["\ufeff" + AXPY, AXPY.replace("\n", "\r\n"), AXPY.encode()],
    ids=["byte order mark", "CRLF", "bytes"],
)
def test_a_file_may_be_stored_in_any_usual_way(source):
    assert judge(source, level="quick").outcome == "passed"


class Counter:
    def __init__(self):
        self.calls = 0

    def scale(self, a, x, y):
        self.calls += 1
        return axpy(a, x, y) * np.float32(self.calls)


@pytest.mark.parametrize(
    "reference",
    [
        lambda a, x, y: axpy(a, x, y) * np.random.default_rng().random(x.shape).astype(np.float32),
        lambda a, x, y: np.random.default_rng().integers(0, 9, x.shape),
        Counter().scale,
    ],
    ids=["noise", "integers", "state"],
)
def test_a_candidate_is_not_blamed_for_a_reference_that_contradicts_itself(reference):
    report = judge(AXPY, reference)
    assert report.outcome == "inconclusive", report.headline
    assert report.headline.startswith("The reference gives different results for the same inputs")
    assert "seed the generator" in report.headline


def test_what_only_a_host_compiler_takes_is_not_compiled():
    pytest.importorskip("cuda.bindings.nvrtc")
    source = changed("z[i] = a", "z[i] = (float)__builtin_popcountll(i) * 0 + a")
    report = judge(source, level="quick")
    assert report.outcome == "not_compiled"
    assert "NVRTC (sm_90a)" in report.headline


def test_resources_of_a_named_architecture_are_shown_without_a_gpu():
    pytest.importorskip("cuda.bindings.nvrtc")
    report = judge(AXPY, level="quick", arch="sm_80")
    assert report.outcome == "passed"
    assert report.compile["kernels"]["axpy"]["registers"] > 0
    assert "sm_80" in report.compile["arch"]


def test_a_size_that_is_slow_to_emulate_is_not_the_kernels_fault():
    slow = changed(
        "z[i] = a * x[i] + y[i];",
        "float s = a * x[i] + y[i]; for (volatile int k = 0; k < (N > 5000 ? 200000 : 1); k = k + 1) s += 0.0f; z[i] = s;",
    )
    report = judge(slow, inputs=axpy_inputs(200_000), timeout=2.0)
    assert report.outcome == "inconclusive", report.headline
    assert "takes too long" in report.headline


def test_a_report_reads_well_wherever_it_is_shown():
    report = evaluate(AXPY, axpy, axpy_inputs(), device="cpu")
    assert repr(report).startswith("<Report passed: axpy. Agrees with the reference")
    text = str(report)
    assert text.startswith("✓ passed · axpy\n")
    assert "What was not checked" in text
    assert "generated" not in text
    assert max(map(len, text.split("\n"))) <= 80
    shown = report._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/markdown", "text/plain"}
    assert shown["text/plain"] == text


def test_where_a_result_is_wrong_is_said_of_all_wrong_elements():
    source = AXPY.replace("z[i] = a * x[i] + y[i];", "z[i] = i < 5 ? a * x[i] + y[i] : 0.0f;")
    x = np.ones((40, 160), np.float32)
    flat = source.replace("[N]", "[M, N]").replace("ceil_div(N, 128)", "ceil_div(M * N, 128)")
    flat = flat.replace("(a, x, y, z, N)", "(a, x, y, z, M * N)", 1)
    report = evaluate(flat, axpy, [np.float32(2), x, x], device="cpu")
    assert report.outcome == "wrong_value", report.headline
    failed = next(c for c in report.checks if c.status == "failed")
    assert failed.evidence["count"] == 6395
    assert failed.evidence["pattern"] == ""


def test_the_range_of_integers_that_was_run_is_said():
    source = AXPY.replace("float a", "int a").replace("a: float32", "a: int32").replace("float", "int")
    source = source.replace("int32[N]", "int32[N]").replace("float32", "int32")
    ten = np.arange(3, 13, dtype=np.int32)
    report = evaluate(source, lambda a, x, y: a * x + y, [np.int32(2), ten, ten], device="cpu")
    assert report.outcome == "passed", report.headline
    assert any(s.startswith("Integers outside") and "`x` 3 … 12" in s for s in report.not_checked)


def test_a_kernels_report_prints_as_a_report_too():
    code = (
        "import numpy as np; from llmkernel import synthesize\n"
        "k = synthesize(lambda x: np.maximum(x, 0), 'relu', inputs=[np.ones((3, 5), np.float32)],"
        " provider='library', device='cpu')\nprint(k.report)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "What was not checked" in done.stdout
