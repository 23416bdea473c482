// The prelude has what device code needs of it.
#pragma once

#include "cpu_device/prelude.h"
