// The names of C and C++ that CUDA kernels use and that bare NVRTC lacks.
//
// NVRTC includes this file ahead of every candidate (--pre-include), so line numbers stay the candidate's own.
// The empty files <stdint.h>, <cmath>, <limits> … that stand beside it let the same candidate compile under nvcc.
// Types are spelled as in libcu++ (cuda/std/cstdint): declaring them twice is then no conflict.
#pragma once

// A candidate, or libcu++, may define one of the macros below again: the value is the same.
#pragma nv_diag_suppress 47

using int8_t = signed char;
using int16_t = signed short;
using int32_t = signed int;
using int64_t = signed long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;
using intmax_t = int64_t;
using uintmax_t = uint64_t;
using uint = unsigned int;
using ushort = unsigned short;
using ulong = unsigned long;

#if __has_include(<math_constants.h>)
#include <math_constants.h>
#endif

#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000ULL)
#endif

#ifndef CHAR_BIT
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-SHRT_MAX - 1)
#define SHRT_MAX 0x7fff
#define USHRT_MAX 0xffff
#define INT_MIN (-INT_MAX - 1)
#define INT_MAX 0x7fffffff
#define UINT_MAX 0xffffffff
#define LLONG_MIN (-LLONG_MAX - 1)
#define LLONG_MAX 0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffULL
#ifdef __LP64__
#define LONG_MAX 0x7fffffffffffffffL
#define ULONG_MAX 0xffffffffffffffffUL
#else
#define LONG_MAX 0x7fffffffL
#define ULONG_MAX 0xffffffffUL
#endif
#define LONG_MIN (-LONG_MAX - 1)
#endif

#ifndef INT32_MAX
#define INT8_MIN SCHAR_MIN
#define INT16_MIN SHRT_MIN
#define INT32_MIN INT_MIN
#define INT64_MIN LLONG_MIN
#define INT8_MAX SCHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT32_MAX INT_MAX
#define INT64_MAX LLONG_MAX
#define UINT8_MAX UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX UINT64_MAX
#endif

#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_TRUE_MIN 1.401298464e-45F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_TRUE_MIN 4.9406564584124654e-324
#define DBL_EPSILON 2.2204460492503131e-16
#endif

#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;

// <cmath>: NVRTC's own overloads for float and double.
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::frexp;
using ::hypot;
using ::ilogb;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::llrint;
using ::llround;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::logb;
using ::lrint;
using ::lround;
using ::modf;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::remainder;
using ::rint;
using ::round;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;

// <algorithm>, <utility>
template <typename T>
__host__ __device__ constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <typename T>
__host__ __device__ constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <typename T>
__host__ __device__ constexpr const T& clamp(const T& value, const T& low, const T& high) {
  return value < low ? low : (high < value ? high : value);
}
template <typename T>
__host__ __device__ constexpr void swap(T& a, T& b) {
  T kept = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(kept);
}

// <type_traits>
template <typename T, T Value>
struct integral_constant {
  static constexpr T value = Value;
  using value_type = T;
  using type = integral_constant;
  __host__ __device__ constexpr operator T() const noexcept { return Value; }
  __host__ __device__ constexpr T operator()() const noexcept { return Value; }
};
template <bool Value>
using bool_constant = integral_constant<bool, Value>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <typename A, typename B>
inline constexpr bool is_same_v = false;
template <typename A>
inline constexpr bool is_same_v<A, A> = true;
template <typename A, typename B>
struct is_same : bool_constant<is_same_v<A, B>> {};

template <bool Condition, typename A, typename B>
struct conditional {
  using type = A;
};
template <typename A, typename B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool Condition, typename A, typename B>
using conditional_t = typename conditional<Condition, A, B>::type;

template <bool Condition, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
  using type = T;
};
template <bool Condition, typename T = void>
using enable_if_t = typename enable_if<Condition, T>::type;

template <typename T>
struct remove_const {
  using type = T;
};
template <typename T>
struct remove_const<const T> {
  using type = T;
};
template <typename T>
struct remove_volatile {
  using type = T;
};
template <typename T>
struct remove_volatile<volatile T> {
  using type = T;
};
template <typename T>
struct remove_cv {
  using type = typename remove_const<typename remove_volatile<T>::type>::type;
};
template <typename T>
struct remove_reference {
  using type = T;
};
template <typename T>
struct remove_reference<T&> {
  using type = T;
};
template <typename T>
struct remove_reference<T&&> {
  using type = T;
};
template <typename T>
struct remove_pointer {
  using type = T;
};
template <typename T>
struct remove_pointer<T*> {
  using type = T;
};
template <typename T>
struct remove_cvref {
  using type = typename remove_cv<typename remove_reference<T>::type>::type;
};
template <typename T>
using remove_const_t = typename remove_const<T>::type;
template <typename T>
using remove_cv_t = typename remove_cv<T>::type;
template <typename T>
using remove_reference_t = typename remove_reference<T>::type;
template <typename T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <typename T>
using remove_cvref_t = typename remove_cvref<T>::type;
template <typename T>
using decay_t = typename remove_cvref<T>::type;

template <typename T>
inline constexpr bool is_floating_point_v = is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, double>;
template <typename T>
struct is_floating_point : bool_constant<is_floating_point_v<T>> {};

template <typename T, typename... Ts>
inline constexpr bool __llmkernel_is_any = (is_same_v<remove_cv_t<T>, Ts> || ...);
template <typename T>
inline constexpr bool is_integral_v =
    __llmkernel_is_any<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned int, long,
                unsigned long, long long, unsigned long long>;
template <typename T>
struct is_integral : bool_constant<is_integral_v<T>> {};
template <typename T>
inline constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;
template <typename T>
struct is_arithmetic : bool_constant<is_arithmetic_v<T>> {};
template <typename T>
inline constexpr bool is_signed_v = is_arithmetic_v<T> && T(-1) < T(0);
template <typename T>
struct is_signed : bool_constant<is_signed_v<T>> {};
template <typename T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && !(T(-1) < T(0));
template <typename T>
struct is_unsigned : bool_constant<is_unsigned_v<T>> {};

// <limits>. No explicit specialisations: NVRTC would put their members into every module.
template <typename T>
struct __llmkernel_integer_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = true;
  static constexpr bool is_signed = is_signed_v<T>;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr int digits = is_same_v<T, bool> ? 1 : 8 * int(sizeof(T)) - is_signed;
  __host__ __device__ static constexpr T max() noexcept { return static_cast<T>(~0ULL >> (64 - digits)); }
  __host__ __device__ static constexpr T min() noexcept {
    return is_signed ? static_cast<T>(-static_cast<long long>(~0ULL >> (64 - digits)) - 1) : T(0);
  }
  __host__ __device__ static constexpr T lowest() noexcept { return min(); }
  __host__ __device__ static constexpr T epsilon() noexcept { return T(0); }
};
template <typename T>
struct __llmkernel_float_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool is_single = sizeof(T) == 4;
  static constexpr int digits = is_single ? FLT_MANT_DIG : DBL_MANT_DIG;
  __host__ __device__ static constexpr T max() noexcept { return is_single ? T(FLT_MAX) : T(DBL_MAX); }
  __host__ __device__ static constexpr T min() noexcept { return is_single ? T(FLT_MIN) : T(DBL_MIN); }
  __host__ __device__ static constexpr T lowest() noexcept { return -max(); }
  __host__ __device__ static constexpr T denorm_min() noexcept { return is_single ? T(FLT_TRUE_MIN) : T(DBL_TRUE_MIN); }
  __host__ __device__ static constexpr T epsilon() noexcept { return is_single ? T(FLT_EPSILON) : T(DBL_EPSILON); }
  __host__ __device__ static constexpr T infinity() noexcept { return HUGE_VALF; }
  __host__ __device__ static constexpr T quiet_NaN() noexcept { return NAN; }
};
template <typename T>
struct __llmkernel_no_limits {
  static constexpr bool is_specialized = false;
};
template <typename T>
struct numeric_limits : conditional_t<is_integral_v<T>, __llmkernel_integer_limits<T>,
                                      conditional_t<is_floating_point_v<T>, __llmkernel_float_limits<T>, __llmkernel_no_limits<T>>> {};

}  // namespace std
