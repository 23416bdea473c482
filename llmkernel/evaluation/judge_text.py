"""Errors as findings and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmkernel.errors import BindingError, CompileError, LLMKernelError
from llmkernel.evaluation.draw import Finding
from llmkernel.problem.workloads import Workload


def binding_finding(error: BindingError, workload: Workload) -> Finding:
    """Return the finding of arguments that a header does not take."""
    outcome = {"dtype": "wrong_dtype", "value": "rejected"}.get(error.reason, "wrong_shape")
    evidence = {"argument": error.argument, "reason": error.reason, "workload": workload.label()}
    return Finding(outcome, one_message(error), evidence)


def one_message(error: LLMKernelError) -> str:
    """Return what, rule and received of an error as one line of sentences."""
    parts = [error.what.rstrip(".") + "."]
    if error.rule:
        parts.append(f"Rule: {error.rule.rstrip('.')}.")
    if error.received:
        parts.append(f"Received: {error.received.rstrip('.')}.")
    return " ".join(parts)


def short(text: str) -> str:
    """Return the first line of a text, at most 120 characters."""
    line = text.splitlines()[0]
    return line if len(line) <= 120 else line[:117] + "…"


def first_errors(error: CompileError) -> str:
    """Return the first error of a failed compilation."""
    found = first_error([vars(d) for d in error.diagnostics])
    return found or one_message(error)


def first_error(diagnostics: Sequence[dict[str, Any]]) -> str:
    """Return the first error of a compiler with its line, and how many more there are."""
    errors = [d for d in diagnostics if d["severity"] == "error"]
    if not errors:
        return ""
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"line {errors[0]['line']}: {errors[0]['message']}{more}"
