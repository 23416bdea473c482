"""One draw on a device: guard bands, poison, repeats, and what changed that should not have.

Runs inside the worker. It knows inputs and outputs, never what the outputs should be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from llmkernel.devices.base import Bytes, Device, ExecutionOptions, Fault, Image, Module
from llmkernel.devices.plan import Buffer, LaunchPlan
from llmkernel.evaluation.error_map import error_map
from llmkernel.problem.dtypes import DTYPES

ALIGNMENT = 256
_PATTERN_BYTES = 1_048_573
# Larger than any address space: NumPy calls it a wrong value.
_NO_ARRAY_BYTES = 1 << 48
_POISONED = ("output", "scratch")


@dataclass
class DrawResult:
    """What one draw showed.

    Attributes
    ----------
    results : list of numpy.ndarray
        Result payloads of the first run, uint8, in the plan's return order; empty after a fault.
    finals : dict
        Final payloads of `inout` buffers that are not results.
    others : dict
        Result buffer to the payload of the first run that was not bitwise equal to the first.
    fault : Fault or None
    elapsed_ms : list of float
    guards : list of dict
        Guard bytes that changed: ``buffer``, ``side``, ``element`` (index of the nearest element).
    mutated : list of dict
        Inputs that changed: ``buffer``, ``count``, ``element``.
    unwritten : dict
        Result buffer to ``{"count", "first", "map"}``.
    differs : dict
        Result buffer to ``{"count", "first", "run"}``: runs that were not bitwise equal to the first.
    depends_on_poison : bool
        Runs over equal poison agree and runs over different poison do not.
    printed : str
    """

    results: list[Bytes] = field(default_factory=list)
    finals: dict[str, Bytes] = field(default_factory=dict)
    others: dict[str, Bytes] = field(default_factory=dict)
    fault: Fault | None = None
    elapsed_ms: list[float] = field(default_factory=list)
    guards: list[dict[str, Any]] = field(default_factory=list)
    mutated: list[dict[str, Any]] = field(default_factory=list)
    unwritten: dict[str, dict[str, Any]] = field(default_factory=dict)
    differs: dict[str, dict[str, int]] = field(default_factory=dict)
    depends_on_poison: bool = False
    printed: str = ""


def run_draw(
    device: Device,
    module: Module,
    plan: LaunchPlan,
    inputs: Mapping[str, Bytes],
    *,
    repeats: int,
    seed: int,
    options: ExecutionOptions,
    misalign: Mapping[str, int] | None = None,
) -> DrawResult:
    """Run `plan` several times over one draw.

    Parameters
    ----------
    inputs : mapping
        Payload bytes of every input and inout buffer.
    repeats : int
        At least 2: the second run has the complement of the first run's poison, so that an element that was never
        written is told from one that happens to equal its poison.
    seed : int
        Secret; of poison and guard patterns.
    misalign : mapping, optional
        Bytes past a 256-byte boundary by buffer name.
    """
    shifts = misalign or {}
    try:
        runs = [_images(device, plan, inputs, seed, r, shifts) for r in range(repeats)]
        before = [{n: _guards(i) for n, i in images.items()} for images in runs]
    except (MemoryError, ValueError) as error:
        return DrawResult(fault=_too_large(plan, error))
    executions = device.execute_many(module, plan, runs, options)
    out = DrawResult(
        elapsed_ms=[e.elapsed_ms for e in executions],
        fault=next((e.fault for e in executions if e.fault), None),
        printed="".join(e.printed for e in executions)[:65536],
    )
    if out.fault is not None:
        # Guards that were hit before the fault name the cause better than the fault does.
        for images, guards in zip(runs[: len(executions)], before, strict=False):
            _compare_guards(out, plan, images, guards)
        return out
    for images, guards in zip(runs, before, strict=True):
        _compare_guards(out, plan, images, guards)
        _compare_inputs(out, plan, images, inputs)
    _compare_results(out, plan, runs, seed)
    if out.differs:
        _tell_poison_from_race(out, device, module, plan, inputs, seed, options, shifts)
    first = runs[0]
    out.results, out.finals = _results(plan, first), _finals(plan, first)
    return out


def run_sequence(
    device: Device,
    module: Module,
    plan: LaunchPlan,
    draws: Sequence[Mapping[str, Bytes]],
    *,
    repeats: Sequence[int],
    seed: int,
    options: ExecutionOptions,
) -> list[DrawResult]:
    """Run `plan` many times over one fresh load of the module, one draw after the other.

    Each draw's result is that of its last run, compared with its first run and with the poison of its last two.

    Parameters
    ----------
    draws : sequence of mapping
        Payload bytes of every input and inout buffer; each has the plan's sizes.
    repeats : sequence of int
        How often each draw runs: even, so that the last two runs have complementary poison.
    """
    try:
        runs = [
            _images(device, plan, inputs, seed, r, {})
            for inputs, count in zip(draws, repeats, strict=True)
            for r in range(count)
        ]
    except (MemoryError, ValueError) as error:
        return [DrawResult(fault=_too_large(plan, error))]
    executions = device.execute_many(module, plan, runs, replace(options, is_fresh_module=True))
    fault = next((e.fault for e in executions if e.fault), None)
    if fault is not None:
        return [DrawResult(fault=fault)]
    results = []
    end = 0
    for count in repeats:
        own = runs[end : end + count]
        end += count
        out = DrawResult()
        _compare_results(out, plan, [own[-2], own[-1], own[0]], seed, (count - 2) // 2)
        out.results, out.finals = _results(plan, own[-2]), _finals(plan, own[-2])
        results.append(out)
    return results


def run_over_leftovers(
    device: Device,
    module: Module,
    plan: LaunchPlan,
    draws: Sequence[Mapping[str, Bytes]],
    *,
    seed: int,
    options: ExecutionOptions,
) -> list[DrawResult]:
    """Run `plan` once for each draw in the same buffers: outputs and scratch hold what the draw before left there.

    An allocator that hands out the same memory again does that to every caller; poison never looks like a result.
    """
    try:
        images = _images(device, plan, draws[0], seed, 0, {})
    except (MemoryError, ValueError) as error:
        return [DrawResult(fault=_too_large(plan, error))]
    results = []
    for inputs in draws:
        for buffer in plan.buffers:
            if buffer.role not in _POISONED:
                images[buffer.name].payload[:] = inputs[buffer.name]
        fault = device.execute_many(module, plan, [images], options)[0].fault
        if fault is not None:
            return [DrawResult(fault=fault)]
        results.append(DrawResult(results=_results(plan, images), finals=_finals(plan, images)))
    return results


def _results(plan: LaunchPlan, images: Mapping[str, Image]) -> list[Bytes]:
    return [images[name].payload.copy() for name in plan.results]


def _finals(plan: LaunchPlan, images: Mapping[str, Image]) -> dict[str, Bytes]:
    return {
        b.name: images[b.name].payload.copy()
        for b in plan.buffers
        if b.role == "inout" and b.name not in plan.results
    }


def _too_large(plan: LaunchPlan, error: Exception) -> Fault:
    """Return the fault of buffers for which the host has no memory, or NumPy no size; raise `error` where it is another."""
    sizes = {b.name: payload_bytes(b) for b in plan.buffers}
    largest = max(sizes, key=lambda name: sizes[name], default="")
    if isinstance(error, ValueError) and sizes.get(largest, 0) < _NO_ARRAY_BYTES:
        raise error
    return Fault(
        "out_of_memory",
        f"The buffers of the run do not fit into memory: `{largest}` alone needs {sizes.get(largest, 0)} bytes.",
        details={"argument": largest},
    )


def payload_bytes(buffer: Buffer) -> int:
    """Return the size of a buffer's storage in bytes, strides included."""
    if buffer.strides is None:
        count = math.prod(buffer.shape)
    elif 0 in buffer.shape:
        count = 0
    else:
        count = 1 + sum((n - 1) * s for n, s in zip(buffer.shape, buffer.strides, strict=True))
    return count * DTYPES[buffer.dtype].itemsize


def _images(
    device: Device,
    plan: LaunchPlan,
    inputs: Mapping[str, Bytes],
    seed: int,
    run: int,
    shifts: Mapping[str, int],
) -> dict[str, Image]:
    images = {}
    for number, buffer in enumerate(plan.buffers):
        nbytes = payload_bytes(buffer)
        shift = shifts.get(buffer.name, 0)
        front = -(-device.front_guard_bytes // ALIGNMENT) * ALIGNMENT + shift
        data = _pattern([seed, number, run // 2], front + nbytes + device.back_guard_bytes)
        image = Image(data, front, nbytes, shift)
        if buffer.role in _POISONED:
            if run % 2:
                np.invert(image.payload, out=image.payload)
        else:
            image.payload[:] = inputs[buffer.name]
        images[buffer.name] = image
    return images


def _pattern(seed: list[int], size: int) -> Bytes:
    """Return secret bytes; beyond a prime number of them they repeat, which no kernel can make use of."""
    unit = np.frombuffer(np.random.default_rng(seed).bytes(min(size, _PATTERN_BYTES)), np.uint8)
    if len(unit) == size:
        return unit.copy()
    data = np.empty(size, np.uint8)
    whole = size // len(unit) * len(unit)
    data[:whole].reshape(-1, len(unit))[...] = unit
    data[whole:] = unit[: size - whole]
    return data


def _guards(image: Image) -> tuple[Bytes, Bytes]:
    return image.data[: image.offset].copy(), image.data[image.offset + image.nbytes :].copy()


def _compare_guards(
    out: DrawResult, plan: LaunchPlan, images: Mapping[str, Image], before: Mapping[str, tuple[Bytes, Bytes]]
) -> None:
    if out.guards:
        return
    for buffer in plan.buffers:
        image = images[buffer.name]
        size = DTYPES[buffer.dtype].itemsize
        for side, was, now in zip(("before", "after"), before[buffer.name], _guards(image), strict=True):
            if np.array_equal(was, now):
                continue
            changed = np.flatnonzero(was != now)
            if changed.size:
                at = int(changed[-1] if side == "before" else changed[0])
                element = (at - len(was)) // size if side == "before" else (image.nbytes + at) // size
                out.guards.append(
                    {"buffer": buffer.name, "side": side, "element": element, "bytes": int(changed.size)}
                )


def _compare_inputs(
    out: DrawResult, plan: LaunchPlan, images: Mapping[str, Image], inputs: Mapping[str, Bytes]
) -> None:
    if out.mutated:
        return
    for buffer in plan.buffers:
        if buffer.role != "input":
            continue
        if np.array_equal(images[buffer.name].payload, inputs[buffer.name]):
            continue
        changed = np.flatnonzero(images[buffer.name].payload != inputs[buffer.name])
        if changed.size:
            size = DTYPES[buffer.dtype].itemsize
            elements = np.unique(changed // size)
            out.mutated.append(
                {"buffer": buffer.name, "count": int(elements.size), "element": int(elements[0])}
            )


def _elements(payload: Bytes, itemsize: int) -> npt.NDArray[Any]:
    words = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    if itemsize in words:
        return payload.view(words[itemsize])
    return payload.view(np.uint64).reshape(-1, itemsize // 8)


def _unequal(a: Bytes, b: Bytes, itemsize: int) -> npt.NDArray[np.bool_]:
    unequal = _elements(a, itemsize) != _elements(b, itemsize)
    return np.asarray(unequal.any(axis=1) if unequal.ndim > 1 else unequal)


def _compare_results(
    out: DrawResult, plan: LaunchPlan, runs: Sequence[Mapping[str, Image]], seed: int, pair: int = 0
) -> None:
    """Compare runs with the first, whose poison and the second's are those of a pair of complementary runs."""
    for name in dict.fromkeys(plan.results):
        buffer = plan.buffer(name)
        size = DTYPES[buffer.dtype].itemsize
        first = runs[0][name].payload
        never = np.zeros(len(first) // size, np.bool_)
        is_poisoned = buffer.role in _POISONED and not buffer.is_zeroed and len(runs) > 1 and len(first)
        # Equal bits cannot be those of the poison and of its complement.
        if is_poisoned and not np.array_equal(first, runs[1][name].payload):
            poison = _poison(plan, buffer, seed, pair, runs[0][name])
            second = runs[1][name].payload
            never = ~_unequal(first, poison, size) & ~_unequal(second, np.invert(poison), size)
            if never.any():
                where = np.flatnonzero(never)
                out.unwritten[name] = {
                    "count": int(where.size),
                    "first": int(where[0]),
                    "map": error_map(buffer.shape, [where], shows="unwritten"),
                }
        for number, images in enumerate(runs[1:], 1):
            if np.array_equal(first, images[name].payload):
                continue
            unequal = _unequal(first, images[name].payload, size) & ~never
            if unequal.any():
                out.differs[name] = {
                    "count": int(unequal.sum()),
                    "first": int(np.argmax(unequal)),
                    "run": number,
                }
                out.others[name] = images[name].payload.copy()
                break


def _poison(plan: LaunchPlan, buffer: Buffer, seed: int, pair: int, image: Image) -> Bytes:
    data = _pattern([seed, plan.buffers.index(buffer), pair], len(image.data))
    return data[image.offset : image.offset + image.nbytes]


def _tell_poison_from_race(
    out: DrawResult,
    device: Device,
    module: Module,
    plan: LaunchPlan,
    inputs: Mapping[str, Bytes],
    seed: int,
    options: ExecutionOptions,
    shifts: Mapping[str, int],
) -> None:
    """Run as often again over equal poison and once over its complement, to see whether the poison makes the difference.

    Float atomics differ in the last bits whatever the poison: a difference counts where it is a thousand times theirs.
    """
    repeats = max(3, 1 + max(hit["run"] for hit in out.differs.values()))
    kinds = [0] * repeats + [1]
    runs = [_images(device, plan, inputs, seed, kind, shifts) for kind in kinds]
    if any(e.fault for e in device.execute_many(module, plan, runs, options)):
        return
    for name in dict.fromkeys(plan.results):
        dtype = DTYPES[plan.buffer(name).dtype].numpy
        first, *same, other = (images[name].payload.view(dtype) for images in runs)
        noise = max(_distance(first, again) for again in same)
        change = _distance(first, other)
        if change > 1000.0 * noise:
            out.depends_on_poison = True


def _distance(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Return 0 for equal bits, else the greatest difference; infinity where that is no number."""
    if a.tobytes() == b.tobytes():
        return 0.0
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(wide) - b.astype(wide))
    # The same NaN on both sides is no difference.
    same = ~_unequal(a.view(np.uint8).reshape(-1), b.view(np.uint8).reshape(-1), a.dtype.itemsize)
    gap = np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))
    return float(gap.max(initial=0.0)) or float(np.finfo(np.float64).tiny)
