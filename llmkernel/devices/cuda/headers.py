"""The headers that NVRTC is handed in memory, and why others cannot be included.

NVRTC has neither a C library nor a C++ one. Each name in `EMPTY_HEADERS` becomes an empty file (the prelude,
`llmkernel_prelude.h`, already declares what kernels use of it), so that one candidate compiles under NVRTC
and nvcc. Nothing is written to disk: in-memory headers come before every ``-I`` directory.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources

PRELUDE = "llmkernel_prelude.h"

_EMPTY_HEADERS = """
assert.h ctype.h float.h inttypes.h limits.h math.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h time.h
algorithm cassert cfloat cinttypes climits cmath concepts cstddef cstdint cstdio cstdlib cstring ctime
initializer_list limits type_traits utility cuda_runtime_api.h device_launch_parameters.h device_functions.h
"""
EMPTY_HEADERS = tuple(_EMPTY_HEADERS.split())

# C++ headers of which libcu++ has a device version: what stands in namespace std then.
_BRIDGED_HEADERS = {
    "array": "array",
    "bit": "bit_cast popcount countl_zero countr_zero has_single_bit",
    "functional": "plus minus multiplies divides less greater equal_to bit_and bit_or bit_xor",
    "numeric": "gcd lcm",
    "tuple": "tuple make_tuple tie get",
}

# `CUtensorMap` as in cuda.h (whose host functions NVRTC refuses): 128 opaque bytes, passed by value.
_CUDA_H = """#pragma once
typedef struct CUtensorMap_st {
  alignas(64) unsigned long long opaque[16];
} CUtensorMap;
typedef unsigned long long CUdeviceptr;
"""

_REASONS = {
    "iostream sstream fstream ostream istream iomanip string exception stdexcept": (
        "it is host code: device code prints with printf and stops with __trap()"
    ),
    "vector map unordered_map set list deque queue memory random": (
        "it allocates or runs on the host: use arrays, pointers and cuda/std headers"
    ),
    "thread mutex atomic future chrono": "it is for host threads: use cuda/atomic or cuda/barrier",
    "complex iterator optional ratio span variant": (
        "NVRTC has no C++ library: include <cuda/std/{name}> and write cuda::std::"
    ),
}
_HOST_ONLY = {name: reason.format(name=name) for names, reason in _REASONS.items() for name in names.split()}

_PREFIXES = (
    (
        "thrust/",
        "Thrust launches kernels from the host: use cub/block/ or cub/warp/ headers inside the kernel",
    ),
    (
        "torch/",
        "PyTorch's C++ API is host code: the launch header names arrays, and the kernel takes pointers",
    ),
    (
        "ATen/",
        "PyTorch's C++ API is host code: the launch header names arrays, and the kernel takes pointers",
    ),
    ("c10/", "PyTorch's C++ API is host code: the launch header names arrays, and the kernel takes pointers"),
    ("cub/cub", "it holds host code: include one device header, such as <cub/block/block_reduce.cuh>"),
    (
        "cub/device/",
        "cub's device-wide algorithms are called from the host: use cub/block/ or cub/warp/ headers",
    ),
    ("cutlass/", "CUTLASS is not shipped: use mma.h or llmkernel.cuh"),
    ("cute/", "CUTLASS is not shipped: use mma.h or llmkernel.cuh"),
    ("curand", "cuRAND's device headers are not shipped: write a counter-based generator such as Philox"),
    ("cublas", "library calls run on the host: a candidate holds kernels only"),
    ("cudnn", "library calls run on the host: a candidate holds kernels only"),
)

_WHEELS = (
    (("cuda/", "cub/", "nv/", "cooperative_groups"), "nvidia-cuda-cccl"),
    (("mma.h", "crt/"), "nvidia-cuda-crt"),
    (("cuda_", "math_constants", "vector_", "cuComplex"), "nvidia-cuda-runtime"),
)


@functools.cache
def memory_headers() -> dict[str, str]:
    """Return the headers that NVRTC is handed in memory: name as included to text."""
    directory = resources.files("llmkernel.devices") / "include"
    headers = {PRELUDE: (directory / PRELUDE).read_text(encoding="utf-8"), "cuda.h": _CUDA_H}
    headers["llmkernel.cuh"] = (directory / "llmkernel.cuh").read_text(encoding="utf-8")
    headers.update(dict.fromkeys(EMPTY_HEADERS, "\n"))
    for name, words in _BRIDGED_HEADERS.items():
        using = " ".join(f"using ::cuda::std::{word};" for word in words.split())
        headers[name] = f"#pragma once\n#include <cuda/std/{name}>\nnamespace std {{ {using} }}\n"
    return headers


@functools.cache
def memory_headers_hash() -> str:
    """Return a short hash of all in-memory headers, for cache keys."""
    digest = hashlib.sha256()
    for name, text in sorted(memory_headers().items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]


def explain_include(name: str) -> str:
    """Say in one sentence why a header cannot be included in a candidate.

    Parameters
    ----------
    name : str
        As between the angle brackets.

    Examples
    --------
    >>> explain_include("cutlass/gemm.h")
    '<cutlass/gemm.h> cannot be used in a kernel: CUTLASS is not shipped: use mma.h or llmkernel.cuh.'
    """
    from llmkernel.devices.cuda.toolchain import include_directories

    for prefix, reason in _PREFIXES:
        if name.startswith(prefix):
            return f"<{name}> cannot be used in a kernel: {reason}."
    if name in _HOST_ONLY:
        return f"<{name}> cannot be used in a kernel: {_HOST_ONLY[name]}."
    if any((directory / name).is_file() for directory in include_directories()):
        return f"<{name}> is installed but does not compile under NVRTC."
    for prefixes, wheel in _WHEELS:
        if name.startswith(prefixes):
            return f"<{name}> is not installed here: `pip install {wheel}` brings it."
    return f"<{name}> does not exist here: include CUDA's device headers, cuda/std/… or cub/block/…."
