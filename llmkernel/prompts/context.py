"""The sections of the first user message: what is to be computed, on what, and what helps."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from llmkernel.devices.base import DeviceLimits
from llmkernel.problem.arrays import describe, is_array
from llmkernel.problem.reference import Reference, source_of
from llmkernel.problem.signature import ArraySpec
from llmkernel.prompts.device_header import declarations
from llmkernel.prompts.redaction import redact
from llmkernel.prompts.retrieval import choose_guides
from llmkernel.prompts.text import cut, encodable, fenced

MAX_INTENT = 60_000
MAX_SOURCE = 30_000
MAX_HELPERS = 6
_WANTS_TENSOR_CORES = {"matmul", "attention"}
_CPU = (
    "The `cpu` device: CUDA C++ compiled for the host, with blocks as host threads. Use portable CUDA C++ "
    "only: no inline PTX, no clusters, no TMA, no `cuda::barrier`, no grid-wide synchronisation. Warp shuffles, "
    "cooperative-group tiles, shared memory, atomics, float16, bfloat16 and `nvcuda::wmma` work."
)
_MODULES_LEFT_OUT = ("numpy", "cupy", "cupyx", "torch", "scipy", "builtins", "math")


def describe_problem(problem: Any, limits: DeviceLimits, target_note: str = "") -> str:
    """Return the first user message.

    Parameters
    ----------
    problem : llmkernel.problem.problem.Problem
    limits : llmkernel.devices.base.DeviceLimits
        Of the device that the candidate will be judged on.
    target_note : str
        What is known of the target beyond its limits, such as its measured bandwidth.
    """
    intent = encodable(problem.intent)
    sections = [
        f"Write the kernel `{problem.signature.name}`.",
        "## Signature\n\n" + _signature(problem),
        "## Intent, in the user's own words\n\n"
        + (
            fenced(cut(redact(intent), MAX_INTENT))
            if intent.strip()
            else "None was given: compute what the reference computes."
        ),
        "## Reference, which defines the right answer\n\n" + _reference(problem.reference),
        "## Target\n\n" + _target(limits, target_note),
    ]
    task = f"{problem.name} {problem.intent} {problem.reference.source}"
    chosen = choose_guides(task, limits.arch)
    if limits.device == "cuda" and _WANTS_TENSOR_CORES & {g.name for g in chosen}:
        sections.append("## Declarations of `llmkernel.cuh`\n\n" + fenced(declarations(), "cuda"))
    if chosen:
        sections.append(
            "## Notes that may help\n\n" + "\n\n".join(g.text.replace("# ", "### ", 1) for g in chosen)
        )
    return "\n\n".join(sections) + "\n"


def _signature(problem: Any) -> str:
    lines = [fenced(str(problem.signature), "")]
    if problem.sizes:
        sizes = ", ".join(f"{name} = {size}" for name, size in problem.sizes.items())
        lines.append(f"In the example, {sizes}. Sizes vary independently from call to call.")
    given = [
        f"- `{spec.name}`: {describe(value)}"
        for spec, value in zip(problem.signature.inputs, problem.inputs, strict=True)
    ]
    lines.append("Example inputs:\n" + "\n".join(given))
    inout = [f"`{s.name}`" for s in problem.signature.inputs if isinstance(s, ArraySpec) and s.is_inout]
    if inout:
        lines.append(f"The reference changes {', '.join(inout)} in place: so must the kernel (`inout`).")
    lines += [f"- {encodable(note)}" for note in problem.notes]
    return "\n\n".join(lines)


def _reference(reference: Reference) -> str:
    source = redact(encodable(reference.source))
    if source:
        parts = [fenced(cut(source, MAX_SOURCE), "python")]
    else:
        name = getattr(reference.function, "__qualname__", reference.name)
        module = getattr(reference.function, "__module__", None) or ""
        parts = [f"Its source is not available; it is `{module + '.' if module else ''}{name}`."]
    if reference.fixed:
        values = ", ".join(f"{k} = {_short(v)}" for k, v in reference.fixed.items())
        parts.append(f"Parameters that keep one value: {values}.")
    numbers, helpers = _surroundings(reference)
    if numbers:
        parts.append("Values it uses from outside: " + ", ".join(f"{k} = {v!r}" for k, v in numbers) + ".")
    parts += [fenced(cut(redact(text), MAX_SOURCE // 3), "python") for text in helpers]
    return "\n\n".join(parts)


def _short(value: Any) -> str:
    # Redacted before it is cut: half a key is no longer known as one.
    return encodable(describe(value) if is_array(value) else redact(repr(value)[:MAX_SOURCE])[:80])


def _surroundings(reference: Reference) -> tuple[list[tuple[str, float]], list[str]]:
    """Return the numbers and the helper functions that the reference takes from its closure and globals."""
    numbers: list[tuple[str, float]] = []
    helpers: list[str] = []
    seen: set[int] = {id(reference.function)}
    for name, value in _names(reference.function, seen):
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append((name, value))
        elif inspect.isfunction(value) and len(helpers) < MAX_HELPERS:
            text = encodable(source_of(value))
            if text and text not in helpers:
                helpers.append(text)
    return list(dict.fromkeys(numbers)), helpers


def _names(function: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    target = inspect.unwrap(getattr(function, "func", function))
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if code is None:
        return
    found = inspect.getclosurevars(getattr(target, "__func__", target))
    for name, value in (*found.nonlocals.items(), *found.globals.items()):
        if id(value) in seen:
            continue
        yield name, value
        module = (getattr(value, "__module__", "") or "").split(".")[0]
        if inspect.isfunction(value) and module not in _MODULES_LEFT_OUT:
            seen.add(id(value))
            yield from _names(value, seen)


def _target(limits: DeviceLimits, note: str) -> str:
    threads, shared = limits.max_threads_per_block, limits.max_shared_bytes
    room = f"{threads} threads and {shared} bytes of shared memory a block"
    if limits.device == "cpu":
        lines = [_CPU, f"- at most {room}"]
    else:
        lines = [f"{limits.name}, architecture {limits.arch}:", f"- {limits.num_sms} multiprocessors, {room}"]
        if limits.l2_bytes:
            lines.append(
                f"- {limits.l2_bytes / 2**20:.0f} MiB of L2, {limits.memory_bytes / 2**30:.0f} GiB of memory"
            )
        features = (
            [f"clusters of up to {limits.max_cluster_size} blocks"] if limits.max_cluster_size > 1 else []
        )
        features += ["TMA"] if limits.supports_tma else []
        features += ["cooperative launches"] if limits.supports_cooperative else []
        lines.append(
            "- available: " + (", ".join(features) or "neither clusters nor TMA nor cooperative launches")
        )
    if note.strip():
        lines.append(encodable(note.strip()))
    return "\n".join(lines)
