"""A launch plan: what a launch header becomes once shapes, dtypes and scalars are known.

A plan is flat, concrete and JSON-able: no expression, branch or loop is left in it. Every device runs
the same plan; the launch header makes it (`llmkernel.candidate`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Role = Literal["input", "inout", "output", "scratch"]


@dataclass(frozen=True)
class Buffer:
    """One array that a plan needs.

    Attributes
    ----------
    name : str
        The header's name for it.
    dtype : str
        NumPy name.
    shape : tuple of int
        In array order; empty for 0-d.
    role : str
        ``input``, ``inout``, ``output`` or ``scratch``.
    is_zeroed : bool
        Filled with zeros before every call.
    strides : tuple of int or None
        In elements, for an input declared `strided`; None for C-contiguous.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    is_zeroed: bool = False
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PointerArgument:
    """The address of a buffer, moved by `offset` elements."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True)
class ScalarArgument:
    """A scalar passed by value, with the dtype that the kernel's own parameter has.

    Attributes
    ----------
    dtype : str
        NumPy name; decides the bytes that are passed.
    value : bool, int, float or complex
        Already checked to fit.
    """

    dtype: str
    value: bool | int | float | complex


@dataclass(frozen=True)
class TensorMapArgument:
    """A TMA descriptor of a buffer, encoded just before the launch.

    Attributes
    ----------
    buffer : str
    box : tuple of int
        Elements an axis, in array order.
    swizzle : int
        0, 32, 64 or 128 bytes.
    """

    buffer: str
    box: tuple[int, ...]
    swizzle: int = 0


Argument = PointerArgument | ScalarArgument | TensorMapArgument


@dataclass(frozen=True)
class KernelLaunch:
    """One kernel launch.

    Attributes
    ----------
    kernel : str
        C++ name expression, such as ``softmax_warp<float, 32>``, or a plain name.
    grid, block : tuple of int
        x, y, z; no zero (empty grids are left out of a plan).
    shared_bytes : int
        Dynamic shared memory.
    cluster : tuple of int or None
        Blocks a cluster, x, y, z.
    is_cooperative : bool
    arguments : tuple of Argument
        In parameter order.
    line : int
        1-based line of this launch in the `.cu` file.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cluster: tuple[int, int, int] | None
    is_cooperative: bool
    arguments: tuple[Argument, ...]
    line: int


@dataclass(frozen=True)
class LaunchPlan:
    """Buffers, launches in stream order, and which buffer each returned value is in.

    Attributes
    ----------
    buffers : tuple of Buffer
        Inputs in call order, then outputs, then scratch.
    launches : tuple of KernelLaunch
    results : tuple of str
        Buffer names in return order (`swap` may have bound an output to a scratch buffer).
    """

    buffers: tuple[Buffer, ...]
    launches: tuple[KernelLaunch, ...]
    results: tuple[str, ...]

    def buffer(self, name: str) -> Buffer:
        """Return the buffer called `name`; KeyError when there is none."""
        for b in self.buffers:
            if b.name == name:
                return b
        raise KeyError(name)

    def kernels(self) -> tuple[str, ...]:
        """Return the name expressions that are launched, in first-use order."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able data that `plan_from_dict` reads back exactly."""
        data = asdict(self)
        for launch, out in zip(self.launches, data["launches"], strict=True):
            for argument, item in zip(launch.arguments, out["arguments"], strict=True):
                item["type"] = type(argument).__name__
                if isinstance(argument, ScalarArgument):
                    item["value"] = _scalar_to_json(argument.value)
        return data


def _scalar_to_json(value: Any) -> Any:
    # JSON has no complex, NaN or infinity: float.hex() keeps every bit.
    if isinstance(value, bool | int):
        return value
    if isinstance(value, complex):
        return {"re": float(value.real).hex(), "im": float(value.imag).hex()}
    return {"hex": float(value).hex()}


def _scalar_from_json(value: Any) -> bool | int | float | complex:
    if isinstance(value, dict):
        if "re" in value:
            return complex(float.fromhex(value["re"]), float.fromhex(value["im"]))
        return float.fromhex(value["hex"])
    assert isinstance(value, bool | int)
    return value


def _argument(item: dict[str, Any]) -> Argument:
    kind = item["type"]
    if kind == "PointerArgument":
        return PointerArgument(item["buffer"], item["offset"])
    if kind == "ScalarArgument":
        return ScalarArgument(item["dtype"], _scalar_from_json(item["value"]))
    return TensorMapArgument(item["buffer"], tuple(item["box"]), item["swizzle"])


def _triple(values: list[int]) -> tuple[int, int, int]:
    x, y, z = values
    return (x, y, z)


def plan_from_dict(data: dict[str, Any]) -> LaunchPlan:
    """Rebuild a plan from `LaunchPlan.to_dict`, also after a trip through JSON."""
    return LaunchPlan(
        buffers=tuple(
            Buffer(
                b["name"],
                b["dtype"],
                tuple(b["shape"]),
                b["role"],
                b["is_zeroed"],
                None if b["strides"] is None else tuple(b["strides"]),
            )
            for b in data["buffers"]
        ),
        launches=tuple(
            KernelLaunch(
                x["kernel"],
                _triple(x["grid"]),
                _triple(x["block"]),
                x["shared_bytes"],
                None if x["cluster"] is None else _triple(x["cluster"]),
                x["is_cooperative"],
                tuple(_argument(a) for a in x["arguments"]),
                x["line"],
            )
            for x in data["launches"]
        ),
        results=tuple(data["results"]),
    )
