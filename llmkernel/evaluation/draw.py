"""One executed draw, as the checks see it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from llmkernel.devices.base import Bytes
from llmkernel.devices.plan import LaunchPlan
from llmkernel.evaluation.expected import Expected, Target
from llmkernel.evaluation.tolerance import Floats, comparable, condition_of, deviation
from llmkernel.evaluation.worker.harness import DrawResult
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.families import FAMILIES
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
    _conditions: dict[int, Floats | None] = field(default_factory=dict)

    def fill(self, result: DrawResult) -> None:
        """Attach what the worker returned, as arrays."""
        self.result = result
        if result.fault is not None:
            return
        payloads = dict(zip(self.plan.results, result.results, strict=True)) | result.finals
        for slot in self.slots:
            data = payloads[slot.buffer]
            slot.got = data.view(DTYPES[slot.dtype].numpy).reshape(slot.shape)

    def release(self) -> None:
        """Let go of everything but the figures."""
        self.expected.inputs = []
        self.expected.targets = []
        self.slots = []
        self.orders = dict.fromkeys(self.orders, DrawResult())
        self.payloads = {}
        self._conditions = {}
        if self.result is not None:
            self.result.results = []
            self.result.finals = {}
            self.result.others = {}

    def condition(self, number: int) -> Floats | None:
        """Return how much each row of target `number` moves when the inputs are rounded, (rows, 1); computed once.

        None where that says nothing: exact results, a user's tolerance, no float64 oracle, inputs that are exact.
        """
        if number not in self._conditions:
            self._conditions[number] = self._condition(number)
        return self._conditions[number]

    def _condition(self, number: int) -> Floats | None:
        slot = self.slots[number]
        target = slot.target
        family = FAMILIES.get(self.workload.family)
        is_exact = target.is_exact or (family is not None and family.is_exact)
        if is_exact or not target.has_oracle or target.allowed.policy != "derived":
            return None
        mask = comparable(target.at_dtype, target.oracle, target.at_dtype)
        changes = []
        for seed, factor in (
            (self.workload.seed, float(np.sqrt(target.allowed.reduction_length))),
            (None, 1.0),
        ):
            # Moved as far as the errors of a sum go, not multiplied afterwards: a variance of equal values is quadratic.
            moved = self.expected.perturbed(seed, factor)
            if moved is None or moved[number].shape != target.oracle.shape:
                return None
            changes.append(condition_of(target.oracle, moved[number], mask))
        return np.asarray(np.maximum(*changes))

    def agrees(self, number: int, other: HostArray) -> bool:
        """Whether `other` differs from slot `number`'s result by no more than rounding in another order may."""
        slot = self.slots[number]
        assert slot.got is not None
        if slot.target.is_exact:
            return bool(np.array_equal(other, slot.got))
        wide = slot.got.astype(np.complex128 if np.iscomplexobj(slot.got) else np.float64)
        mask = comparable(other, wide, None)
        allowed = replace(slot.target.allowed, relative=2.0 * slot.target.allowed.relative)
        if not deviation(other, wide, mask, allowed).bad_count:
            return True
        condition = self.condition(number)
        # Both runs may be off by what is allowed, in opposite directions.
        twice = None if condition is None else 2.0 * condition
        return not deviation(other, wide, mask, allowed, twice).bad_count

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
    # As many digits as tell two values of the dtype apart.
    digits = 17 if slot.dtype in ("float64", "complex128") else 9
    out = []
    for i in list(flat)[:count]:
        index = [int(k) for k in np.unravel_index(int(i), slot.shape)] if slot.shape else []
        out.append(
            {
                "index": index,
                "got": _number(slot.got.reshape(-1)[int(i)], digits),
                "expected": _number(slot.target.oracle.reshape(-1)[int(i)], digits),
            }
        )
    return out


def _number(value: Any, digits: int) -> Any:
    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, bool | int):
        return item
    if isinstance(item, complex):
        return f"{item:.{digits}g}"
    return float(f"{float(item):.{digits}g}")
