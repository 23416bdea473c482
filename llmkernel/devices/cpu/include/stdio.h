// What device code may use of it is in the prelude.
#pragma once

#include "cpu_device/language.h"
