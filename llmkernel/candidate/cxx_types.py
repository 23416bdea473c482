"""C++ spellings of element types, and which pointer or scalar parameter takes which dtype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llmkernel.problem.dtypes import DTYPES

_WORDS = frozenset(
    (
        "unsigned",
        "signed",
        "long",
        "short",
        "int",
        "char",
        "float",
        "double",
        "bool",
        "void",
        "auto",
        "size_t",
    )
)
_VECTORS = {
    "float32": ("float1", "float2", "float3", "float4"),
    "float64": ("double1", "double2", "double3", "double4"),
    "float16": ("half2", "__half2"),
    "bfloat16": ("__nv_bfloat162", "nv_bfloat162"),
    "int8": ("char1", "char2", "char3", "char4"),
    "uint8": ("uchar1", "uchar2", "uchar3", "uchar4", "__nv_fp8_e4m3", "__nv_fp8_e5m2"),
    "int16": ("short1", "short2", "short3", "short4"),
    "uint16": ("ushort1", "ushort2", "ushort3", "ushort4"),
    "int32": ("int1", "int2", "int3", "int4"),
    "uint32": ("uint1", "uint2", "uint3", "uint4"),
    "int64": ("longlong1", "longlong2", "longlong3", "longlong4", "long2", "long4"),
    "uint64": ("ulonglong1", "ulonglong2", "ulonglong3", "ulonglong4", "ulong2", "ulong4"),
    "complex64": ("float4",),
    "complex128": ("double4",),
}
_COMPLEX_PARTS = {"complex64": "float32", "complex128": "float64"}
_COMPLEX_NAMES = {
    "complex64": ("thrust::complex<float>", "cuda::std::complex<float>"),
    "complex128": ("thrust::complex<double>", "cuda::std::complex<double>"),
}
# Whole words that move bytes of any dtype.
_RAW = frozenset(
    (
        *("void", "std::byte", "cuda::std::byte", "int2", "int4", "longlong2"),
        *("uchar1", "uchar2", "uchar3", "uchar4"),
        *_VECTORS["uint16"],
        *_VECTORS["uint32"],
        *_VECTORS["uint64"],
    )
)
_RAW_DTYPES = frozenset(("int8", "uint8", "uint16", "uint32", "uint64"))
_TENSOR_MAPS = frozenset(("CUtensorMap", "CUtensorMap_st", "TensorMap"))


def join_tokens(texts: Iterable[str]) -> str:
    """Return C++ text with spaces only between words."""
    result = ""
    for text in texts:
        is_word = (
            bool(result)
            and (result[-1].isalnum() or result[-1] == "_")
            and (text[:1].isalnum() or text[:1] == "_")
        )
        result += (" " if is_word or result.endswith(",") else "") + text
    return result


def is_type_word(text: str) -> bool:
    """Whether `text` is a word of a built-in type, and so never a parameter's name."""
    return text in _WORDS


def canonical(base: str) -> str:
    """Return one spelling for types that differ only in words such as ``signed`` or their order."""
    words = base.removeprefix("::").split(" ")
    if len(words) == 1 and words[0] not in _WORDS:
        name = words[0]
        for prefix in ("std::", "cuda::std::"):
            if name.startswith(prefix) and (name.removeprefix(prefix).endswith("_t")):
                return name.removeprefix(prefix)
        return name
    if not all(w in _WORDS for w in words):
        return base
    is_unsigned = "unsigned" in words
    prefix = "unsigned " if is_unsigned else ""
    for kind in ("float", "double", "bool", "void", "auto", "size_t"):
        if kind in words:
            return " ".join(words)
    if "char" in words:
        return "signed char" if "signed" in words else prefix + "char"
    if "short" in words:
        return prefix + "short"
    longs = words.count("long")
    return prefix + ("long long" if longs == 2 else "long" if longs else "int")


_BY_CXX = {canonical(cxx): d.name for d in DTYPES.values() for cxx in d.cxx}
_BY_CXX.update({n: dtype for dtype, names in _COMPLEX_NAMES.items() for n in names})
_BY_CXX["intptr_t"] = "int64"
_BY_CXX["uintptr_t"] = "uint64"


def dtype_of(base: str) -> str | None:
    """Return the dtype of a C++ element type; None for anything else."""
    return _BY_CXX.get(canonical(base))


def is_dependent(base: str) -> bool:
    """Whether the type is computed by a template, so that only the compiler knows it."""
    return "<" in base or (
        "::" in base and dtype_of(base) is None and base not in _RAW and not is_tensor_map(base)
    )


def is_tensor_map(base: str) -> bool:
    """Whether the type is CUDA's tensor map, or `TensorMap` of `llmkernel.cuh` in any namespace."""
    return base.rsplit("::", 1)[-1] in _TENSOR_MAPS


def accepts_pointer(base: str, dtype: str) -> bool:
    """Whether a `base*` may look at an array of `dtype`: the same type, its vectors, or raw words."""
    base = canonical(base)
    found = _BY_CXX.get(base)
    if found == dtype or base in _RAW or base in _VECTORS.get(dtype, ()):
        return True
    part = _COMPLEX_PARTS.get(dtype)
    if part and (found == part or base in _VECTORS[part]):
        return True
    if found is None:
        return is_dependent(base) or (dtype == "uint8")
    if found in _RAW_DTYPES:
        return True
    same_size = DTYPES[found].itemsize == DTYPES[dtype].itemsize
    return same_size and DTYPES[found].kind in "iu" and DTYPES[dtype].kind in "iu"


def substitute(text: str, types: Mapping[str, str]) -> str:
    """Replace whole words of C++ text, such as template parameters by their arguments."""
    import re

    return re.sub(r"[A-Za-z_]\w*", lambda m: types.get(m.group(), m.group()), text)
