"""Runs a candidate on a device: arguments in, results out."""

from __future__ import annotations

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, ScalarValue
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.devices.base import ExecutionOptions, Image
from llmkernel.devices.cuda.launcher import buffer_bytes
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.signature import ArraySpec

GUARD = 4096


def call_arguments(arguments, misalign=0):
    return [
        ArrayArgument(dtype_name(a.dtype), a.shape, None, misalign)
        if isinstance(a, np.ndarray)
        else ScalarValue(a)
        for a in arguments
    ]


def prepare(device, source, arguments, misalign=0):
    """Return candidate, plan and compiled module."""
    candidate = parse_candidate(source)
    plan = candidate.plan(call_arguments(arguments, misalign), device.limits())
    return candidate, plan, device.compile(source, plan.kernels())


def images_for(plan, arguments, misalign=0):
    arrays = iter(a for a in arguments if isinstance(a, np.ndarray))
    images = {}
    for buffer in plan.buffers:
        nbytes = buffer_bytes(buffer)
        data = np.full(2 * GUARD + nbytes, 0xA5, np.uint8)
        image = Image(data, GUARD, nbytes, misalign if buffer.role == "input" else 0)
        if buffer.role in ("input", "inout"):
            image.payload[:] = np.ascontiguousarray(next(arrays)).reshape(-1).view(np.uint8)
        images[buffer.name] = image
    return images


def run(device, source, *arguments, misalign=0, options=None):
    """Return results as NumPy arrays, and the `Execution`; guard bands are checked."""
    _, plan, module = prepare(device, source, arguments, misalign)
    images = images_for(plan, arguments, misalign)
    execution = device.execute(module, plan, images, options or ExecutionOptions())
    for name, image in images.items():
        assert (image.data[:GUARD] == 0xA5).all(), f"front guard of {name}"
        assert (image.data[GUARD + image.nbytes :] == 0xA5).all(), f"back guard of {name}"
    names = [*plan.results, *(b.name for b in plan.buffers if b.role == "inout")]
    results = [
        images[n].payload.view(DTYPES[plan.buffer(n).dtype].numpy).reshape(plan.buffer(n).shape)
        for n in names
    ]
    return results, execution


def domain_for(source, kind, dtypes, *, on_gpu, returns_tuple=False):
    """Return the domain of a candidate whose arrays are all of one kind."""
    arguments = []
    for spec, dtype in zip(parse_candidate(source).signature.inputs, dtypes, strict=True):
        is_array = isinstance(spec, ArraySpec)
        rank = len(spec.dims) if is_array else 0
        arguments.append(
            VerifiedArgument(spec.name, kind if is_array else "scalar", dtype, rank, is_array and on_gpu)
        )
    return VerifiedDomain(tuple(arguments), kind, on_gpu, returns_tuple, "cuda")
