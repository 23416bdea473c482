// cuda::std is the device's standard library; here it is namespace std.
#pragma once

#include "standard_names.h"

namespace cuda {
namespace std = ::std;
}
