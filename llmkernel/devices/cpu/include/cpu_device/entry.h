// What the runner calls: a kernel behind an untyped argument list, with the sizes of its parameters.
#pragma once

#include "abi.h"

namespace cpu_device {

template <unsigned... I>
struct Indices {};
template <unsigned N, unsigned... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct MakeIndices<0, I...> {
    using type = Indices<I...>;
};

template <class T>
struct IsPointer {
    static constexpr unsigned value = 0;
};
template <class T>
struct IsPointer<T*> {
    static constexpr unsigned value = 1;
};

// The kernel among functions of its name: the one that returns nothing, where the others compute.
template <class... Arguments>
constexpr auto kernel(void (*function)(Arguments...)) {
    return function;
}

template <auto Kernel>
struct KernelEntry;

template <class... Arguments, void (*Kernel)(Arguments...)>
struct KernelEntry<Kernel> {
    template <unsigned... I>
    static CPU_DEVICE_INLINE void apply(void** arguments, Indices<I...>) {
        Kernel(*(Arguments*)arguments[I]...);
    }
    static void call(void** arguments) { apply(arguments, typename MakeIndices<sizeof...(Arguments)>::type{}); }
    static constexpr unsigned count = sizeof...(Arguments);
    // One element more, since an array must not be empty.
    static constexpr Parameter parameters[sizeof...(Arguments) + 1] = {
        Parameter{sizeof(Arguments), IsPointer<Arguments>::value}..., Parameter{0, 0}};
};

}  // namespace cpu_device

#ifdef __clang__
// Called where a whole vector is copied (devices/cpu/copy_alignment.py).
extern "C" __attribute__((used)) CPU_DEVICE_INLINE void cpu_device_require_alignment(const void* address,
                                                                                     unsigned long mask) {
    if (__builtin_expect(((unsigned long)address & mask) != 0, 0)) cpu_device_misaligned(address, mask + 1);
}
#endif

// Where the runner finds this thread's static shared memory.
#define CPU_DEVICE_STATIC_SHARED_ANCHOR                                                 \
    extern "C" __attribute__((visibility("default"))) void* cpu_device_static_shared() { \
        static __thread char anchor;                                                    \
        return &anchor;                                                                 \
    }

#define CPU_DEVICE_ENTRY(symbol, ...)                                                                  \
    extern "C" __attribute__((visibility("default"))) const cpu_device::Entry symbol;                  \
    const cpu_device::Entry symbol = {&cpu_device::KernelEntry<cpu_device::kernel(&__VA_ARGS__)>::call,                    \
                                      cpu_device::KernelEntry<cpu_device::kernel(&__VA_ARGS__)>::parameters,               \
                                      cpu_device::KernelEntry<cpu_device::kernel(&__VA_ARGS__)>::count};
