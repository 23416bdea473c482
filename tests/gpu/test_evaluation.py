"""The candidates of tests/unit/evaluation on a real GPU: `pytest tests/gpu -m gpu`."""

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.devices.cuda.device import CudaDevice
from llmkernel.devices.cuda.sanitizer import find_sanitizer
from tests.unit.evaluation import test_outcomes as cases
from tests.unit.evaluation.kernels import ROW_SUM, axpy, axpy_inputs, row_sum, row_sum_inputs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(CudaDevice.unavailable_reason() is not None, reason="no usable GPU here"),
]

# Where a GPU shows another face of the same mistake: memory far away may be mapped, and one order of threads is all it
# has. The tools that tell them apart are compute-sanitizer's.
ON_GPU = {
    "read far away": {
        "wrong_value",
        "crashed",
        "non_finite",
        "out_of_bounds",
        "uninitialised_read",
        "non_deterministic",
    }
}


@pytest.mark.parametrize("name", cases.WRONG)
def test_a_wrong_candidate_gets_its_outcome(name):
    source, outcome = cases.WRONG[name]
    report = evaluate(source, axpy, axpy_inputs(), device="cuda", level="full", timeout=3.0)
    assert report.outcome in ON_GPU.get(name, {outcome}), report.headline


@pytest.mark.parametrize("name", cases.HONEST)
def test_an_honest_candidate_passes(name):
    report = evaluate(*cases.HONEST[name], device="cuda", level="full")
    assert report.outcome == "passed", report.headline


def test_a_missing_barrier_is_not_accepted():
    source = cases.changed("        __syncthreads();\n    }\n    if", "    }\n    if", ROW_SUM)
    report = evaluate(source, row_sum, row_sum_inputs(), device="cuda", level="full")
    assert report.outcome in {"wrong_value", "non_deterministic", "data_race"}


@pytest.mark.parametrize("name", ["null pointer", "never ends", "traps"])
def test_the_notebooks_gpu_arrays_survive_a_crash(name):
    import torch

    kept = torch.arange(1000, device="cuda")
    source, _ = cases.WRONG[name]
    evaluate(source, axpy, axpy_inputs(), device="cuda", timeout=2.0)
    assert int(kept.sum()) == 499500
    assert evaluate(*cases.HONEST["axpy"], device="cuda").outcome == "passed"


def test_timing_has_baselines_and_a_speed_of_light():
    import torch

    x = torch.randn(2048, 4096, device="cuda")
    report = evaluate(ROW_SUM, lambda x: x.sum(-1), [x], device="cuda", level="quick", with_timing=True)
    assert report.outcome == "passed", report.headline
    timing = report.timing
    assert not timing.is_emulation
    assert {b.label for b in timing.baselines} >= {"reference, eager", "torch.compile (default)"}
    assert all(b.ratio_low <= b.ratio <= b.ratio_high for b in timing.baselines)
    assert 0 < timing.fraction_of_speed_of_light < 1.05
    assert timing.claim
    assert 0 < report.compile["kernels"]["row_sum"]["occupancy"] <= 1


def test_a_torch_kernel_runs_on_the_callers_stream():
    import torch

    import llmkernel

    x = torch.randn(64, 1000, device="cuda")
    kernel = llmkernel.synthesize(
        lambda x: torch.softmax(x, -1),
        "softmax",
        inputs=[x],
        name="softmax",
        provider="library",
        device="cuda",
    )
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = torch.randn(512, 1000, device="cuda")
        z = kernel(y)
    stream.synchronize()
    np.testing.assert_allclose(z.cpu().numpy(), torch.softmax(y, -1).cpu().numpy(), rtol=1e-5, atol=1e-7)


READS_BEYOND = cases.changed("z[i] = a", "*(volatile const float*)&x[i + 1]; z[i] = a")
NO_BARRIER = cases.changed("        __syncthreads();\n    }\n    if", "    }\n    if", ROW_SUM)


@pytest.mark.parametrize(
    ("tool", "source", "reference", "inputs", "outcome"),
    [
        ("memcheck", READS_BEYOND, axpy, axpy_inputs(1024), "out_of_bounds"),
        (
            "initcheck",
            cases.changed("z[i] = a", "*(volatile float*)&z[i]; z[i] = a"),
            axpy,
            axpy_inputs(),
            "uninitialised_read",
        ),
        ("racecheck", NO_BARRIER, row_sum, row_sum_inputs(), "data_race"),
    ],
    ids=["memcheck", "initcheck", "racecheck"],
)
def test_a_tool_finds_what_values_do_not_show(tool, source, reference, inputs, outcome):
    if find_sanitizer() is None:
        pytest.skip("compute-sanitizer is not installed")
    report = evaluate(source, reference, inputs, device="cuda", level="quick", checks=[tool])
    found = {c.name: c for c in report.checks}
    if report.outcome != "wrong_value":  # a race may show in the values before the tool is asked
        assert report.outcome == outcome, report.headline
        assert found[f"compute-sanitizer {tool}"].evidence["line"] > 0


def test_an_honest_kernel_is_clean_under_every_tool():
    if find_sanitizer() is None:
        pytest.skip("compute-sanitizer is not installed")
    report = evaluate(ROW_SUM, row_sum, row_sum_inputs(), device="cuda", level="quick", checks=["all"])
    assert report.outcome == "passed", report.headline
    tools = [c for c in report.checks if c.name.startswith("compute-sanitizer")]
    assert [c.status for c in tools] == ["passed"] * 4, tools


TORCH_OPERATORS = {
    "rms_norm": lambda t: (
        lambda x, weight: t.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6),
        [t.randn(384, 384).bfloat16(), t.randn(384).bfloat16()],
    ),
    "layer_norm": lambda t: (
        lambda x, weight, bias: t.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5),
        [t.randn(300, 500), t.randn(500), t.randn(500)],
    ),
    "softmax": lambda t: (lambda x: t.softmax(x, -1), [t.randn(64, 20011).bfloat16()]),
    "matmul": lambda t: (lambda a, b: a @ b, [t.randn(256, 384).half(), t.randn(384, 128).half()]),
}


@pytest.mark.parametrize("name", TORCH_OPERATORS)
def test_the_librarys_kernel_passes_against_torchs_own_operator(name):
    import torch

    from llmkernel import synthesize

    reference, inputs = TORCH_OPERATORS[name](torch)
    inputs = [v.cuda() for v in inputs]
    kernel = synthesize(reference, name.replace("_", " "), inputs=inputs, name=name, provider="library")
    assert kernel.report.outcome == "passed"
    torch.testing.assert_close(kernel(*inputs), reference(*inputs), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["fence_without_counter", "first_block_adds", "softmax_shared_reused"])
def test_a_race_that_ends_well_is_seen(name):
    from llmkernel.cli import gallery

    cases, problems = gallery.load_gallery(gallery.default_directory(), "cuda", name)
    if cases[0].tools and find_sanitizer() is None:
        pytest.skip("compute-sanitizer is not installed")
    result = gallery.judge_case(cases[0], problems, "cuda")
    assert result.is_right, result.headline
