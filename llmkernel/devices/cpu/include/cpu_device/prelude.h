// Included ahead of every candidate: CUDA C++'s built-in names, for a host compiler without a C++ library.
#pragma once

#include "abi.h"
#include "constants.h"
#include "integers.h"
#include "language.h"
#include "vector_types.h"
#include "math_functions.h"
#include "intrinsics.h"
#include "synchronization.h"
#include "atomics.h"
#include "entry.h"
