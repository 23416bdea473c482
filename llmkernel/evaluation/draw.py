"""One executed draw, as the checks see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llmkernel.devices.base import Bytes
from llmkernel.devices.plan import LaunchPlan
from llmkernel.evaluation.expected import Expected, Target
from llmkernel.evaluation.worker.harness import DrawResult
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.workloads import Workload


@dataclass(frozen=True)
class Finding:
    """What a check found wrong.

    Attributes
    ----------
    outcome : str
        One of `llmkernel.evaluation.report.OUTCOMES`.
    summary : str
        One sentence for a person and for a provider.
    evidence : dict
        JSON-able.
    """

    outcome: str
    summary: str
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass
class Slot:
    """One target with the buffer that the candidate produced for it.

    Attributes
    ----------
    name : str
        The header's name.
    buffer : str
        Plan buffer that holds it at the end.
    dtype : str
    shape : tuple of int
        As the header declares them for this draw.
    target : Target
    got : numpy.ndarray or None
        None before the run and after a fault.
    """

    name: str
    buffer: str
    dtype: str
    shape: tuple[int, ...]
    target: Target
    got: HostArray | None = None


@dataclass
class Draw:
    """Everything about one draw."""

    workload: Workload
    plan: LaunchPlan
    expected: Expected
    slots: list[Slot]
    source: str
    result: DrawResult | None = None
    orders: dict[str, DrawResult] = field(default_factory=dict)
    misalign: dict[str, int] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    payloads: dict[str, Bytes] = field(default_factory=dict)
    failed: bool = False

    def fill(self, result: DrawResult) -> None:
        """Attach what the worker returned, as arrays."""
        self.result = result
        if result.fault is not None:
            return
        payloads = dict(zip(self.plan.results, result.results, strict=True)) | result.finals
        for slot in self.slots:
            data = payloads[slot.buffer]
            slot.got = np.frombuffer(data.tobytes(), DTYPES[slot.dtype].numpy).reshape(slot.shape)

    def release(self) -> None:
        """Let go of everything but the figures."""
        self.expected.inputs = []
        self.expected.targets = []
        self.slots = []
        self.orders = dict.fromkeys(self.orders, DrawResult())
        if self.result is not None:
            self.result.results = []

    def where(self) -> dict[str, Any]:
        """Return the workload as evidence."""
        return {
            "workload": self.workload.label(),
            "sizes": dict(self.workload.sizes),
            "family": self.workload.family,
        }


def examples(slot: Slot, flat: Any, count: int = 4) -> list[dict[str, Any]]:
    """Return the first few deviating elements: index, got, expected."""
    assert slot.got is not None
    out = []
    for i in list(flat)[:count]:
        index = [int(k) for k in np.unravel_index(int(i), slot.shape)] if slot.shape else []
        out.append(
            {
                "index": index,
                "got": _number(slot.got.reshape(-1)[int(i)]),
                "expected": _number(slot.target.oracle.reshape(-1)[int(i)]),
            }
        )
    return out


def _number(value: Any) -> Any:
    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, bool | int):
        return item
    if isinstance(item, complex):
        return f"{item:.9g}"
    return float(f"{float(item):.9g}")
