// Atomic functions, in their plain, _block and _system spellings, for every type of a machine word's size.
#pragma once

#include "abi.h"
#include "language.h"
#include "math_functions.h"
#include "vector_types.h"

namespace cpu_device {

template <unsigned Bytes>
struct Word;
template <>
struct Word<1> {
    using type = u8;
};
template <>
struct Word<2> {
    using type = u16;
};
template <>
struct Word<4> {
    using type = u32;
};
template <>
struct Word<8> {
    using type = u64;
};

// The second argument must not take part in deduction: atomicAdd(&floats[i], 1) adds 1.0f.
template <class T>
struct Same {
    using type = T;
};
template <class T>
using same_t = typename Same<T>::type;

// Replace *address by operation(*address) and return the old value.
template <class T, class Operation>
CPU_DEVICE_INLINE T read_modify_write(T* address, Operation operation) {
    using Bits = typename Word<sizeof(T)>::type;
    Bits* word = (Bits*)address;
    Bits before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    T value;
    do {
        __builtin_memcpy(&value, &before, sizeof(T));
        const T changed = operation(value);
        __builtin_memcpy(&after, &changed, sizeof(T));
    } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return value;
}

// An atomic that changed nothing may be one turn of a spin loop: let the thread that it waits for run.
template <class T>
CPU_DEVICE_INLINE void yield_if_unchanged(T before, T after) {
    if (__builtin_memcmp(&before, &after, sizeof(T)) == 0) cpu_device_yield();
}

// Only where the zero is written in the call: a sum that happens to be zero is no spin loop.
template <class T>
CPU_DEVICE_INLINE void yield_if_zero(T value) {
    if constexpr (IsInteger<T>::value) {
#ifdef CPU_DEVICE_CHECKED  // where nothing is inlined, nothing is known to be constant
        if (value == 0) cpu_device_yield();
#else
        if (__builtin_constant_p(value == 0) && value == 0) cpu_device_yield();
#endif
    }
}

}  // namespace cpu_device

namespace cpu_device {

template <class T, class... Types>
struct IsOneOf {
    static constexpr bool value = false;
};
template <class T, class... Rest>
struct IsOneOf<T, T, Rest...> {
    static constexpr bool value = true;
};
template <class T, class First, class... Rest>
struct IsOneOf<T, First, Rest...> : IsOneOf<T, Rest...> {};

// The types for which CUDA has each function. The 16-bit types are declared in their own headers.
template <class T>
struct IsNarrow {
    static constexpr bool value = false;
};
template <class T>
using if_addable = typename EnableIf<
    IsOneOf<T, int, unsigned, unsigned long long, float, double>::value || IsNarrow<T>::value, T>::type;
template <class T>
using if_integer = typename EnableIf<IsOneOf<T, int, unsigned, unsigned long long>::value, T>::type;
template <class T>
using if_ordered = typename EnableIf<IsOneOf<T, int, unsigned, long long, unsigned long long>::value, T>::type;
template <class T>
using if_exchangeable = typename EnableIf<IsOneOf<T, int, unsigned, unsigned long long, float>::value, T>::type;
template <class T>
using if_comparable =
    typename EnableIf<IsOneOf<T, int, unsigned, unsigned long long, unsigned short>::value, T>::type;
template <class T>
using if_subtractable = typename EnableIf<IsOneOf<T, int, unsigned>::value, T>::type;
template <class T>
using if_counter = typename EnableIf<IsOneOf<T, unsigned>::value, T>::type;

}  // namespace cpu_device

// Each function as it is, and with the scopes that have no meaning here.
#define CPU_DEVICE_ATOMIC(name, condition, expression, after)                                         \
    template <class T>                                                                                \
    CPU_DEVICE_INLINE cpu_device::condition<T> name(T* address, cpu_device::same_t<T> value) {        \
        const T result = cpu_device::read_modify_write(address, [=](T old) -> T { return expression; }); \
        after;                                                                                        \
        return result;                                                                                \
    }                                                                                                 \
    template <class T>                                                                                \
    CPU_DEVICE_INLINE cpu_device::condition<T> name##_block(T* address, cpu_device::same_t<T> value) { \
        return name(address, value);                                                                  \
    }                                                                                                 \
    template <class T>                                                                                \
    CPU_DEVICE_INLINE cpu_device::condition<T> name##_system(T* address, cpu_device::same_t<T> value) { \
        return name(address, value);                                                                  \
    }

// These three are what spin loops are made of: atomicAdd(p, 0), atomicOr(p, 0), atomicExch(lock, 1).
CPU_DEVICE_ATOMIC(atomicAdd, if_addable, old + value, cpu_device::yield_if_zero(value))
CPU_DEVICE_ATOMIC(atomicOr, if_integer, old | value, cpu_device::yield_if_zero(value))
CPU_DEVICE_ATOMIC(atomicExch, if_exchangeable, (void(old), value), cpu_device::yield_if_unchanged<T>(result, value))
CPU_DEVICE_ATOMIC(atomicSub, if_subtractable, old - value, )
CPU_DEVICE_ATOMIC(atomicMin, if_ordered, old < value ? old : value, )
CPU_DEVICE_ATOMIC(atomicMax, if_ordered, old > value ? old : value, )
CPU_DEVICE_ATOMIC(atomicAnd, if_integer, old & value, )
CPU_DEVICE_ATOMIC(atomicXor, if_integer, old ^ value, )
CPU_DEVICE_ATOMIC(atomicInc, if_counter, old >= value ? 0 : old + 1, )
CPU_DEVICE_ATOMIC(atomicDec, if_counter, old == 0 || old > value ? value : old - 1, )

// Element by element, as the hardware does it.
CPU_DEVICE_INLINE float2 atomicAdd(float2* address, float2 value) {
    return make_float2(atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y));
}
CPU_DEVICE_INLINE float4 atomicAdd(float4* address, float4 value) {
    return make_float4(atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
                       atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w));
}

template <class T>
CPU_DEVICE_INLINE cpu_device::if_comparable<T> atomicCAS(T* address, cpu_device::same_t<T> compare,
                                                         cpu_device::same_t<T> value) {
    const T old =
        cpu_device::read_modify_write(address, [=](T before) -> T { return before == compare ? value : before; });
    if (old != compare) cpu_device_yield();
    return old;
}
template <class T>
CPU_DEVICE_INLINE cpu_device::if_comparable<T> atomicCAS_block(T* address, cpu_device::same_t<T> compare,
                                                               cpu_device::same_t<T> value) {
    return atomicCAS(address, compare, value);
}
template <class T>
CPU_DEVICE_INLINE cpu_device::if_comparable<T> atomicCAS_system(T* address, cpu_device::same_t<T> compare,
                                                                cpu_device::same_t<T> value) {
    return atomicCAS(address, compare, value);
}
