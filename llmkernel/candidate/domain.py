"""What an accepted kernel was verified for, and what it therefore takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["numpy", "cupy", "torch", "scalar"]


@dataclass(frozen=True)
class VerifiedArgument:
    """One argument, in call order.

    Attributes
    ----------
    name : str
    kind : str
        ``numpy``, ``cupy``, ``torch`` or ``scalar``: what the reference was called with.
    dtype : str
        NumPy name.
    rank : int
        0 for scalars and 0-d arrays.
    is_on_gpu : bool
        The example lived in GPU memory (CuPy, or torch on a CUDA device).
    """

    name: str
    kind: Kind
    dtype: str
    rank: int
    is_on_gpu: bool = False


@dataclass(frozen=True)
class VerifiedDomain:
    """Everything that a caller checks before it launches.

    Attributes
    ----------
    arguments : tuple of VerifiedArgument
        In call order; one combination of dtypes.
    result_kind : str
        ``numpy``, ``cupy`` or ``torch``: what is returned.
    is_result_on_gpu : bool
    returns_tuple : bool
        The reference returns a tuple (or list) rather than one array.
    device : str
        ``cuda`` or ``cpu``: where it was verified.
    """

    arguments: tuple[VerifiedArgument, ...]
    result_kind: Kind
    is_result_on_gpu: bool
    returns_tuple: bool
    device: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> VerifiedDomain:
        """Rebuild from `to_dict`."""
        return cls(**{**data, "arguments": tuple(VerifiedArgument(**a) for a in data["arguments"])})
