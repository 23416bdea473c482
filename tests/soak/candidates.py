"""Candidates for `z = a * x + y`, by what must come of them."""

from __future__ import annotations

import numpy as np

HEADER = """//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
"""
LAUNCH = "//! axpy<<<ceil_div(N, 128), 128>>>(a, x, y, z, N)\n"
_OPEN = "__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {\n"
_INDEX = "    int i = blockIdx.x * 128 + threadIdx.x;\n"
_RIGHT = "    if (i < N) z[i] = a * x[i] + y[i];\n"


def _kernel(body: str, launch: str = LAUNCH, before: str = "") -> str:
    return HEADER + launch + before + _OPEN + _INDEX + body + "}\n"


HONEST = _kernel(_RIGHT)
WRONG = _kernel("    if (i < N) z[i] = a * x[i] - y[i];\n")
OUT_OF_BOUNDS = _kernel(_RIGHT + "    z[i + (1 << 20)] = 1.0f;\n")
WILD = _kernel("    *(float*)((char*)z + (1ll << 42)) = 1.0f;\n" + _RIGHT)
TRAPS = _kernel(_RIGHT + "    if (i == 3) __trap();\n")
HANGS = _kernel(_RIGHT + "    volatile int n = 1;\n    while (n) n = 1;\n")
DEADLOCK = _kernel(_RIGHT + "    if (threadIdx.x < 7) __syncthreads();\n    else __syncwarp(1u);\n")
STACK = _kernel(
    _RIGHT + "    if (i == 0) z[0] = deep(N);\n",
    before="__device__ __noinline__ float deep(int n) {\n"
    "    volatile float mine[4096]; mine[n & 4095] = n;\n"
    "    return n < -1000000000 ? 0.0f : deep(n - 1) + mine[n & 4095];\n}\n",
)
EATS_MEMORY = _kernel(
    "    char* p = 0;\n    for (int k = 0; k < 1 << 20; ++k) { p = (char*)malloc(1 << 26); p[k] = 1; }\n"
    + _RIGHT
)
HUGE_SCRATCH = (
    HEADER + "//! scratch part: float32[N * 1000000000]\n" + LAUNCH + _OPEN + _INDEX + _RIGHT + "}\n"
)
PRINTS = _kernel(
    _RIGHT
    + '    for (int k = 0; k < 64; ++k) printf("%d %d noise noise noise noise noise noise\\n", i, k);\n'
)
DOES_NOT_COMPILE = _kernel("    z[i] = undeclared;\n")
REJECTED = HEADER + LAUNCH + "#include <iostream>\n" + _OPEN + _INDEX + _RIGHT + "}\n"
NONSENSE = "I cannot help with that.\n\x00\ufffe"

WITH_FAULT: dict[str, tuple[str, frozenset[str]]] = {
    "wrong": (WRONG, frozenset({"wrong_value"})),
    "out of bounds": (OUT_OF_BOUNDS, frozenset({"out_of_bounds", "crashed"})),
    "wild write": (WILD, frozenset({"out_of_bounds", "crashed"})),
    "trap": (TRAPS, frozenset({"crashed"})),
    "hang": (HANGS, frozenset({"timed_out"})),
    "deadlock": (DEADLOCK, frozenset({"invalid_synchronization", "passed", "timed_out"})),
    "stack overflow": (STACK, frozenset({"crashed", "out_of_memory", "timed_out"})),
    "eats memory": (EATS_MEMORY, frozenset({"out_of_memory", "crashed"})),
    "huge scratch": (HUGE_SCRATCH, frozenset({"out_of_memory", "launch_failed"})),
    "does not compile": (DOES_NOT_COMPILE, frozenset({"not_compiled"})),
    "rejected": (REJECTED, frozenset({"rejected"})),
    "nonsense": (NONSENSE, frozenset({"rejected"})),
}


# A GPU has no page after each array, and gives each thread what it asks for.
ON_GPU: dict[str, frozenset[str]] = {
    "out of bounds": frozenset({"out_of_bounds", "crashed", "wrong_value", "passed"}),
    "deadlock": frozenset({"timed_out", "crashed"}),
    "stack overflow": frozenset({"passed", "launch_failed"}),
    "eats memory": frozenset({"timed_out", "out_of_bounds"}),
}


def axpy(a, x, y):
    return np.float32(a) * x + y if x.dtype == np.float32 else a * x + y


def unique(source: str, number: int) -> str:
    """Return `source` as a text that no cache has seen."""
    return f"{source}// {number}\n"
