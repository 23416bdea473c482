"""Medians, quantiles and bootstrap intervals of timing samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmkernel.evaluation.report import Measurement

RESAMPLES = 2000


def measurement(label: str, samples: Sequence[float], *, note: str = "") -> Measurement:
    """Summarise samples in milliseconds."""
    ms = np.asarray(samples, dtype=np.float64)
    low, median, high = np.percentile(ms, [20, 50, 80])
    return Measurement(label, float(median), float(low), float(high), len(ms), note=note)


def relative_error_of_median(samples: Sequence[float]) -> float:
    """Return the half width of the bootstrap 95 % interval of the median over the median."""
    low, high = _bootstrap(np.asarray(samples, dtype=np.float64))
    median = float(np.median(samples))
    return (high - low) / 2 / median if median else 0.0


def ratio_interval(pairs: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of paired ratios with its bootstrap 95 % interval: (median, low, high)."""
    logs = np.log(np.asarray(pairs, dtype=np.float64))
    low, high = _bootstrap(logs)
    return float(np.exp(np.median(logs))), float(np.exp(low)), float(np.exp(high))


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    picked = values[rng.integers(0, len(values), (RESAMPLES, len(values)))]
    low, high = np.percentile(np.median(picked, axis=1), [2.5, 97.5])
    return float(low), float(high)
