"""Workloads: concrete sizes and values for a problem, chosen from its signature, with secret seeds."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.families import CROWDED, FAMILIES, float_array, integer_array
from llmkernel.problem.relations import (
    Range,
    in_order,
    offsets_array,
    offsets_axis,
    range_of,
    usages_of,
    with_marks,
)
from llmkernel.problem.scalars import Change, can_be_negated, scalar_value, with_scalars
from llmkernel.problem.signature import ArraySpec
from llmkernel.problem.usage import UNKNOWN

if TYPE_CHECKING:
    from llmkernel.problem.problem import HostInput, Problem

# Sizes off every usual tile: primes, tile ± 1.
OFF_TILE = (127, 129, 33, 1023)
LARGEST_DERIVED_ELEMENTS = 1 << 21
# Beyond 2^16, where 16-bit indices wrap and grids of one block a row along y end.
LONG_AXIS = 70001
_SECRET_ELEMENTS = 1 << 15
# Where some elements equal numbers that the reference compares them with; none of them is exact.
_MARKED_FAMILIES = frozenset(("three times normal", "decimals"))


@dataclass(frozen=True)
class Workload:
    """One draw.

    Attributes
    ----------
    sizes : dict
        Symbol to size.
    family : str
        A key of `FAMILIES`, or ``example`` for the user's own values.
    seed : int
        Secret: drawn anew for every evaluation.
    scalars : str
        What becomes of the example's scalars, see `scalar_value`. Where they change, some elements equal them.
    is_users_own : bool
        The user's own sizes.
    is_long : bool
        One axis is beyond 2^16. A header may find that too large for its launches: the draw is then left out and listed.
    layout : str
        ``contiguous``, ``misaligned`` (every array one element past a 256-byte boundary), ``strided`` (views, for
        inputs that a header declares `strided`) or ``shared`` (inputs of one dtype and shape are one array).
    """

    sizes: dict[str, int]
    family: str
    seed: int
    scalars: Change = "none"
    is_users_own: bool = False
    is_long: bool = False
    layout: str = "contiguous"

    def label(self) -> str:
        """Return ``M=127, N=129 · normal``."""
        sizes = ", ".join(f"{k}={v}" for k, v in self.sizes.items()) or "fixed sizes"
        return f"{sizes} · {self.family}" + self._suffix()

    def _suffix(self) -> str:
        words = [] if self.scalars == "none" else [f"{self.scalars} scalars"]
        words += [self.layout] if self.layout != "contiguous" else []
        return "".join(f" · {w}" for w in words)


def new_seed() -> int:
    """Return a seed that nobody can guess."""
    return secrets.randbits(48)


def draw_inputs(
    problem: Problem,
    sizes: dict[str, int],
    family: str,
    *,
    seed: int,
    scalars: Change = "none",
    reduction: int = 1,
    is_shared: bool = False,
) -> list[HostInput]:
    """Return host inputs of a problem for given sizes and family.

    Parameters
    ----------
    problem : Problem
    sizes : dict
        Every symbol of the signature.
    family : str
        A key of `FAMILIES`; ``example`` returns the user's own values.
    seed : int
    scalars : str
        As in `Workload`.
    reduction : int
        Length of the longest reduction: extremes stay so far from overflow that no order of adding them overflows.
    is_shared : bool
        Inputs of one dtype and shape are one array.

    Returns
    -------
    list
        Arrays in the signature's dtypes and the scalars, in order.
    """
    host = problem.host_inputs()
    if family == "example":
        return host
    rng = np.random.default_rng(seed)
    extents = {n for v in host if isinstance(v, np.ndarray) for n in v.shape}
    used = usages_of(problem)
    out: list[Any] = []
    limits: dict[int, Range] = {}
    divided: dict[int, str] = {}
    for i, (spec, example) in enumerate(zip(problem.signature.inputs, host, strict=True)):
        if not isinstance(spec, ArraySpec):
            is_size = _is_size(example, extents)
            out.append(scalar_value(rng, example, scalars, is_size=is_size, is_number=used[i].is_number))
            continue
        shape = tuple(d.evaluate(sizes) for d in spec.dims)
        axis = offsets_axis(problem, spec, example)
        if DTYPES[spec.dtype].kind in "fc":
            out.append(float_array(FAMILIES[family], rng, shape, spec.dtype, reduction=reduction))
        elif axis is not None:
            divided[i] = axis
            out.append(offsets_array(rng, shape, example.dtype, sizes[axis], family))
        else:
            limits[i] = within = range_of(problem, spec, example, sizes, used[i])
            bound = None if within.high is None else within.high + 1
            out.append(integer_array(rng, shape, example, bound, family, lowest=within.low))
    for group in groups_of_equals(problem, sizes) if is_shared else ():
        # An array that must be in order is one for all of them; offsets stay what they are.
        first = next((i for i in group if used[i].is_sorted), group[0])
        together = _within_all(out[first], [host[i] for i in group])
        if together is not None:
            together = in_order(rng, together, host[first], used[first])
        for i in group if together is not None and not divided.keys() & set(group) else ():
            out[i] = together
    if scalars != "none":
        values = [v for v in out if not isinstance(v, np.ndarray)]
        out = [
            with_scalars(rng, v, values, limits[i].high if i in limits and limits[i].is_index else None)
            if isinstance(v, np.ndarray) and i not in divided
            else v
            for i, v in enumerate(out)
        ]
    marked = family in _MARKED_FAMILIES
    for i, value in enumerate(out):
        if isinstance(value, np.ndarray) and i not in divided and used[i] is not UNKNOWN:
            value = with_marks(rng, value, used[i], limits.get(i, Range())) if marked else value
            out[i] = in_order(rng, value, host[i], used[i])
    return out


def _within_all(drawn: HostArray, examples: Sequence[HostArray]) -> HostArray | None:
    """Return integers that every one of the examples may be, or None where there are none: a divisor is never 0."""
    if drawn.dtype.kind not in "iu" or not all(e.size for e in examples):
        return drawn
    low, high = max(int(e.min()) for e in examples), min(int(e.max()) for e in examples)
    return np.clip(drawn, low, high) if low <= high else None


def _is_size(example: Any, extents: set[int]) -> bool:
    # k of a top-k, a window, an axis: an integer below an extent may stand for a size, and another value changes shapes.
    return isinstance(example, int | np.integer) and not isinstance(example, bool) and int(example) in extents


def probe_sizes(sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield two assignments of small, distinct sizes that tell symbols and expressions apart."""
    for primes in ((37, 41, 43, 47, 53, 59, 61, 67), (23, 17, 29, 13, 31, 11, 19, 7)):
        if len(sizes) <= len(primes):
            yield dict(zip(sizes, primes, strict=False))


def quick_workloads(problem: Problem) -> list[Workload]:
    """Return the user's own inputs, and one odd size."""
    first = Workload(dict(problem.sizes), "example", new_seed(), is_users_own=True)
    odd = _odd(problem, 0)
    return [first] + ([Workload(odd, "normal", new_seed())] if odd else [])


def full_workloads(problem: Problem) -> list[Workload]:
    """Return the draws of a full verification, the cheap and telling ones first."""
    own = dict(problem.sizes)
    odd, other = _odd(problem, 0), _odd(problem, 1)
    small = odd or own
    if element_count(problem, small) > LARGEST_DERIVED_ELEMENTS:
        small = own
    # Whole blocks and tiles: a bound that is off by one shows only here, and arrays end where pages do.
    whole = _multiples(small, 128 if len(small) < 3 else 64)
    elsewhere = {"halves": other or small}
    if element_count(problem, whole) <= LARGEST_DERIVED_ELEMENTS:
        elsewhere["decimals"] = whole
    draws = [Workload(own, "example", new_seed(), is_users_own=True)]
    has_integers = any(
        isinstance(s, ArraySpec) and DTYPES[s.dtype].kind in "iu" for s in problem.signature.inputs
    )
    draws += [
        Workload(elsewhere.get(f, small), f, new_seed()) for f in FAMILIES if has_integers or f != CROWDED
    ]
    draws += [Workload(own, "normal", new_seed(), is_users_own=True)]
    if element_count(problem, own) <= LARGEST_DERIVED_ELEMENTS:
        draws += [Workload(own, "shifted by 1e4", new_seed(), is_users_own=True)]
        draws += [Workload(own, CROWDED, new_seed(), is_users_own=True)] if has_integers else []
    if other:
        draws += [Workload(other, "normal", new_seed())]
    draws += [Workload(s, "normal", new_seed(), is_users_own=True) for s in problem.extra_sizes]
    draws += [Workload(s, "normal", new_seed()) for s in edge_sizes(problem)]
    draws.append(Workload(small, "normal", new_seed(), layout="misaligned"))
    # Wide loads are often guarded by the size alone: sizes that invite them, at addresses that forbid them.
    draws.append(Workload(_multiples(small, 16), "normal", new_seed(), layout="misaligned"))
    draws.append(Workload(small, "normal", new_seed(), layout="strided"))
    alike = dict.fromkeys(own, {1: 1023, 2: 67, 3: 37}.get(len(own), 11))
    if groups_of_equals(problem, alike):
        draws.append(Workload(alike, "normal", new_seed(), layout="shared"))
    if any(not isinstance(s, ArraySpec) for s in problem.signature.inputs):
        changes: list[Change] = ["other", "far"]
        changes += ["negated"] if any(can_be_negated(v) for v in problem.host_inputs()) else []
        draws += [Workload(small, "normal", new_seed(), scalars=change) for change in changes]
    draws += [Workload(s, "normal", new_seed()) for s in secret_sizes(problem)]
    # Of one sign: what is added up loses digits for certain, and not by chance.
    draws += [Workload(s, CROWDED, new_seed(), is_long=True) for s in long_sizes(problem)]
    return draws


def secret_sizes(problem: Problem) -> list[dict[str, int]]:
    """Return two choices of sizes that nobody knows beforehand: every other one could be recognised by a kernel."""
    if not problem.sizes:
        return []
    rng = np.random.default_rng(new_seed())
    largest = _SECRET_ELEMENTS ** (1.0 / len(problem.sizes))
    out = []
    for _ in range(2):
        drawn = np.exp(rng.uniform(np.log(2.0), np.log(max(3.0, largest)), len(problem.sizes)))
        out.append({s: int(n) for s, n in zip(problem.sizes, drawn, strict=True)})
    return [s for s in out if element_count(problem, s) <= LARGEST_DERIVED_ELEMENTS]


def at_own_sizes(problem: Problem, workload: Workload) -> Workload | None:
    """Return a workload at the user's own sizes, for a header that takes no others; None where it would be too large."""
    own = dict(problem.sizes)
    is_plain = workload.family == "normal" and workload.layout == "contiguous" and workload.scalars == "none"
    if workload.layout == "shared" and not groups_of_equals(problem, own):
        return None
    if workload.sizes == own or is_plain or element_count(problem, own) > LARGEST_DERIVED_ELEMENTS:
        return None
    return replace(workload, sizes=own, is_users_own=True)


def groups_of_equals(problem: Problem, sizes: dict[str, int]) -> list[list[int]]:
    """Return the numbers of the inputs that can be one array, ``f(x, x)``: of one dtype and shape, and only read."""
    groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for i, spec in enumerate(problem.signature.inputs):
        if isinstance(spec, ArraySpec) and spec.dims and not spec.is_inout:
            shape = tuple(d.evaluate(sizes) for d in spec.dims)
            groups.setdefault((spec.dtype, shape), []).append(i)
    return [g for g in groups.values() if len(g) > 1]


def long_sizes(problem: Problem) -> list[dict[str, int]]:
    """Return sizes with one axis beyond 2^16, each in turn, while the others are small."""
    if not problem.sizes:
        return []
    out = [{**dict.fromkeys(problem.sizes, 3), symbol: LONG_AXIS} for symbol in problem.sizes]
    return [s for s in out if element_count(problem, s) <= LARGEST_DERIVED_ELEMENTS]


def edge_sizes(problem: Problem) -> list[dict[str, int]]:
    """Return sizes 1 and 0 along each axis, skinny, wide, and tile ± 1."""
    base = _odd(problem, 0)
    if not base:
        return []
    out: list[dict[str, int]] = []
    for symbol in problem.sizes:
        out.append({**base, symbol: 1})
        out.append({**base, symbol: 0})
        out += [{**base, symbol: size} for size in (129, 1023, 4097)]
    out.append(dict.fromkeys(problem.sizes, 1))
    seen: set[tuple[tuple[str, int], ...]] = set()
    unique = []
    for s in out:
        key = tuple(s.items())
        if key not in seen and element_count(problem, s) <= LARGEST_DERIVED_ELEMENTS:
            seen.add(key)
            unique.append(s)
    return unique


def _multiples(sizes: dict[str, int], of: int) -> dict[str, int]:
    return {s: -(-n // of) * of for s, n in sizes.items()}


def _odd(problem: Problem, turn: int) -> dict[str, int]:
    """Return off-tile sizes, different for each symbol, small enough for the number of axes."""
    count = len(problem.sizes)
    if not count:
        return {}
    pools: Sequence[int] = {1: (1023, 4097), 2: (127, 129, 67), 3: (33, 37, 41)}.get(
        count, (7, 11, 13, 5, 9, 3, 17, 19)
    )
    symbols = list(problem.sizes)
    return {s: pools[(i + turn) % len(pools)] for i, s in enumerate(symbols)}


def element_count(problem: Problem, sizes: Mapping[str, int]) -> int:
    """Return how many elements the arrays of a problem have together at these sizes, as far as sizes tell."""
    total = 0
    for spec in problem.signature.arrays():
        count = 1
        for d in spec.dims:
            try:
                count *= max(0, d.evaluate(sizes))
            except Exception:  # noqa: BLE001 - an output size that depends on a scalar says nothing here
                count *= 1
        total += count
    return total
