"""The library's kernels against eager PyTorch and torch.compile, at the published workloads."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.report import Report

CORNER = 384


@dataclass(frozen=True)
class Operator:
    """One row.

    Attributes
    ----------
    name : str
    workload : str
    make : callable
        ``make(torch)`` returns (reference, inputs).
    """

    name: str
    workload: str
    make: Callable[[Any], tuple[Callable[..., Any], list[Any]]]


def _randn(torch: Any, *shape: int, dtype: str = "float32") -> Any:
    return torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype))


def _softmax(dtype: str, m: int, n: int) -> Operator:
    return Operator(
        "softmax",
        f"{dtype} {m}×{n}",
        lambda t: ((lambda x: t.softmax(x, -1)), [_randn(t, m, n, dtype=dtype)]),
    )


def _layer_norm(t: Any) -> tuple[Callable[..., Any], list[Any]]:
    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        return t.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)

    return layer_norm, [_randn(t, 8192, 8192), _randn(t, 8192), _randn(t, 8192)]


def _rms_norm(t: Any) -> tuple[Callable[..., Any], list[Any]]:
    def rms_norm(x: Any, weight: Any) -> Any:
        return t.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)

    return rms_norm, [_randn(t, 8192, 8192, dtype="bfloat16"), _randn(t, 8192, dtype="bfloat16")]


OPERATORS = (
    _softmax("float32", 8192, 8192),
    _softmax("bfloat16", 8192, 8192),
    _softmax("bfloat16", 4096, 50257),
    Operator("layer norm", "float32 8192×8192", _layer_norm),
    Operator("RMS norm", "bfloat16 8192×8192", _rms_norm),
    Operator(
        "GELU",
        "float32 8192×8192",
        lambda t: (t.nn.functional.gelu, [_randn(t, 8192, 8192)]),
    ),
    Operator("row sum", "float32 8192×8192", lambda t: ((lambda x: x.sum(-1)), [_randn(t, 8192, 8192)])),
    Operator(
        "transpose", "float32 8192×8192", lambda t: ((lambda x: x.t().contiguous()), [_randn(t, 8192, 8192)])
    ),
    Operator(
        "prefix sum",
        "float32 8192×8192 rows",
        lambda t: ((lambda x: t.cumsum(x, -1)), [_randn(t, 8192, 8192)]),
    ),
    Operator(
        "matrix product",
        "bfloat16 4096³",
        lambda t: (
            (lambda a, b: a @ b),
            [_randn(t, 4096, 4096, dtype="bfloat16"), _randn(t, 4096, 4096, dtype="bfloat16")],
        ),
    ),
    Operator(
        "matrix product",
        "float32 4096³ (no TF32)",
        lambda t: ((lambda a, b: a @ b), [_randn(t, 4096, 4096), _randn(t, 4096, 4096)]),
    ),
)


def operators(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time each operator from the library; only on a GPU with torch."""
    if device != "cuda":
        return []
    import torch

    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    for operator in OPERATORS:
        if arguments.seconds and time.monotonic() - began > arguments.seconds:
            rows.append({"operator": operator.name, "workload": operator.workload, "outcome": "not run"})
            continue
        if arguments.only and arguments.only not in operator.name:
            continue
        row: dict[str, Any] = {"operator": operator.name, "workload": operator.workload}
        try:
            report = _judge(*operator.make(torch), operator.name)
        except LLMKernelError as error:
            rows.append({**row, "outcome": "not accepted", "note": str(error).replace("\n", " ")[:200]})
            continue
        rows.append({**row, "outcome": report.outcome, **_figures(report)})
        torch.cuda.empty_cache()
    return rows


def _judge(reference: Callable[..., Any], inputs: list[Any], intent: str) -> Report:
    """Verify the library's kernel in full on a small corner, then check and time it at the published size."""
    from llmkernel.evaluation.evaluate import evaluate_problem
    from llmkernel.problem.problem import make_problem
    from llmkernel.problem.reference import make_reference
    from llmkernel.synthesis.synthesize import synthesize

    corner = [v[tuple(slice(0, CORNER) for _ in v.shape)].contiguous() for v in inputs]
    kernel = synthesize(reference, intent, inputs=corner, provider="library", device="cuda")
    problem = make_problem(*make_reference(reference, inputs))
    return evaluate_problem(problem, kernel.source, device="cuda", level="quick", with_timing=True)


def _figures(report: Report) -> dict[str, Any]:
    timing = report.timing
    if timing is None:
        return {}
    best = next((b for b in timing.baselines if b.label == timing.best_baseline), None)
    return {
        "kernel_ms": timing.kernel.median_ms,
        "best_baseline": timing.best_baseline,
        "baseline_ms": best.median_ms if best else None,
        "ratio": best.ratio if best else None,
        "ratio_low": best.ratio_low if best else None,
        "ratio_high": best.ratio_high if best else None,
        "of_speed_of_light": timing.fraction_of_speed_of_light,
        "seconds": report.seconds.get("total"),
        "timing": asdict(timing),
    }
