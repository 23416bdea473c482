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
