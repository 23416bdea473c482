// The prelude has all of it.
#pragma once

#include "cpu_device/integers.h"
