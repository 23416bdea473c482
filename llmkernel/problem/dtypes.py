"""The dtypes that a launch header may name, with their NumPy and C++ spellings."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from llmkernel.errors import BindingError


@dataclass(frozen=True)
class DType:
    """One element type.

    Attributes
    ----------
    name : str
        NumPy's name, the one a launch header uses.
    numpy : numpy.dtype
        The NumPy dtype (`ml_dtypes` supplies bfloat16).
    cxx : tuple of str
        C++ spellings that a kernel parameter may use, the canonical one first.
    kind : str
        ``f`` float, ``i`` signed, ``u`` unsigned, ``b`` bool, ``c`` complex.
    """

    name: str
    numpy: np.dtype[np.generic]
    cxx: tuple[str, ...]
    kind: str

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return int(self.numpy.itemsize)

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number; 0 for integers and bool."""
        if self.kind == "f":
            return float(ml_dtypes.finfo(self.numpy).eps)
        if self.kind == "c":
            return float(ml_dtypes.finfo(np.dtype(f"float{4 * self.itemsize}")).eps)
        return 0.0


def _dtype(name: str, kind: str, *cxx: str) -> DType:
    numpy = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    return DType(name, numpy, cxx, kind)


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _dtype("float16", "f", "__half", "half"),
        _dtype("bfloat16", "f", "__nv_bfloat16", "nv_bfloat16"),
        _dtype("float32", "f", "float"),
        _dtype("float64", "f", "double"),
        _dtype("int8", "i", "signed char", "int8_t", "char"),
        _dtype("uint8", "u", "unsigned char", "uint8_t"),
        _dtype("int16", "i", "short", "int16_t", "short int"),
        _dtype("uint16", "u", "unsigned short", "uint16_t", "unsigned short int"),
        _dtype("int32", "i", "int", "int32_t", "signed int", "signed"),
        _dtype("uint32", "u", "unsigned int", "unsigned", "uint32_t"),
        _dtype("int64", "i", "long long", "int64_t", "long long int", "long", "long int", "ptrdiff_t"),
        _dtype(
            "uint64",
            "u",
            "unsigned long long",
            "uint64_t",
            "unsigned long long int",
            "unsigned long",
            "size_t",
        ),
        _dtype("bool", "b", "bool"),
        _dtype("complex64", "c", "float2", "cuFloatComplex", "cuComplex"),
        _dtype("complex128", "c", "double2", "cuDoubleComplex"),
    )
}

_ALIASES = {"bool_": "bool", "half": "float16", "float": "float64", "int": "int64", "complex": "complex128"}


def dtype_name(value: object) -> str:
    """Return the header's name for a NumPy, CuPy or torch dtype.

    Parameters
    ----------
    value : object
        A NumPy or torch dtype, or anything whose text ends in a dtype name.

    Returns
    -------
    str
        A key of `DTYPES`.

    Raises
    ------
    llmkernel.errors.BindingError
        When a launch header has no name for it.

    Examples
    --------
    >>> import numpy as np
    >>> dtype_name(np.dtype("float32")), dtype_name("torch.bfloat16")
    ('float32', 'bfloat16')
    """
    if isinstance(value, np.dtype) and not value.isnative:
        raise BindingError(
            f"dtype {value.str!r} is not in this machine's byte order.",
            reason="dtype",
            rule="kernels read and write the bytes of the machine's own order",
            received=value.str,
            next_step='Convert the array: x.astype(x.dtype.newbyteorder("=")).',
        )
    text = value.name if isinstance(value, np.dtype) else str(value).rsplit(".", 1)[-1]
    text = _ALIASES.get(text, text)
    if text not in DTYPES:
        raise BindingError(
            f"dtype {text!r} has no name in a launch header.",
            reason="dtype",
            rule="dtypes are " + ", ".join(DTYPES),
            received=str(value),
            next_step="Convert the array to one of these dtypes.",
        )
    return text
