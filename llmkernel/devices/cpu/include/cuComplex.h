// Complex numbers as float2 and double2.
#pragma once

#include "cpu_device/math_functions.h"
#include "cpu_device/vector_types.h"

using cuFloatComplex = float2;
using cuComplex = float2;
using cuDoubleComplex = double2;

// One precision under the names that CUDA gives it: cuCaddf for float, cuCadd for double.
#define CPU_DEVICE_COMPLEX(complex, real, make, f)                                                     \
    CPU_DEVICE_INLINE real cuCreal##f(complex a) { return a.x; }                                       \
    CPU_DEVICE_INLINE real cuCimag##f(complex a) { return a.y; }                                       \
    CPU_DEVICE_INLINE complex cuConj##f(complex a) { return make(a.x, -a.y); }                         \
    CPU_DEVICE_INLINE complex cuCadd##f(complex a, complex b) { return make(a.x + b.x, a.y + b.y); }   \
    CPU_DEVICE_INLINE complex cuCsub##f(complex a, complex b) { return make(a.x - b.x, a.y - b.y); }   \
    CPU_DEVICE_INLINE complex cuCmul##f(complex a, complex b) {                                        \
        return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                     \
    }                                                                                                  \
    CPU_DEVICE_INLINE complex cuCdiv##f(complex a, complex b) {                                        \
        /* Scaled, so that the denominator neither overflows nor vanishes. */                          \
        const real scale = 1 / (fabs(b.x) + fabs(b.y));                                                \
        const real ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;             \
        const real inverse = 1 / (bx * bx + by * by);                                                  \
        return make((ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse);                     \
    }                                                                                                  \
    CPU_DEVICE_INLINE real cuCabs##f(complex a) { return hypot(a.x, a.y); }                            \
    CPU_DEVICE_INLINE complex cuCfma##f(complex a, complex b, complex c) {                             \
        return cuCadd##f(cuCmul##f(a, b), c);                                                          \
    }
CPU_DEVICE_COMPLEX(float2, float, make_float2, f)
CPU_DEVICE_COMPLEX(double2, double, make_double2, )
CPU_DEVICE_INLINE cuFloatComplex make_cuFloatComplex(float x, float y) { return make_float2(x, y); }
CPU_DEVICE_INLINE cuComplex make_cuComplex(float x, float y) { return make_float2(x, y); }
CPU_DEVICE_INLINE cuDoubleComplex make_cuDoubleComplex(double x, double y) { return make_double2(x, y); }
CPU_DEVICE_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return make_double2(a.x, a.y); }
CPU_DEVICE_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
    return make_float2((float)a.x, (float)a.y);
}
