// int2, float4, double2 and their makers. CUDA defines no arithmetic on them, and neither does this file.
#pragma once

#include "abi.h"

#define CPU_DEVICE_VECTOR_1(type, name) \
    struct name##1 { type x; };         \
    CPU_DEVICE_INLINE constexpr name##1 make_##name##1(type x) { return {x}; }
#define CPU_DEVICE_VECTOR_2(type, name, alignment)              \
    struct __attribute__((aligned(alignment))) name##2 { type x, y; }; \
    CPU_DEVICE_INLINE constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }
#define CPU_DEVICE_VECTOR_3(type, name)       \
    struct name##3 { type x, y, z; };         \
    CPU_DEVICE_INLINE constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }
#define CPU_DEVICE_VECTOR_4(type, name, alignment)                    \
    struct __attribute__((aligned(alignment))) name##4 { type x, y, z, w; }; \
    CPU_DEVICE_INLINE constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

#define CPU_DEVICE_VECTORS(type, name, alignment_2, alignment_4) \
    CPU_DEVICE_VECTOR_1(type, name)                              \
    CPU_DEVICE_VECTOR_2(type, name, alignment_2)                 \
    CPU_DEVICE_VECTOR_3(type, name)                              \
    CPU_DEVICE_VECTOR_4(type, name, alignment_4)

CPU_DEVICE_VECTORS(signed char, char, 2, 4)
CPU_DEVICE_VECTORS(unsigned char, uchar, 2, 4)
CPU_DEVICE_VECTORS(short, short, 4, 8)
CPU_DEVICE_VECTORS(unsigned short, ushort, 4, 8)
CPU_DEVICE_VECTORS(int, int, 8, 16)
CPU_DEVICE_VECTORS(long, long, 16, 16)
CPU_DEVICE_VECTORS(unsigned long, ulong, 16, 16)
CPU_DEVICE_VECTORS(long long, longlong, 16, 16)
CPU_DEVICE_VECTORS(unsigned long long, ulonglong, 16, 16)
CPU_DEVICE_VECTORS(float, float, 8, 16)
CPU_DEVICE_VECTORS(double, double, 16, 16)
// uint3 is the type of threadIdx and comes from abi.h.
CPU_DEVICE_VECTOR_1(unsigned, uint)
CPU_DEVICE_VECTOR_2(unsigned, uint, 8)
CPU_DEVICE_VECTOR_4(unsigned, uint, 16)
CPU_DEVICE_INLINE constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
