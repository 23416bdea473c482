"""Trivial controls: a check that cannot fail is no check.

Zeros, a constant, a copy of an input and the result of another draw are judged as a candidate would be. If one of them
passes every draw, nobody can tell right from wrong here and the verdict is `inconclusive`. Each draw is looked at when it
was run and then let go of; a control that has failed once is not asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llmkernel.evaluation.draw import Draw
from llmkernel.evaluation.expected import Target
from llmkernel.evaluation.tolerance import comparable, deviation, special_mismatch
from llmkernel.problem.arrays import HostArray


@dataclass
class _Mean:
    """The mean of one result over all draws."""

    total: complex = 0.0
    count: int = 0
    true_count: int = 0
    size: int = 0

    def add(self, value: HostArray) -> None:
        self.size += value.size
        if value.dtype == np.bool_:
            self.true_count += int(np.count_nonzero(value))
            return
        finite = _finite(value)
        with np.errstate(all="ignore"):
            self.total += complex(finite.sum())
        self.count += finite.size

    def like(self, value: HostArray) -> HostArray:
        if value.dtype == np.bool_:
            return np.full_like(value, self.true_count * 2 > self.size)
        mean = self.total / self.count if self.count else 0.0
        with np.errstate(all="ignore"):
            return np.full(value.shape, mean if np.iscomplexobj(value) else mean.real).astype(value.dtype)


@dataclass(eq=False)
class _Partner:
    """A draw that waits to be compared with another one of its shapes."""

    family: str
    targets: list[Target]


class TrivialControls:
    """Looks at every draw in turn."""

    def __init__(self) -> None:
        self._count = 0
        self._zeros_pass = self._constant_passes = self._other_passes = True
        self._copies: dict[int, bool] | None = None
        self._names: list[str] = []
        self._means: dict[int, _Mean] = {}
        self._singles: list[tuple[int, Target]] = []
        self._partners: dict[tuple[tuple[int, ...], ...], list[_Partner]] = {}
        self._alone: list[_Partner] = []

    def see(self, draw: Draw) -> None:
        """Try every control that has not failed yet on one draw."""
        targets = draw.expected.targets
        if not any(t.at_dtype.size for t in targets):
            return
        self._count += 1
        if self._zeros_pass:
            self._zeros_pass = all(_accepts(t, np.zeros_like(t.at_dtype)) for t in targets)
        if self._constant_passes:
            self._try_constant(targets)
        if self._other_passes:
            self._try_other(draw.workload.family, targets)
        self._try_copies(draw)

    def passing(self) -> str | None:
        """Return a sentence about the first control that passed every draw, or None."""
        if not self._count:
            return "Every draw is empty: there is nothing to compare."
        if self._zeros_pass:
            return "Zeros would pass: the reference gives zeros for every draw."
        if self._constant_passes and all(
            _accepts(t, self._means[i].like(t.at_dtype)) for i, t in self._singles
        ):
            return "A constant would pass: the reference hardly depends on its inputs."
        if self._other_passes and self._count > 1 and not self._alone:
            return "The result of another draw would pass: the reference hardly depends on its inputs."
        # A copy that is right everywhere is the identity.
        copied = next((k for k, is_identity in (self._copies or {}).items() if not is_identity), None)
        if copied is not None:
            return (
                f"A copy of `{self._names[copied]}` would pass, although the reference is not the identity."
            )
        return None

    def _try_constant(self, targets: list[Target]) -> None:
        """Fill a result with its mean; a result of one element, at the end, with the mean over all draws."""
        for i, target in enumerate(targets):
            value = target.at_dtype
            self._means.setdefault(i, _Mean()).add(value)
            if value.size == 1:
                self._singles.append((i, target))
            elif not _accepts(target, _filled(value)):
                self._constant_passes = False
                self._singles = []
                return

    def _try_other(self, family: str, targets: list[Target]) -> None:
        """Judge the result of a draw of another family; the first draw is only there to be compared with."""
        mine = _Partner(family, targets)
        seen = self._partners.setdefault(tuple(t.at_dtype.shape for t in targets), [])
        other = next((p for p in seen if p.family != family), None)
        pairs = [(mine, other)] if other is not None and self._count > 1 else []
        pairs += [(p, mine) for p in seen if p in self._alone and p.family != family]
        for judged, source in pairs:
            if not all(_accepts(t, s.at_dtype) for t, s in zip(judged.targets, source.targets, strict=True)):
                self._other_passes = False
                self._partners, self._alone = {}, []
                return
        self._alone = [p for p in self._alone if all(p is not judged for judged, _ in pairs)]
        if other is None:
            seen.append(mine)
            if self._count > 1:
                self._alone.append(mine)

    def _try_copies(self, draw: Draw) -> None:
        inputs = draw.expected.inputs
        if self._copies is None:
            self._copies = dict.fromkeys(range(len(inputs)), True)
            self._names = [s.name for s in draw.expected.problem.signature.inputs]
        for k in list(self._copies):
            for target in draw.expected.targets:
                value = inputs[k]
                if not isinstance(value, np.ndarray) or not _accepts(target, value):
                    del self._copies[k]
                    break
                is_same = np.array_equal(value, target.at_dtype, equal_nan=not target.is_exact)
                self._copies[k] = self._copies[k] and bool(is_same)


def _accepts(target: Target, value: HostArray) -> bool:
    if value.shape != target.at_dtype.shape or value.dtype != target.at_dtype.dtype:
        return False
    if target.is_exact:
        return bool(np.array_equal(value, target.at_dtype))
    if special_mismatch(value, target.oracle, target.at_dtype).size:
        return False
    mask = comparable(value, target.oracle, target.at_dtype)
    return deviation(value, target.oracle, mask, target.allowed).bad_count == 0


def _finite(value: HostArray) -> HostArray:
    wide = value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)
    return np.asarray(wide[np.isfinite(wide)])


def _filled(value: HostArray) -> HostArray:
    """Return an array that holds the mean of `value` everywhere."""
    mean = _Mean()
    mean.add(value)
    return mean.like(value)
