"""Runs library entries on a device, the way the evaluation worker does: inputs in, outputs poisoned.

The cpu device by default; ``LLMKERNEL_TEST_DEVICE=cuda`` runs the same tests on a GPU.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.candidate import Candidate, parse_candidate
from llmkernel.devices.base import ExecutionOptions, Image, Module, available_devices
from llmkernel.library.entry import Entry
from llmkernel.library.header_text import spread_axes
from llmkernel.problem.dtypes import DTYPES, dtype_name

KIND = available_devices()[os.environ.get("LLMKERNEL_TEST_DEVICE", "cpu")]
UNAVAILABLE = KIND.unavailable_reason()
DEVICE = KIND()
GUARD = 4096


@cache
def candidate_of(source: str) -> Candidate:
    return parse_candidate(source)


@cache
def module_of(source: str, kernels: tuple[str, ...]) -> Module:
    return DEVICE.compile(source, kernels)


def flat_source(entry: Entry) -> str:
    """The entry at the smallest rank: a leading batch dimension is left out."""
    return spread_axes(entry.source, "B", 0) if entry.leading == "B" else entry.source


def run(source: str, *inputs: Any, misalign: int = 0) -> np.ndarray:
    """Run `source` on host arrays and scalars; `misalign` shifts every input by that many elements."""
    candidate = candidate_of(source)
    described: list[CallArgument] = []
    for value in inputs:
        if isinstance(value, np.ndarray):
            described.append(
                ArrayArgument(dtype_name(value.dtype), value.shape, address=misalign * value.dtype.itemsize)
            )
        else:
            described.append(ScalarValue(value))
    plan = candidate.plan(described, DEVICE.limits())
    images = {}
    arrays = iter(v for v in inputs if isinstance(v, np.ndarray))
    for buffer in plan.buffers:
        if buffer.role == "input":
            payload = np.ascontiguousarray(next(arrays)).reshape(-1).view(np.uint8)
            shift = misalign * DTYPES[buffer.dtype].itemsize
        else:
            size = int(np.prod(buffer.shape, dtype=np.int64)) * DTYPES[buffer.dtype].itemsize
            payload, shift = np.full(size, 0 if buffer.is_zeroed else 0xA5, np.uint8), 0
        data = np.full(GUARD + payload.size, 0x5A, np.uint8)
        data[GUARD:] = payload
        images[buffer.name] = Image(data, GUARD, payload.size, shift)
    before = {b.name: images[b.name].payload.copy() for b in plan.buffers if b.role == "input"}
    if plan.launches:
        execution = DEVICE.execute(
            module_of(source, plan.kernels()), plan, images, ExecutionOptions(timeout_seconds=60)
        )
        assert execution.fault is None, (execution.fault, inputs)
    for name, payload in before.items():
        assert np.array_equal(images[name].payload, payload), f"{name} was changed"
    for image in images.values():
        assert (image.data[:GUARD] == 0x5A).all(), "the guard before a buffer was written"
    result = plan.buffer(plan.results[0])
    return images[result.name].payload.view(DTYPES[result.dtype].numpy).reshape(result.shape)


def expected(entry: Entry, *inputs: Any) -> np.ndarray:
    """The entry's NumPy reference in float64, on the already rounded inputs."""
    wide = [
        v.astype(np.float64) if isinstance(v, np.ndarray) and DTYPES[dtype_name(v.dtype)].kind == "f" else v
        for v in inputs
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of nothing
        return np.asarray(entry.reference(*wide))


def error(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference relative to the largest magnitude of its row; infinite where NaN or infinity differ."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    assert a.shape == b.shape, (a.shape, b.shape)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    scale = np.abs(np.where(finite, b, 0)).max(axis=-1, keepdims=True) if b.ndim else np.abs(b)
    difference = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0))
    return float((difference / np.maximum(scale, 1e-30)).max())
