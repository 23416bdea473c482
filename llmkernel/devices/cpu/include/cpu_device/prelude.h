// Included ahead of every candidate: CUDA C++'s built-in names, for a host compiler without a C++ library.
#pragma once

#include "abi.h"
#include "constants.h"
#include "integers.h"
#include "language.h"
#include "vector_types.h"
#include "math_functions.h"
#include "atomics.h"
#include "intrinsics.h"
#include "simd_intrinsics.h"
#include "synchronization.h"
#include "entry.h"

// Candidates use std::max, std::numeric_limits and cuda::std without including them.
#include "../algorithm"
#include "../limits"
#include "cuda_standard.h"

// Dynamic shared memory is an array of the runner's (devices/cpu/shared_memory.py).
#define CPU_DEVICE_DYNAMIC_SHARED __asm__("cpu_device_shared")

// The words are refused in the source's text; this refuses them also where macros put them together. Macros that are
// older, such as the one above, keep them.
#pragma GCC poison asm __asm __asm__
