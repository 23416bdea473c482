"""What a provider is told of a candidate that was not accepted."""

from __future__ import annotations

from typing import Any

from llmkernel.evaluation.draw import Finding

MAX_DIAGNOSTICS = 5
MAX_CHARACTERS = 4000

_HINTS = {
    "not_compiled": "Correct the compiler errors. The source is compiled by NVRTC as C++17: no host headers.",
    "not_written": "Every element of every output must be written on every call; outputs start with arbitrary bits.",
    "out_of_bounds": "Check every index against the sizes, also in the last block and in vectorised tails.",
    "uninitialised_read": "Outputs, scratch and shared memory start with arbitrary bits: write first, or declare `= 0`.",
    "data_race": "Look for a missing barrier between a write and a read by other threads, or a dependency between blocks.",
    "non_deterministic": "Look for a missing barrier or a race between threads.",
    "invalid_synchronization": "Every thread of the block (or of the mask) must reach the same barrier.",
    "precision_downgraded": "Accumulate and compute at the precision of the contract.",
    "input_mutated": "Inputs are read-only.",
    "non_finite": "Treat NaN and infinity as the reference does; subtract the maximum before exp; avoid overflow inside.",
    "timed_out": "Look for a loop that does not end, or a wait between blocks.",
    "launch_failed": "Stay within the device's limits for grid, block, shared memory and cluster.",
    "rejected": "Return device code under a launch header, and nothing else.",
}


def feedback_of(finding: Finding) -> str:
    """Return the text that goes back: outcome, reason, evidence and a hint, trimmed."""
    lines = [f"Outcome: {finding.outcome}.", finding.summary]
    diagnostics = [d for d in finding.evidence.get("diagnostics", []) if d.get("severity") == "error"]
    lines += [f"  line {d['line']}: error: {d['message'][:400]}" for d in diagnostics[:MAX_DIAGNOSTICS]]
    if len(diagnostics) > MAX_DIAGNOSTICS:
        lines.append(f"  … {len(diagnostics) - MAX_DIAGNOSTICS} more errors")
    lines += [_element(e) for e in finding.evidence.get("examples", [])]
    if finding.evidence.get("pattern"):
        lines.append(f"Where: {finding.evidence['pattern']}.")
    hint = _HINTS.get(finding.outcome)
    if hint:
        lines.append(hint)
    text = "\n".join(lines)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def _element(example: dict[str, Any]) -> str:
    index = ", ".join(map(str, example["index"]))
    return f"  [{index}]: got {example['got']}, expected {example['expected']}"
