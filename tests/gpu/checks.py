"""What the GPU checks share: the list of them, and how close is close enough."""

from __future__ import annotations

import numpy as np

from llmkernel.candidate.candidate import parse_candidate
from tests.gpu.running import domain_for

CHECKS = []
rng = np.random.default_rng(0)


def check(function):
    CHECKS.append(function)
    return function


def close(got, expected, tolerance=1e-5):
    scale = float(np.abs(expected).max()) or 1.0
    error = float(np.abs(np.asarray(got, np.float64) - np.asarray(expected, np.float64)).max()) / scale
    assert error <= tolerance, f"error {error:.3g} of the largest value"
    return error


def torch_caller(device, source, dtypes, **options):
    return device.caller(parse_candidate(source), domain_for(source, "torch", dtypes, on_gpu=True, **options))
