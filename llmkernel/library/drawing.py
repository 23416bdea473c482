"""Small inputs on which an entry and a user's reference are compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmkernel.library.entry import Array, Entry
from llmkernel.library.fitting import Fit
from llmkernel.library.header_text import SignatureLine
from llmkernel.library.probe import MAX_EXAMPLE_ELEMENTS, Probe, draw_array
from llmkernel.problem.dtypes import DTYPES, dtype_name

_SIZES = ((5, 7, 6, 3, 4), (2, 19, 3, 5, 2), (9, 4, 8, 2, 3))
# (scale, shift): small values show an eps, large ones a saturation, shifted ones a centring.
_FAMILIES = ((1.0, 0.0), (4.0, -1.0), (3e-3, 0.0), (1.0, 50.0))
_SPECIAL = ((np.nan, 0.3), (np.inf, 0.6), (-np.inf, 0.9))


@dataclass(frozen=True)
class Draw:
    """Inputs of our own choice, with what the user's reference gives for them.

    Attributes
    ----------
    inputs : tuple
        In the order of the entry's inputs; None for a missing scalar.
    expected : numpy.ndarray
    eps : float
        Of the coarser of working and result dtype; 0 for integers.
    is_special : bool
        Holds NaN and infinities.
    """

    inputs: tuple[Any, ...]
    expected: Array
    eps: float
    is_special: bool

    @property
    def tolerance(self) -> float:
        """Largest relative difference that rounding explains."""
        return max(1e-5, 30 * self.eps) if self.eps else 0.0


def draws(entry: Entry, fit: Fit, probe: Probe) -> Iterator[Draw]:
    """Yield inputs with the user's results, in the working dtype and in float64; small sizes first."""
    names = _dimension_names(fit.line)
    shapes = [dict(zip(names, sizes, strict=False)) for sizes in _SIZES]
    is_float = fit.dtype == "" or DTYPES[fit.dtype].kind == "f"
    families = [(family, False) for family in _FAMILIES] + ([((1.0, 0.0), True)] if is_float else [])
    dtypes = dict.fromkeys((fit.dtype, "float64" if is_float and fit.dtype else fit.dtype))
    made = False
    for sizes in (*shapes, None):
        if sizes is None:
            own = None if made else _example_sizes(fit, probe)
            if own is None:
                return
            sizes = own
        for (family, is_special), dtype in itertools.product(families, dtypes):
            draw = _draw(entry, fit, probe, sizes, family, dtype, is_special=is_special)
            if draw is not None:
                made = True
                yield draw


def _draw(
    entry: Entry,
    fit: Fit,
    probe: Probe,
    sizes: dict[str, int],
    family: tuple[float, float],
    dtype: str,
    *,
    is_special: bool,
) -> Draw | None:
    rng = np.random.default_rng([len(str(sizes)), *sizes.values(), int(abs(family[1])), int(is_special)])
    inputs: list[Any] = []
    for term in fit.line.inputs:
        if term.dims is None:
            scalar = entry.scalars.get(term.name)
            inputs.append(None if term.name in fit.missing or scalar is None else scalar.draw(rng))
            continue
        shape = tuple(n for d in term.dims for n in _sizes_of(d, entry, fit, sizes))
        kind = dtype if term.dtype in fit.line.types else term.dtype
        if entry.integers is not None and DTYPES[kind].kind in "iu":
            array = entry.integers(rng, shape).astype(DTYPES[kind].numpy)
        else:
            array = draw_array(rng, kind, shape, *family)
        if is_special and array.size:
            for value, place in _SPECIAL:
                array.reshape(-1)[int(place * (array.size - 1))] = value
        inputs.append(array)
    given = [inputs[i] for i in fit.order]
    key = (
        fit.order,
        tuple(getattr(g, "shape", ("scalar", g)) for g in given),
        family,
        dtype,
        is_special,
        entry.integers,
    )
    results = probe.run(key, [g.copy() if isinstance(g, np.ndarray) else g for g in given])
    if results is None or len(results) != 1 or results[0].dtype.kind == "O":
        return None
    result = results[0]
    name = dtype_name(result.dtype)
    working = max(DTYPES[name].eps, DTYPES[dtype].eps if dtype else 0.0)
    return Draw(tuple(inputs), result, working, is_special)


def _sizes_of(dim: str, entry: Entry, fit: Fit, sizes: dict[str, int]) -> tuple[int, ...]:
    if dim == entry.leading and fit.axes != 1:
        # The axes that the leading dimension stands for: the product is what the entry's reference sees.
        return tuple(sizes[dim] + i for i in range(fit.axes))
    return (int(dim) if dim.isdigit() else sizes[dim],)


def _dimension_names(line: SignatureLine) -> list[str]:
    dims = (d for t in line.inputs for d in t.dims or ())
    return list(dict.fromkeys(d for d in dims if not d.isdigit()))


def _example_sizes(fit: Fit, probe: Probe) -> dict[str, int] | None:
    """Return the example's own sizes, where they are small enough to compute with."""
    if (
        fit.axes != 1
        or sum(int(np.prod(leaf.shape)) for leaf in probe.leaves if leaf.shape) > MAX_EXAMPLE_ELEMENTS
    ):
        return None
    sizes: dict[str, int] = {}
    for place, leaf in zip(fit.order, probe.leaves, strict=True):
        for dim, n in zip(fit.line.inputs[place].dims or (), leaf.shape or (), strict=True):
            if sizes.setdefault(dim, n) != n:
                return None
    return sizes
