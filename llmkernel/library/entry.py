"""One kernel that comes with the package: its source, and its problem in NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from llmkernel.library.header_text import SignatureLine, read_signature, spread_axes

Array = npt.NDArray[Any]
Rng = np.random.Generator

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Scalar:
    """A scalar input of an entry.

    Attributes
    ----------
    draw : callable
        ``draw(rng)`` returns a value to compare behaviour with.
    usual : tuple
        Values that references often hold as a constant; tried besides the numbers in the reference itself.
    """

    draw: Callable[[Rng], float]
    usual: tuple[float, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One library kernel.

    Attributes
    ----------
    name : str
        Unique in the library.
    title : str
        One line for a person.
    file : str
        The `.cu` file beside this module.
    reference : callable
        NumPy: takes the header's inputs in order (floats as float64) and returns the output.
    keywords : tuple of str
        Words of an intent that speak for this entry.
    tags : tuple of str
    leading : str or None
        The dimension that may stand for any number of axes.
    scalars : dict
        By name; each may be an input of the problem or a constant of the reference.
    map : str or None
        C++ expression that takes the place of the one on the line that ends in ``// map``.
    header_words : dict
        Words of the launch header that take another form, such as the name of an operation.
    without : str or None
        A dimension of the `.cu` file that this entry does not have: it is one.
    integers : callable or None
        ``integers(rng, shape)`` draws an array of an integer dtype.
    """

    name: str
    title: str
    file: str
    reference: Callable[..., Array]
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    leading: str | None = None
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    map: str | None = None
    header_words: Mapping[str, str] = field(default_factory=dict)
    without: str | None = None
    integers: Callable[[Rng, tuple[int, ...]], Array] | None = None

    @property
    def source(self) -> str:
        """The `.cu` file, with this entry's own map and words filled in."""
        text = (FOLDER / self.file).read_text(encoding="utf-8")
        for word, other in self.header_words.items():
            whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
            lines = text.splitlines(keepends=True)
            text = "".join(whole.sub(other, x) if x.startswith("//!") else x for x in lines)
        if self.without is not None:
            text = spread_axes(text, self.without, 0)
        if self.map is not None:
            text = _fill_map(text, self.map)
        return text

    @property
    def signature(self) -> SignatureLine:
        """The signature line of `source`."""
        return read_signature(self.source)


def _fill_map(text: str, expression: str) -> str:
    lines = text.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.rstrip().endswith("// map"))
    lines[at] = f"    return {expression};  // map\n"
    return "".join(lines)


def normal(rng: Rng, shape: Sequence[int]) -> Array:
    """Draw a standard normal array of `shape`, float64."""
    return rng.standard_normal(tuple(shape))
