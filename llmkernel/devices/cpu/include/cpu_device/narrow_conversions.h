// Conversions between float and the 16-bit floating-point formats, on their bits.
#pragma once

#include "intrinsics.h"

namespace cpu_device {

// A double as a float that rounds to the same 16-bit value: to odd, so that nothing is rounded twice.
CPU_DEVICE_INLINE float narrow_to_odd(double x) {
    const float near = (float)x;
    if ((double)near == x || near != near) return near;
    u32 bits = bit_cast<u32>(near);
    // Back to the neighbour towards zero, then set the lowest bit: something was cut off.
    if (fabs((double)near) > fabs(x)) bits--;
    return bit_cast<float>(bits | 1);
}

struct HalfFormat {
    static CPU_DEVICE_INLINE float widen(u16 bits) {
#if defined(__F16C__) && defined(__FLT16_MANT_DIG__)
        return (float)bit_cast<_Float16>(bits);
#else
        const u32 sign = (u32)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
        if (exponent == 31) return bit_cast<float>(sign | 0x7f800000u | fraction << 13);
        if (exponent) return bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
        return bit_cast<float>(sign | bit_cast<u32>((float)fraction * 0x1p-24f));
#endif
    }

    // To nearest, ties to even.
    static CPU_DEVICE_INLINE u16 narrow(float x) {
        if (x != x) return 0x7fff;
#if defined(__F16C__) && defined(__FLT16_MANT_DIG__)
        return bit_cast<u16>((_Float16)x);
#else
        const u32 bits = bit_cast<u32>(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
        if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00);
        // Below the smallest normal number, the hardware's own rounding of a sum puts the bits in place.
        if (magnitude < 0x38800000u)
            return (u16)(sign | (bit_cast<u32>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u));
        return (u16)(sign | (magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13);
#endif
    }
    static constexpr u16 infinity = 0x7c00;
};

struct BFloat16Format {
    static CPU_DEVICE_INLINE float widen(u16 bits) { return bit_cast<float>((u32)bits << 16); }

    static CPU_DEVICE_INLINE u16 narrow(float x) {
        if (x != x) return 0x7fff;
        const u32 bits = bit_cast<u32>(x);
        return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    static constexpr u16 infinity = 0x7f80;
};

// The other directions, as a step from the nearest value where that went the wrong way.
template <class Format>
CPU_DEVICE_INLINE u16 narrow_down(float x) {
    const u16 near = Format::narrow(x);
    if (!(Format::widen(near) > x)) return near;
    return near & 0x8000 ? near + 1 : near ? near - 1 : 0x8001;
}
template <class Format>
CPU_DEVICE_INLINE u16 narrow_up(float x) {
    const u16 near = Format::narrow(x);
    if (!(Format::widen(near) < x)) return near;
    return near == 0x8000 ? 1 : near & 0x8000 ? near - 1 : near + 1;
}
template <class Format>
CPU_DEVICE_INLINE u16 narrow_to_zero(float x) {
    return x < 0.0f ? narrow_up<Format>(x) : narrow_down<Format>(x);
}

}  // namespace cpu_device
