// Atomic functions, in their plain, _block and _system spellings, for every type of a machine word's size.
#pragma once

#include "abi.h"
#include "language.h"
#include "math_functions.h"

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
        if (__builtin_constant_p(value == 0) && value == 0) cpu_device_yield();
    }
}

}  // namespace cpu_device

#define CPU_DEVICE_ATOMIC_SPELLINGS(name)                                                      \
    template <class T>                                                                         \
    CPU_DEVICE_INLINE T name##_block(T* address, cpu_device::same_t<T> value) {                \
        return name(address, value);                                                           \
    }                                                                                          \
    template <class T>                                                                         \
    CPU_DEVICE_INLINE T name##_system(T* address, cpu_device::same_t<T> value) {               \
        return name(address, value);                                                           \
    }
#define CPU_DEVICE_ATOMIC(name, expression)                                                    \
    template <class T>                                                                         \
    CPU_DEVICE_INLINE T name(T* address, cpu_device::same_t<T> value) {                        \
        return cpu_device::read_modify_write(address, [=](T old) -> T { return expression; }); \
    }                                                                                          \
    CPU_DEVICE_ATOMIC_SPELLINGS(name)

CPU_DEVICE_ATOMIC(atomicSub, old - value)
CPU_DEVICE_ATOMIC(atomicMin, old < value ? old : value)
CPU_DEVICE_ATOMIC(atomicMax, old > value ? old : value)
CPU_DEVICE_ATOMIC(atomicAnd, old & value)
CPU_DEVICE_ATOMIC(atomicXor, old ^ value)
CPU_DEVICE_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CPU_DEVICE_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)

// These three are what spin loops are made of: atomicAdd(p, 0), atomicOr(p, 0), atomicExch(lock, 1).
template <class T>
CPU_DEVICE_INLINE T atomicAdd(T* address, cpu_device::same_t<T> value) {
    const T old = cpu_device::read_modify_write(address, [=](T before) -> T { return before + value; });
    cpu_device::yield_if_zero(value);
    return old;
}
template <class T>
CPU_DEVICE_INLINE T atomicOr(T* address, cpu_device::same_t<T> value) {
    const T old = cpu_device::read_modify_write(address, [=](T before) -> T { return before | value; });
    cpu_device::yield_if_zero(value);
    return old;
}
template <class T>
CPU_DEVICE_INLINE T atomicExch(T* address, cpu_device::same_t<T> value) {
    const T old = cpu_device::read_modify_write(address, [=](T) -> T { return value; });
    cpu_device::yield_if_unchanged<T>(old, value);
    return old;
}
CPU_DEVICE_ATOMIC_SPELLINGS(atomicAdd)
CPU_DEVICE_ATOMIC_SPELLINGS(atomicOr)
CPU_DEVICE_ATOMIC_SPELLINGS(atomicExch)

template <class T>
CPU_DEVICE_INLINE T atomicCAS(T* address, cpu_device::same_t<T> compare, cpu_device::same_t<T> value) {
    const T old = cpu_device::read_modify_write(
        address, [=](T before) -> T { return __builtin_memcmp(&before, &compare, sizeof(T)) ? before : value; });
    if (__builtin_memcmp(&old, &compare, sizeof(T))) cpu_device_yield();
    return old;
}
template <class T>
CPU_DEVICE_INLINE T atomicCAS_block(T* address, cpu_device::same_t<T> compare, cpu_device::same_t<T> value) {
    return atomicCAS(address, compare, value);
}
template <class T>
CPU_DEVICE_INLINE T atomicCAS_system(T* address, cpu_device::same_t<T> compare, cpu_device::same_t<T> value) {
    return atomicCAS(address, compare, value);
}
