// CUDA's mathematical functions: the C library's, their overloads for float, and CUDA's own.
#pragma once

#include "constants.h"
#include "language.h"

namespace cpu_device {

template <class T>
struct IsInteger {
    static constexpr bool value = false;
};
#define CPU_DEVICE_INTEGER(type)           \
    template <>                            \
    struct IsInteger<type> {               \
        static constexpr bool value = true; \
    };
CPU_DEVICE_INTEGER(bool)
CPU_DEVICE_INTEGER(char)
CPU_DEVICE_INTEGER(signed char)
CPU_DEVICE_INTEGER(unsigned char)
CPU_DEVICE_INTEGER(short)
CPU_DEVICE_INTEGER(unsigned short)
CPU_DEVICE_INTEGER(int)
CPU_DEVICE_INTEGER(unsigned)
CPU_DEVICE_INTEGER(long)
CPU_DEVICE_INTEGER(unsigned long)
CPU_DEVICE_INTEGER(long long)
CPU_DEVICE_INTEGER(unsigned long long)

template <bool Condition, class T>
struct EnableIf {};
template <class T>
struct EnableIf<true, T> {
    using type = T;
};

}  // namespace cpu_device

// name(double), namef(float) and name(float). As with NVRTC, an integer argument is ambiguous. None of them is a
// template, so that a kernel may have the same name: it is the one that returns void (entry.h).
#define CPU_DEVICE_MATH_1(name)              \
    extern "C" double name(double) noexcept; \
    extern "C" float name##f(float) noexcept; \
    CPU_DEVICE_INLINE float name(float x) { return name##f(x); }
// The same for two arguments; mixed ones meet in double.
#define CPU_DEVICE_MATH_2(name)                                                             \
    extern "C" double name(double, double) noexcept;                                        \
    extern "C" float name##f(float, float) noexcept;                                        \
    CPU_DEVICE_INLINE float name(float x, float y) { return name##f(x, y); }                \
    CPU_DEVICE_INLINE double name(float x, double y) { return name((double)x, y); }         \
    CPU_DEVICE_INLINE double name(double x, float y) { return name(x, (double)y); }

CPU_DEVICE_MATH_1(acos)
CPU_DEVICE_MATH_1(acosh)
CPU_DEVICE_MATH_1(asin)
CPU_DEVICE_MATH_1(asinh)
CPU_DEVICE_MATH_1(atan)
CPU_DEVICE_MATH_1(atanh)
CPU_DEVICE_MATH_1(cbrt)
CPU_DEVICE_MATH_1(ceil)
CPU_DEVICE_MATH_1(cos)
CPU_DEVICE_MATH_1(cosh)
CPU_DEVICE_MATH_1(erf)
CPU_DEVICE_MATH_1(erfc)
CPU_DEVICE_MATH_1(exp)
CPU_DEVICE_MATH_1(exp10)
CPU_DEVICE_MATH_1(exp2)
CPU_DEVICE_MATH_1(expm1)
CPU_DEVICE_MATH_1(fabs)
CPU_DEVICE_MATH_1(floor)
CPU_DEVICE_MATH_1(j0)
CPU_DEVICE_MATH_1(j1)
CPU_DEVICE_MATH_1(lgamma)
CPU_DEVICE_MATH_1(log)
CPU_DEVICE_MATH_1(log10)
CPU_DEVICE_MATH_1(log1p)
CPU_DEVICE_MATH_1(log2)
CPU_DEVICE_MATH_1(logb)
CPU_DEVICE_MATH_1(nearbyint)
CPU_DEVICE_MATH_1(rint)
CPU_DEVICE_MATH_1(round)
CPU_DEVICE_MATH_1(sin)
CPU_DEVICE_MATH_1(sinh)
CPU_DEVICE_MATH_1(sqrt)
CPU_DEVICE_MATH_1(tan)
CPU_DEVICE_MATH_1(tanh)
CPU_DEVICE_MATH_1(tgamma)
CPU_DEVICE_MATH_1(trunc)
CPU_DEVICE_MATH_1(y0)
CPU_DEVICE_MATH_1(y1)
CPU_DEVICE_MATH_2(atan2)
CPU_DEVICE_MATH_2(copysign)
CPU_DEVICE_MATH_2(fdim)
CPU_DEVICE_MATH_2(fmax)
CPU_DEVICE_MATH_2(fmin)
CPU_DEVICE_MATH_2(fmod)
CPU_DEVICE_MATH_2(hypot)
CPU_DEVICE_MATH_2(nextafter)
CPU_DEVICE_MATH_2(remainder)

extern "C" {
double pow(double, double) noexcept;
float powf(float, float) noexcept;
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double scalbln(double, long) noexcept;
float scalblnf(float, long) noexcept;
double modf(double, double*) noexcept;
float modff(float, float*) noexcept;
double remquo(double, double, int*) noexcept;
float remquof(float, float, int*) noexcept;
double nan(const char*) noexcept;
float nanf(const char*) noexcept;
double jn(int, double) noexcept;
float jnf(int, float) noexcept;
double yn(int, double) noexcept;
float ynf(int, float) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
void sincos(double, double*, double*) noexcept;
void sincosf(float, float*, float*) noexcept;
}

// As in CUDA, a float raised to an int stays a float.
CPU_DEVICE_INLINE float pow(float x, float y) { return powf(x, y); }
CPU_DEVICE_INLINE float pow(float x, int y) { return powf(x, (float)y); }
CPU_DEVICE_INLINE double pow(double x, int y) { return pow(x, (double)y); }
CPU_DEVICE_INLINE double pow(float x, double y) { return pow((double)x, y); }
CPU_DEVICE_INLINE double pow(double x, float y) { return pow(x, (double)y); }
CPU_DEVICE_INLINE float fma(float x, float y, float z) { return fmaf(x, y, z); }
CPU_DEVICE_INLINE float frexp(float x, int* exponent) { return frexpf(x, exponent); }
CPU_DEVICE_INLINE float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
CPU_DEVICE_INLINE float scalbn(float x, int exponent) { return scalbnf(x, exponent); }
CPU_DEVICE_INLINE float scalbln(float x, long exponent) { return scalblnf(x, exponent); }
CPU_DEVICE_INLINE float modf(float x, float* whole) { return modff(x, whole); }
CPU_DEVICE_INLINE float remquo(float x, float y, int* quotient) { return remquof(x, y, quotient); }
CPU_DEVICE_INLINE int ilogb(float x) { return ilogbf(x); }
CPU_DEVICE_INLINE long lrint(float x) { return lrintf(x); }
CPU_DEVICE_INLINE long lround(float x) { return lroundf(x); }
CPU_DEVICE_INLINE long long llrint(float x) { return llrintf(x); }
CPU_DEVICE_INLINE long long llround(float x) { return llroundf(x); }
CPU_DEVICE_INLINE void sincos(float x, float* s, float* c) { sincosf(x, s, c); }

CPU_DEVICE_INLINE int abs(int x) { return x < 0 ? -x : x; }
CPU_DEVICE_INLINE long abs(long x) { return x < 0 ? -x : x; }
CPU_DEVICE_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
CPU_DEVICE_INLINE float abs(float x) { return fabsf(x); }
CPU_DEVICE_INLINE double abs(double x) { return fabs(x); }
CPU_DEVICE_INLINE long labs(long x) { return abs(x); }
CPU_DEVICE_INLINE long long llabs(long long x) { return abs(x); }

CPU_DEVICE_INLINE bool isnan(float x) { return __builtin_isnan(x); }
CPU_DEVICE_INLINE bool isnan(double x) { return __builtin_isnan(x); }
CPU_DEVICE_INLINE bool isinf(float x) { return __builtin_isinf(x); }
CPU_DEVICE_INLINE bool isinf(double x) { return __builtin_isinf(x); }
CPU_DEVICE_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
CPU_DEVICE_INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
CPU_DEVICE_INLINE bool signbit(float x) { return __builtin_signbit(x); }
CPU_DEVICE_INLINE bool signbit(double x) { return __builtin_signbit(x); }

// ---- CUDA's own ----

CPU_DEVICE_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
CPU_DEVICE_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
CPU_DEVICE_INLINE float rsqrt(float x) { return rsqrtf(x); }
CPU_DEVICE_INLINE float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
CPU_DEVICE_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
CPU_DEVICE_INLINE float rcbrt(float x) { return rcbrtf(x); }
CPU_DEVICE_INLINE float fdividef(float x, float y) { return x / y; }

// sin(pi x) with the argument reduced exactly before pi, which is not exact, comes in.
CPU_DEVICE_INLINE double sinpi(double x) {
    const double rest = remainder(x, 2.0);
    if (rest == 0.0 || rest == 1.0 || rest == -1.0) return copysign(0.0, x);
    return sin(rest * M_PI);
}
CPU_DEVICE_INLINE double cospi(double x) {
    const double rest = fabs(remainder(x, 2.0));
    return rest == 0.5 ? 0.0 : rest > 0.25 && rest < 0.75 ? sin((0.5 - rest) * M_PI) : cos(rest * M_PI);
}
CPU_DEVICE_INLINE float sinpif(float x) { return (float)sinpi((double)x); }
CPU_DEVICE_INLINE float cospif(float x) { return (float)cospi((double)x); }
CPU_DEVICE_INLINE void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
CPU_DEVICE_INLINE void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }

CPU_DEVICE_INLINE double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
CPU_DEVICE_INLINE float normcdff(float x) { return (float)normcdf((double)x); }

namespace cpu_device {

// exp(x²)·erfc(x): the product where erfc is a normal number, its asymptotic series where it is not.
inline double scaled_erfc(double x) {
    if (x < 25.0) return exp(x * x) * erfc(x);
    const double inverse = 1.0 / (x * x);
    const double series = 1.0 + inverse * (-0.5 + inverse * (0.75 + inverse * (-1.875 + inverse * 6.5625)));
    return M_2_SQRTPI * 0.5 / x * series;
}

// The y with erfc(y) = x: Newton's method on erfc, whose derivative is -2/sqrt(pi)·exp(-y²), from a start that
// is exact enough for it to converge on all of (0, 2).
inline double inverse_erfc(double x) {
    if (!(x >= 0.0 && x <= 2.0)) return __builtin_nan("");
    if (x == 0.0) return __builtin_inf();
    if (x == 2.0) return -__builtin_inf();
    const bool is_upper = x > 1.0;
    const double tail = is_upper ? 2.0 - x : x;
    const double t = sqrt(-2.0 * log(tail / 2.0));
    // Abramowitz and Stegun, 26.2.23.
    double y = (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                        (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) * M_SQRT1_2;
    for (int i = 0; i < 4; i++) {
        const double error = (erfc(y) - tail) / (-M_2_SQRTPI * exp(-y * y));
        y -= error / (1.0 + y * error);  // Halley's step: the second derivative is -2y times the first
    }
    return is_upper ? -y : y;
}

}  // namespace cpu_device

CPU_DEVICE_INLINE double erfcx(double x) { return cpu_device::scaled_erfc(x); }
CPU_DEVICE_INLINE float erfcxf(float x) { return (float)erfcx((double)x); }
CPU_DEVICE_INLINE double erfcinv(double x) { return cpu_device::inverse_erfc(x); }
CPU_DEVICE_INLINE float erfcinvf(float x) { return (float)erfcinv((double)x); }
CPU_DEVICE_INLINE double erfinv(double x) {
    // Near zero 1 - x loses the digits of x: there one step of Newton's method on erf itself.
    if (x > -0.25 && x < 0.25) {
        double y = x * (0.5 / M_2_SQRTPI * 2.0) * (1.0 + x * x * 0.2617993877991494);
        for (int i = 0; i < 3; i++) y -= (erf(y) - x) / (M_2_SQRTPI * exp(-y * y));
        return y;
    }
    return cpu_device::inverse_erfc(1.0 - x);
}
CPU_DEVICE_INLINE float erfinvf(float x) { return (float)erfinv((double)x); }
CPU_DEVICE_INLINE double normcdfinv(double x) { return -M_SQRT2 * erfcinv(2.0 * x); }
CPU_DEVICE_INLINE float normcdfinvf(float x) { return (float)normcdfinv((double)x); }

CPU_DEVICE_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
CPU_DEVICE_INLINE float rhypotf(float x, float y) { return (float)rhypot((double)x, (double)y); }
CPU_DEVICE_INLINE double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
CPU_DEVICE_INLINE float norm3df(float x, float y, float z) { return (float)norm3d(x, y, z); }
CPU_DEVICE_INLINE double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
CPU_DEVICE_INLINE float rnorm3df(float x, float y, float z) { return (float)rnorm3d(x, y, z); }
CPU_DEVICE_INLINE double norm4d(double x, double y, double z, double w) { return hypot(norm3d(x, y, z), w); }
CPU_DEVICE_INLINE float norm4df(float x, float y, float z, float w) { return (float)norm4d(x, y, z, w); }
CPU_DEVICE_INLINE double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
CPU_DEVICE_INLINE float rnorm4df(float x, float y, float z, float w) { return (float)rnorm4d(x, y, z, w); }

// ---- min and max, with the mixed overloads that CUDA has ----

#define CPU_DEVICE_MIN_MAX(result, first, second)                                        \
    CPU_DEVICE_INLINE constexpr result min(first a, second b) {                          \
        return (result)a < (result)b ? (result)a : (result)b;                            \
    }                                                                                    \
    CPU_DEVICE_INLINE constexpr result max(first a, second b) {                          \
        return (result)a > (result)b ? (result)a : (result)b;                            \
    }
#define CPU_DEVICE_MIN_MAX_FAMILY(type)                                                  \
    CPU_DEVICE_MIN_MAX(type, type, type)                                                 \
    CPU_DEVICE_MIN_MAX(unsigned type, unsigned type, unsigned type)                      \
    CPU_DEVICE_MIN_MAX(unsigned type, type, unsigned type)                               \
    CPU_DEVICE_MIN_MAX(unsigned type, unsigned type, type)
CPU_DEVICE_MIN_MAX_FAMILY(int)
CPU_DEVICE_MIN_MAX_FAMILY(long)
CPU_DEVICE_MIN_MAX_FAMILY(long long)
// The other operand where one is NaN, as fmin and fmax.
CPU_DEVICE_INLINE float min(float a, float b) { return fminf(a, b); }
CPU_DEVICE_INLINE float max(float a, float b) { return fmaxf(a, b); }
CPU_DEVICE_INLINE double min(double a, double b) { return fmin(a, b); }
CPU_DEVICE_INLINE double max(double a, double b) { return fmax(a, b); }
CPU_DEVICE_INLINE double min(float a, double b) { return fmin((double)a, b); }
CPU_DEVICE_INLINE double max(float a, double b) { return fmax((double)a, b); }
CPU_DEVICE_INLINE double min(double a, float b) { return fmin(a, (double)b); }
CPU_DEVICE_INLINE double max(double a, float b) { return fmax(a, (double)b); }
CPU_DEVICE_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
CPU_DEVICE_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
CPU_DEVICE_INLINE long long llmin(long long a, long long b) { return min(a, b); }
CPU_DEVICE_INLINE long long llmax(long long a, long long b) { return max(a, b); }
CPU_DEVICE_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
CPU_DEVICE_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
