// The prelude has all of it.
#pragma once

#include "cpu_device/constants.h"
#include "cpu_device/math_functions.h"
