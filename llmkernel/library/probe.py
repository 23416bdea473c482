"""What a problem does on small inputs: the evidence on which a library entry is chosen."""

from __future__ import annotations

import contextlib
import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llmkernel.library.entry import Array
from llmkernel.problem.dtypes import DTYPES, dtype_name

MAX_EXAMPLE_ELEMENTS = 1 << 22
_NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)(?![\w.])")


@dataclass(frozen=True)
class Leaf:
    """One example input: `shape` is None for a scalar, whose `value` is then known."""

    dtype: str
    shape: tuple[int, ...] | None
    value: Any = None


@dataclass
class Probe:
    """A problem's reference, called on inputs of our own choice.

    Attributes
    ----------
    problem : llmkernel.problem.problem.Problem
    leaves : tuple of Leaf
        The example inputs in call order.
    """

    problem: Any
    leaves: tuple[Leaf, ...] = ()
    _results: dict[Any, list[Array] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.leaves = tuple(_leaf(v) for v in self.problem.inputs)

    @property
    def changes_inputs(self) -> bool:
        """Whether the reference works in place: no entry does."""
        contract = getattr(self.problem, "contract", None)
        return bool(contract is not None and contract.mutated)

    def run(self, key: Any, inputs: Sequence[Any]) -> list[Array] | None:
        """Return the reference's results, or None where it refuses `inputs`; `key` names the draw."""
        if key not in self._results:
            self._results[key] = self._run(list(inputs))
        return self._results[key]

    def _run(self, inputs: list[Any]) -> list[Array] | None:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                results = self.problem.evaluate_reference(inputs)
            except Exception:  # noqa: BLE001 - the user's own code on sizes that it may not be made for
                return None
        return [np.asarray(r) for r in results]

    def example_result(self) -> list[Array] | None:
        """Return what the reference gives for small inputs of the example's ranks and dtypes."""
        for size in (3, 4, 8, 16):
            rng = np.random.default_rng(size)
            inputs = [
                leaf.value if leaf.shape is None else draw_array(rng, leaf.dtype, (size,) * len(leaf.shape))
                for leaf in self.leaves
            ]
            results = self.run(("example", size), inputs)
            if results is not None:
                return results
        return None

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the reference holds: defaults, closures, named globals, literals."""
        found: dict[float, None] = {}
        for value in _held_values(self.problem.reference):
            if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
                found[value if isinstance(value, int | float) else value.item()] = None
        for text in _NUMBER.findall(getattr(self.problem.reference, "source", "") or ""):
            found[int(text) if text.isdigit() else float(text)] = None
        return tuple(v for v in found if abs(v) < 2**31)

    def describe(self) -> str:
        """Return the dtypes and shapes that were looked at, for a message."""
        return ", ".join(
            leaf.dtype if leaf.shape is None else f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"
            for leaf in self.leaves
        )


def _leaf(value: Any) -> Leaf:
    if isinstance(value, bool | int | float | complex | np.generic):
        plain = value.item() if isinstance(value, np.generic) else value
        return Leaf(dtype_name(np.asarray(value).dtype), None, plain)
    return Leaf(dtype_name(value.dtype), tuple(int(n) for n in value.shape))


def draw_array(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], scale: float = 1.0, shift: float = 0.0
) -> Array:
    """Draw an array: normal × `scale` + `shift` for floats, small numbers from 0 for the others."""
    kind = DTYPES[dtype].kind
    if kind in "fc":
        return np.asarray(rng.standard_normal(shape) * scale + shift).astype(DTYPES[dtype].numpy)
    return np.asarray(rng.integers(0, 2 if kind == "b" else 9, shape)).astype(DTYPES[dtype].numpy)


def _held_values(reference: Any) -> Iterator[Any]:
    yield from getattr(reference, "fixed", {}).values()
    function = inspect.unwrap(reference.function)
    yield from (getattr(function, "keywords", None) or {}).values()  # functools.partial
    function = getattr(function, "func", function)
    if hasattr(function, "forward"):  # a torch.nn.Module keeps its constants as attributes
        yield from (v for k, v in vars(function).items() if not k.startswith("_"))
        function = function.forward
    function = getattr(function, "__func__", function)
    yield from getattr(function, "__defaults__", None) or ()
    yield from (getattr(function, "__kwdefaults__", None) or {}).values()
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            yield cell.cell_contents
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from code.co_consts
        yield from (function.__globals__[n] for n in code.co_names if n in function.__globals__)
