// CUDA's intrinsics: fast and explicitly rounded arithmetic, conversions, bits, cached loads and stores.
#pragma once

#include "atomics.h"
#include "language.h"
#include "math_functions.h"

namespace cpu_device {

template <class To, class From>
CPU_DEVICE_INLINE To bit_cast(From value) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
    To result;
    __builtin_memcpy(&result, &value, sizeof(To));
    return result;
}

// Conversions saturate and turn NaN to zero, as the hardware's do and C++'s do not.
template <class To, class From>
CPU_DEVICE_INLINE To saturating(From value) {
    constexpr bool is_signed = To(-1) < To(0);
    constexpr unsigned bits = sizeof(To) * 8;
    constexpr To highest = (To)(~(unsigned long long)0 >> (64 - bits + is_signed));
    constexpr To lowest = is_signed ? (To)(-highest - 1) : To(0);
    if (value != value) return To(0);
    if (value >= (From)highest) return highest;
    return value <= (From)lowest ? lowest : (To)value;
}

}  // namespace cpu_device

// ---- fast functions, here at full precision ----

CPU_DEVICE_INLINE float __expf(float x) { return expf(x); }
CPU_DEVICE_INLINE float __exp10f(float x) { return exp10f(x); }
CPU_DEVICE_INLINE float __logf(float x) { return logf(x); }
CPU_DEVICE_INLINE float __log2f(float x) { return log2f(x); }
CPU_DEVICE_INLINE float __log10f(float x) { return log10f(x); }
CPU_DEVICE_INLINE float __sinf(float x) { return sinf(x); }
CPU_DEVICE_INLINE float __cosf(float x) { return cosf(x); }
CPU_DEVICE_INLINE float __tanf(float x) { return tanf(x); }
CPU_DEVICE_INLINE float __tanhf(float x) { return tanhf(x); }
CPU_DEVICE_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
CPU_DEVICE_INLINE float __powf(float x, float y) { return powf(x, y); }
CPU_DEVICE_INLINE float __fdividef(float x, float y) { return x / y; }
CPU_DEVICE_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// ---- rounding to nearest; the other directions through a wider type ----

CPU_DEVICE_INLINE float __fadd_rn(float x, float y) { return x + y; }
CPU_DEVICE_INLINE float __fsub_rn(float x, float y) { return x - y; }
CPU_DEVICE_INLINE float __fmul_rn(float x, float y) { return x * y; }
CPU_DEVICE_INLINE float __fdiv_rn(float x, float y) { return x / y; }
CPU_DEVICE_INLINE float __frcp_rn(float x) { return 1.0f / x; }
CPU_DEVICE_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
CPU_DEVICE_INLINE float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
CPU_DEVICE_INLINE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
CPU_DEVICE_INLINE float __fmaf_ieee_rn(float x, float y, float z) { return fmaf(x, y, z); }
CPU_DEVICE_INLINE double __dadd_rn(double x, double y) { return x + y; }
CPU_DEVICE_INLINE double __dsub_rn(double x, double y) { return x - y; }
CPU_DEVICE_INLINE double __dmul_rn(double x, double y) { return x * y; }
CPU_DEVICE_INLINE double __ddiv_rn(double x, double y) { return x / y; }
CPU_DEVICE_INLINE double __drcp_rn(double x) { return 1.0 / x; }
CPU_DEVICE_INLINE double __dsqrt_rn(double x) { return sqrt(x); }
CPU_DEVICE_INLINE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// A double narrowed to a float in a direction. Exact for sums and products that a double holds.
CPU_DEVICE_INLINE float __double2float_rn(double x) { return (float)x; }
CPU_DEVICE_INLINE float __double2float_rd(double x) {
    const float near = (float)x;
    return (double)near > x ? nextafterf(near, -INFINITY) : near;
}
CPU_DEVICE_INLINE float __double2float_ru(double x) {
    const float near = (float)x;
    return (double)near < x ? nextafterf(near, INFINITY) : near;
}
CPU_DEVICE_INLINE float __double2float_rz(double x) { return x < 0 ? __double2float_ru(x) : __double2float_rd(x); }
CPU_DEVICE_INLINE float __fadd_rd(float x, float y) { return __double2float_rd((double)x + y); }
CPU_DEVICE_INLINE float __fadd_ru(float x, float y) { return __double2float_ru((double)x + y); }
CPU_DEVICE_INLINE float __fadd_rz(float x, float y) { return __double2float_rz((double)x + y); }
CPU_DEVICE_INLINE float __fmul_rd(float x, float y) { return __double2float_rd((double)x * y); }
CPU_DEVICE_INLINE float __fmul_ru(float x, float y) { return __double2float_ru((double)x * y); }
CPU_DEVICE_INLINE float __fmul_rz(float x, float y) { return __double2float_rz((double)x * y); }

// What is left of a quotient or root after rounding is exact in one fused multiply-add; its sign says on which
// side the rounded value lies.
CPU_DEVICE_INLINE float __fdiv_rd(float x, float y) {
    const float near = x / y, rest = fmaf(-near, y, x);
    return rest != 0.0f && isfinite(near) && (rest < 0.0f) != (y < 0.0f) ? nextafterf(near, -INFINITY) : near;
}
CPU_DEVICE_INLINE float __fdiv_ru(float x, float y) { return -__fdiv_rd(-x, y); }
CPU_DEVICE_INLINE float __fdiv_rz(float x, float y) { return (x < 0) != (y < 0) ? __fdiv_ru(x, y) : __fdiv_rd(x, y); }
CPU_DEVICE_INLINE float __frcp_rd(float x) { return __fdiv_rd(1.0f, x); }
CPU_DEVICE_INLINE float __frcp_ru(float x) { return __fdiv_ru(1.0f, x); }
CPU_DEVICE_INLINE float __frcp_rz(float x) { return __fdiv_rz(1.0f, x); }
CPU_DEVICE_INLINE float __fsqrt_rd(float x) {
    const float near = sqrtf(x);
    return fmaf(-near, near, x) < 0.0f ? nextafterf(near, 0.0f) : near;
}
CPU_DEVICE_INLINE float __fsqrt_ru(float x) {
    const float near = sqrtf(x);
    return fmaf(-near, near, x) > 0.0f ? nextafterf(near, INFINITY) : near;
}
CPU_DEVICE_INLINE float __fsqrt_rz(float x) { return __fsqrt_rd(x); }
CPU_DEVICE_INLINE float __fsub_rd(float x, float y) { return __double2float_rd((double)x - y); }
CPU_DEVICE_INLINE float __fsub_ru(float x, float y) { return __double2float_ru((double)x - y); }
CPU_DEVICE_INLINE float __fsub_rz(float x, float y) { return __double2float_rz((double)x - y); }

// ---- conversions ----

#define CPU_DEVICE_TO_INTEGER(to, name, from, prefix, round_function, floor_function, ceil_function)                  \
    CPU_DEVICE_INLINE to __##prefix##2##name##_rn(from x) { return cpu_device::saturating<to>(round_function(x)); }   \
    CPU_DEVICE_INLINE to __##prefix##2##name##_rz(from x) { return cpu_device::saturating<to>(x); }                   \
    CPU_DEVICE_INLINE to __##prefix##2##name##_rd(from x) { return cpu_device::saturating<to>(floor_function(x)); }   \
    CPU_DEVICE_INLINE to __##prefix##2##name##_ru(from x) { return cpu_device::saturating<to>(ceil_function(x)); }
CPU_DEVICE_TO_INTEGER(int, int, float, float, rintf, floorf, ceilf)
CPU_DEVICE_TO_INTEGER(unsigned, uint, float, float, rintf, floorf, ceilf)
CPU_DEVICE_TO_INTEGER(long long, ll, float, float, rintf, floorf, ceilf)
CPU_DEVICE_TO_INTEGER(unsigned long long, ull, float, float, rintf, floorf, ceilf)
CPU_DEVICE_TO_INTEGER(int, int, double, double, rint, floor, ceil)
CPU_DEVICE_TO_INTEGER(unsigned, uint, double, double, rint, floor, ceil)
CPU_DEVICE_TO_INTEGER(long long, ll, double, double, rint, floor, ceil)
CPU_DEVICE_TO_INTEGER(unsigned long long, ull, double, double, rint, floor, ceil)

CPU_DEVICE_INLINE float __int2float_rn(int x) { return (float)x; }
CPU_DEVICE_INLINE float __int2float_rz(int x) { return __double2float_rz((double)x); }
CPU_DEVICE_INLINE float __int2float_rd(int x) { return __double2float_rd((double)x); }
CPU_DEVICE_INLINE float __int2float_ru(int x) { return __double2float_ru((double)x); }
CPU_DEVICE_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
CPU_DEVICE_INLINE float __uint2float_rz(unsigned x) { return __double2float_rz((double)x); }
CPU_DEVICE_INLINE float __ll2float_rn(long long x) { return (float)x; }
CPU_DEVICE_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
CPU_DEVICE_INLINE double __int2double_rn(int x) { return (double)x; }
CPU_DEVICE_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
CPU_DEVICE_INLINE double __ll2double_rn(long long x) { return (double)x; }
CPU_DEVICE_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

CPU_DEVICE_INLINE int __float_as_int(float x) { return cpu_device::bit_cast<int>(x); }
CPU_DEVICE_INLINE unsigned __float_as_uint(float x) { return cpu_device::bit_cast<unsigned>(x); }
CPU_DEVICE_INLINE float __int_as_float(int x) { return cpu_device::bit_cast<float>(x); }
CPU_DEVICE_INLINE float __uint_as_float(unsigned x) { return cpu_device::bit_cast<float>(x); }
CPU_DEVICE_INLINE long long __double_as_longlong(double x) { return cpu_device::bit_cast<long long>(x); }
CPU_DEVICE_INLINE double __longlong_as_double(long long x) { return cpu_device::bit_cast<double>(x); }
CPU_DEVICE_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
CPU_DEVICE_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
CPU_DEVICE_INLINE double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

// ---- bits ----

CPU_DEVICE_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
CPU_DEVICE_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
CPU_DEVICE_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
CPU_DEVICE_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
CPU_DEVICE_INLINE int __ffs(int x) { return __builtin_ffs(x); }
CPU_DEVICE_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
CPU_DEVICE_INLINE unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0F0F0F0Fu) | (x & 0x0F0F0F0Fu) << 4;
    return __builtin_bswap32(x);
}
CPU_DEVICE_INLINE unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
// Where the n-th set bit is, counted from bit `base` upwards (downwards for a negative n); all ones when there is none.
CPU_DEVICE_INLINE unsigned __fns(unsigned mask, unsigned base, int n) {
    if (n == 0) return mask >> (base & 31) & 1 ? base & 31 : 0xffffffffu;
    const int step = n > 0 ? 1 : -1;
    for (int at = (int)(base & 31), left = n * step; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0) return (unsigned)at;
    return 0xffffffffu;
}
CPU_DEVICE_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= (unsigned)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}
CPU_DEVICE_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
CPU_DEVICE_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
CPU_DEVICE_INLINE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift < 32 ? shift : 32) >> 32);
}
CPU_DEVICE_INLINE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift < 32 ? shift : 32));
}

// ---- integers ----

CPU_DEVICE_INLINE int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
CPU_DEVICE_INLINE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x * y) >> 32); }
CPU_DEVICE_INLINE long long __mul64hi(long long x, long long y) { return (long long)(((__int128)x * y) >> 64); }
CPU_DEVICE_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
CPU_DEVICE_INLINE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
CPU_DEVICE_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
CPU_DEVICE_INLINE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
CPU_DEVICE_INLINE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
CPU_DEVICE_INLINE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
CPU_DEVICE_INLINE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
CPU_DEVICE_INLINE unsigned __sad(int x, int y, unsigned z) { return (unsigned)(x > y ? x - y : y - x) + z; }
CPU_DEVICE_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
CPU_DEVICE_INLINE int __dp4a(int x, int y, int sum) {
    for (int i = 0; i < 32; i += 8) sum += (int)(signed char)(x >> i) * (int)(signed char)(y >> i);
    return sum;
}
CPU_DEVICE_INLINE unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += (x >> i & 0xff) * (y >> i & 0xff);
    return sum;
}
CPU_DEVICE_INLINE int __dp2a_lo(int x, int y, int sum) {
    return sum + (short)x * (signed char)y + (short)(x >> 16) * (signed char)(y >> 8);
}
CPU_DEVICE_INLINE int __dp2a_hi(int x, int y, int sum) {
    return sum + (short)x * (signed char)(y >> 16) + (short)(x >> 16) * (signed char)(y >> 24);
}

// ---- loads and stores with a cache hint, which has no meaning here ----

#define CPU_DEVICE_LOAD(name)             \
    template <class T>                    \
    CPU_DEVICE_INLINE T name(const T* p) { \
        return *p;                        \
    }
#define CPU_DEVICE_STORE(name)                                              \
    template <class T>                                                      \
    CPU_DEVICE_INLINE void name(T* p, cpu_device::same_t<T> v) { \
        *p = v;                                                             \
    }
CPU_DEVICE_LOAD(__ldg)
CPU_DEVICE_LOAD(__ldca)
CPU_DEVICE_LOAD(__ldcg)
CPU_DEVICE_LOAD(__ldcs)
CPU_DEVICE_LOAD(__ldcv)
CPU_DEVICE_LOAD(__ldlu)
CPU_DEVICE_STORE(__stwb)
CPU_DEVICE_STORE(__stcg)
CPU_DEVICE_STORE(__stcs)
CPU_DEVICE_STORE(__stwt)

// ---- time and addresses ----

CPU_DEVICE_INLINE long long clock64() { return (long long)cpu_device_nanoseconds(); }
CPU_DEVICE_INLINE int clock() { return (int)cpu_device_nanoseconds(); }
CPU_DEVICE_INLINE unsigned long long __globaltimer() { return cpu_device_nanoseconds(); }
CPU_DEVICE_INLINE size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }
CPU_DEVICE_INLINE size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
