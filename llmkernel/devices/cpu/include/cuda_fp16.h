// half and half2.
#pragma once

#include "cpu_device/narrow_conversions.h"

#define NARROW __half
#define NARROW2 __half2
#define NARROW_RAW __half_raw
#define NARROW_FORMAT cpu_device::HalfFormat
#include "cpu_device/narrow_type.inc"
#undef NARROW
#undef NARROW2
#undef NARROW_RAW
#undef NARROW_FORMAT

using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

CPU_DEVICE_INLINE __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }
CPU_DEVICE_INLINE __half __short_as_half(short bits) { return __half(__half_raw{(unsigned short)bits}); }
CPU_DEVICE_INLINE unsigned short __half_as_ushort(__half a) { return a.__x; }
CPU_DEVICE_INLINE short __half_as_short(__half a) { return (short)a.__x; }

CPU_DEVICE_INLINE float __half2float(__half a) { return (float)a; }
CPU_DEVICE_INLINE __half __float2half(float x) { return __half(x); }
CPU_DEVICE_INLINE __half __float2half_rn(float x) { return __half(x); }
CPU_DEVICE_INLINE __half __float2half_rz(float x) {
    return __ushort_as_half(cpu_device::narrow_to_zero<cpu_device::HalfFormat>(x));
}
CPU_DEVICE_INLINE __half __float2half_rd(float x) {
    return __ushort_as_half(cpu_device::narrow_down<cpu_device::HalfFormat>(x));
}
CPU_DEVICE_INLINE __half __float2half_ru(float x) {
    return __ushort_as_half(cpu_device::narrow_up<cpu_device::HalfFormat>(x));
}
CPU_DEVICE_INLINE __half __double2half(double x) { return __half(x); }

#define CPU_DEVICE_HALF_INTEGER(type, name)                                                    \
    CPU_DEVICE_INLINE __half __##name##2half_rn(type x) { return __half(x); }                  \
    CPU_DEVICE_INLINE type __half2##name##_rn(__half a) { return cpu_device::saturating<type>(rintf((float)a)); }  \
    CPU_DEVICE_INLINE type __half2##name##_rz(__half a) { return cpu_device::saturating<type>(truncf((float)a)); } \
    CPU_DEVICE_INLINE type __half2##name##_rd(__half a) { return cpu_device::saturating<type>(floorf((float)a)); } \
    CPU_DEVICE_INLINE type __half2##name##_ru(__half a) { return cpu_device::saturating<type>(ceilf((float)a)); }
CPU_DEVICE_HALF_INTEGER(short, short)
CPU_DEVICE_HALF_INTEGER(unsigned short, ushort)
CPU_DEVICE_HALF_INTEGER(int, int)
CPU_DEVICE_HALF_INTEGER(unsigned, uint)
CPU_DEVICE_HALF_INTEGER(long long, ll)
CPU_DEVICE_HALF_INTEGER(unsigned long long, ull)

CPU_DEVICE_INLINE __half2 make_half2(__half x, __half y) { return __half2(x, y); }
CPU_DEVICE_INLINE __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
CPU_DEVICE_INLINE __half2 __half2half2(__half a) { return __half2(a, a); }
CPU_DEVICE_INLINE __half2 __float2half2_rn(float x) { return __half2(__half(x), __half(x)); }
CPU_DEVICE_INLINE __half2 __floats2half2_rn(float x, float y) { return __half2(__half(x), __half(y)); }
CPU_DEVICE_INLINE __half2 __float22half2_rn(float2 v) { return __half2(__half(v.x), __half(v.y)); }
CPU_DEVICE_INLINE float2 __half22float2(__half2 a) { return make_float2((float)a.x, (float)a.y); }
CPU_DEVICE_INLINE __half __low2half(__half2 a) { return a.x; }
CPU_DEVICE_INLINE __half __high2half(__half2 a) { return a.y; }
CPU_DEVICE_INLINE __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
CPU_DEVICE_INLINE __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
CPU_DEVICE_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
CPU_DEVICE_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }

#define CUDART_INF_FP16 __ushort_as_half(0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half(0x7FFFU)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7BFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001U)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000U)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000U)
#define CUDART_ONE_FP16 __ushort_as_half(0x3C00U)
