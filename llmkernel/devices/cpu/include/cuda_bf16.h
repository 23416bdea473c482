// __nv_bfloat16 and __nv_bfloat162.
#pragma once

#include "cpu_device/narrow_conversions.h"

#define NARROW __nv_bfloat16
#define NARROW2 __nv_bfloat162
#define NARROW_RAW __nv_bfloat16_raw
#define NARROW_FORMAT cpu_device::BFloat16Format
#include "cpu_device/narrow_type.inc"
#undef NARROW
#undef NARROW2
#undef NARROW_RAW
#undef NARROW_FORMAT

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

CPU_DEVICE_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
CPU_DEVICE_INLINE __nv_bfloat16 __short_as_bfloat16(short bits) { return __ushort_as_bfloat16((unsigned short)bits); }
CPU_DEVICE_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.__x; }
CPU_DEVICE_INLINE short __bfloat16_as_short(__nv_bfloat16 a) { return (short)a.__x; }

CPU_DEVICE_INLINE float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
CPU_DEVICE_INLINE __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
CPU_DEVICE_INLINE __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
CPU_DEVICE_INLINE __nv_bfloat16 __float2bfloat16_rz(float x) {
    return __ushort_as_bfloat16(cpu_device::narrow_to_zero<cpu_device::BFloat16Format>(x));
}
CPU_DEVICE_INLINE __nv_bfloat16 __float2bfloat16_rd(float x) {
    return __ushort_as_bfloat16(cpu_device::narrow_down<cpu_device::BFloat16Format>(x));
}
CPU_DEVICE_INLINE __nv_bfloat16 __float2bfloat16_ru(float x) {
    return __ushort_as_bfloat16(cpu_device::narrow_up<cpu_device::BFloat16Format>(x));
}
CPU_DEVICE_INLINE __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }

#define CPU_DEVICE_BFLOAT16_INTEGER(type, name)                                                     \
    CPU_DEVICE_INLINE __nv_bfloat16 __##name##2bfloat16_rn(type x) { return __nv_bfloat16(x); }     \
    CPU_DEVICE_INLINE type __bfloat162##name##_rn(__nv_bfloat16 a) {                                \
        return cpu_device::saturating<type>(rintf((float)a));                                       \
    }                                                                                               \
    CPU_DEVICE_INLINE type __bfloat162##name##_rz(__nv_bfloat16 a) {                                \
        return cpu_device::saturating<type>(truncf((float)a));                                      \
    }                                                                                               \
    CPU_DEVICE_INLINE type __bfloat162##name##_rd(__nv_bfloat16 a) {                                \
        return cpu_device::saturating<type>(floorf((float)a));                                      \
    }                                                                                               \
    CPU_DEVICE_INLINE type __bfloat162##name##_ru(__nv_bfloat16 a) {                                \
        return cpu_device::saturating<type>(ceilf((float)a));                                       \
    }
CPU_DEVICE_BFLOAT16_INTEGER(short, short)
CPU_DEVICE_BFLOAT16_INTEGER(unsigned short, ushort)
CPU_DEVICE_BFLOAT16_INTEGER(int, int)
CPU_DEVICE_BFLOAT16_INTEGER(unsigned, uint)
CPU_DEVICE_BFLOAT16_INTEGER(long long, ll)
CPU_DEVICE_BFLOAT16_INTEGER(unsigned long long, ull)

CPU_DEVICE_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
CPU_DEVICE_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
CPU_DEVICE_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
CPU_DEVICE_INLINE __nv_bfloat162 __float2bfloat162_rn(float x) {
    return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(x));
}
CPU_DEVICE_INLINE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y));
}
CPU_DEVICE_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
CPU_DEVICE_INLINE float2 __bfloat1622float2(__nv_bfloat162 a) { return make_float2((float)a.x, (float)a.y); }
CPU_DEVICE_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
CPU_DEVICE_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
CPU_DEVICE_INLINE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
CPU_DEVICE_INLINE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
CPU_DEVICE_INLINE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.x, b.x);
}
CPU_DEVICE_INLINE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.y, b.y);
}

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7F80U)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7FFFU)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7F7FU)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000U)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3F80U)
