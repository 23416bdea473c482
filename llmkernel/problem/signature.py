"""Names, dtypes and symbolic shapes of the inputs and outputs of a problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from llmkernel.candidate.expressions import Expression


@dataclass(frozen=True)
class ArraySpec:
    """One array of a signature.

    Attributes
    ----------
    name : str
        Parameter name.
    dtype : str
        NumPy name (`llmkernel.problem.dtypes.DTYPES`) or a type variable such as ``T``.
    dims : tuple of Expression
        One expression an axis, in array order; empty for a 0-d array.
    is_inout : bool
        The caller's array is changed in place.
    is_strided : bool
        The kernel takes this input's strides: views are handed over as they are.
    is_zeroed : bool
        Filled with zeros before every call (``= 0``).
    """

    name: str
    dtype: str
    dims: tuple[Expression, ...]
    is_inout: bool = False
    is_strided: bool = False
    is_zeroed: bool = False

    def __str__(self) -> str:
        text = f"{'inout ' if self.is_inout else ''}{self.name}: {'strided ' if self.is_strided else ''}{self.dtype}"
        if self.dims:
            text += "[" + ", ".join(str(d) for d in self.dims) + "]"
        return text + (" = 0" if self.is_zeroed else "")


@dataclass(frozen=True)
class ScalarSpec:
    """One scalar input; an integer one may also stand in dimensions and launch expressions."""

    name: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}"


@dataclass(frozen=True)
class Signature:
    """A callable's name, inputs, outputs and type variables.

    Attributes
    ----------
    name : str
        Name of the generated callable.
    inputs : tuple of ArraySpec or ScalarSpec
        In call order.
    outputs : tuple of ArraySpec
        In return order; empty when only `inout` arrays carry the result.
    type_variables : tuple of (str, tuple of str)
        Each type variable with the dtypes it ranges over.
    """

    name: str
    inputs: tuple[ArraySpec | ScalarSpec, ...]
    outputs: tuple[ArraySpec, ...]
    type_variables: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())

    def arrays(self) -> Iterator[ArraySpec]:
        """Yield input arrays, then outputs."""
        for spec in (*self.inputs, *self.outputs):
            if isinstance(spec, ArraySpec):
                yield spec

    def __str__(self) -> str:
        # An input without brackets is a scalar, so a 0-d array among the inputs keeps empty ones.
        inputs = (f"{s}[]" if isinstance(s, ArraySpec) and not s.dims else str(s) for s in self.inputs)
        text = f"{self.name}({', '.join(inputs)})"
        if self.outputs:
            outs = ", ".join(str(s) for s in self.outputs)
            text += f" -> {outs}" if len(self.outputs) == 1 else f" -> ({outs})"
        if self.type_variables:
            text += "    where " + ", ".join(f"{n} in {{{', '.join(ts)}}}" for n, ts in self.type_variables)
        return text
