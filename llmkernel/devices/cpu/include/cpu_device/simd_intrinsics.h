// Arithmetic on two 16-bit or four 8-bit parts of a word (__vadd2, __vmaxu4 ...).
#pragma once

#include "language.h"

namespace cpu_device {

// Apply `operation` to each part of the words, read as `Part`, and put the low bits of the results back.
template <class Part, class Operation>
CPU_DEVICE_INLINE unsigned each_part(unsigned a, unsigned b, Operation operation) {
    constexpr unsigned bits = sizeof(Part) * 8, mask = (1u << bits) - 1;
    unsigned result = 0;
    for (unsigned at = 0; at < 32; at += bits)
        result |= ((unsigned)operation((int)(Part)(a >> at), (int)(Part)(b >> at)) & mask) << at;
    return result;
}

template <class Part>
CPU_DEVICE_INLINE int clamp_to(int value) {
    constexpr bool is_signed = Part(-1) < Part(0);
    constexpr int bits = sizeof(Part) * 8, high = (1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
    return value < low ? low : value > high ? high : value;
}

}  // namespace cpu_device

#define CPU_DEVICE_SIMD(name, part, expression)                                                     \
    CPU_DEVICE_INLINE unsigned name(unsigned x, unsigned y) {                                       \
        return cpu_device::each_part<part>(x, y, [](int a, int b) -> int { return expression; });   \
    }
#define CPU_DEVICE_SIMD_FAMILY(width, signed_part, unsigned_part)                          \
    CPU_DEVICE_SIMD(__vadd##width, unsigned_part, a + b)                                   \
    CPU_DEVICE_SIMD(__vsub##width, unsigned_part, a - b)                                   \
    CPU_DEVICE_SIMD(__vaddss##width, signed_part, cpu_device::clamp_to<signed_part>(a + b))     \
    CPU_DEVICE_SIMD(__vaddus##width, unsigned_part, cpu_device::clamp_to<unsigned_part>(a + b)) \
    CPU_DEVICE_SIMD(__vsubss##width, signed_part, cpu_device::clamp_to<signed_part>(a - b))     \
    CPU_DEVICE_SIMD(__vsubus##width, unsigned_part, cpu_device::clamp_to<unsigned_part>(a - b)) \
    CPU_DEVICE_SIMD(__vmaxs##width, signed_part, a > b ? a : b)                            \
    CPU_DEVICE_SIMD(__vmaxu##width, unsigned_part, a > b ? a : b)                          \
    CPU_DEVICE_SIMD(__vmins##width, signed_part, a < b ? a : b)                            \
    CPU_DEVICE_SIMD(__vminu##width, unsigned_part, a < b ? a : b)                          \
    CPU_DEVICE_SIMD(__vabsdiffs##width, signed_part, a > b ? a - b : b - a)                \
    CPU_DEVICE_SIMD(__vabsdiffu##width, unsigned_part, a > b ? a - b : b - a)              \
    CPU_DEVICE_SIMD(__vavgu##width, unsigned_part, (a + b + 1) >> 1)                       \
    CPU_DEVICE_SIMD(__vhaddu##width, unsigned_part, (a + b) >> 1)                          \
    CPU_DEVICE_SIMD(__vcmpeq##width, unsigned_part, a == b ? -1 : 0)                       \
    CPU_DEVICE_SIMD(__vcmpne##width, unsigned_part, a != b ? -1 : 0)                       \
    CPU_DEVICE_SIMD(__vcmpgts##width, signed_part, a > b ? -1 : 0)                         \
    CPU_DEVICE_SIMD(__vcmpgtu##width, unsigned_part, a > b ? -1 : 0)                       \
    CPU_DEVICE_SIMD(__vcmplts##width, signed_part, a < b ? -1 : 0)                         \
    CPU_DEVICE_SIMD(__vcmpltu##width, unsigned_part, a < b ? -1 : 0)                       \
    CPU_DEVICE_INLINE unsigned __vsadu##width(unsigned x, unsigned y) {                    \
        unsigned sum = 0;                                                                  \
        for (unsigned at = 0; at < 32; at += sizeof(unsigned_part) * 8) {                  \
            const int a = (unsigned_part)(x >> at), b = (unsigned_part)(y >> at);          \
            sum += a > b ? a - b : b - a;                                                  \
        }                                                                                  \
        return sum;                                                                        \
    }                                                                                      \
    CPU_DEVICE_INLINE unsigned __vneg##width(unsigned x) { return __vsub##width(0, x); }
CPU_DEVICE_SIMD_FAMILY(2, short, unsigned short)
CPU_DEVICE_SIMD_FAMILY(4, signed char, unsigned char)
