// CUDA C++'s keywords and built-in variables.
#pragma once

#include "abi.h"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
// LLMKERNEL_CPU_DEVICE tells a candidate that it runs here; __CUDA_ARCH__ comes from the command line.
#define LLMKERNEL_CPU_DEVICE 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __block_size__(...)
#ifdef CPU_DEVICE_CHECKED
#define CPU_DEVICE_INLINE inline
#else
#define CPU_DEVICE_INLINE inline __attribute__((always_inline))
#endif
#define __forceinline__ CPU_DEVICE_INLINE
#define __noinline__ __attribute__((noinline))
#define __inline_hint__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
// A block is one OS thread: what its CUDA threads share is thread-local. `extern __shared__` is rewritten
// before the compiler sees it (shared_memory.py).
#define __shared__ static thread_local
#ifdef CPU_DEVICE_CHECKED
// Checked mode gives each variable a place of its own, with memory around it that belongs to none (separate_shared.py).
// `holder` is a struct whose members are what was declared, and lends its types.
#define CPU_DEVICE_SHARED(holder, name)                                                                     \
    static char cpu_device_key_##name;                                                                      \
    decltype(holder::name)& name = *(decltype(holder::name)*)cpu_device_shared_variable(                    \
        &cpu_device_key_##name, #name, sizeof(holder::name), alignof(holder),                               \
        sizeof(typename cpu_device::ElementOf<decltype(holder::name)>::type));

namespace cpu_device {

template <class T>
struct ElementOf {
    using type = T;
};
template <class T, __SIZE_TYPE__ Count>
struct ElementOf<T[Count]> : ElementOf<T> {};

}  // namespace cpu_device
#endif

#if !defined(__clang__)
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#endif
#define __builtin_align__(n) __attribute__((aligned(n)))

// A default argument is evaluated where the call stands: the source line, at no cost when nothing goes wrong.
#define CPU_DEVICE_LINE unsigned line = cpu_device::place(__builtin_LINE(), __builtin_FILE())

#define threadIdx (cpu_device_thread->index)
#define blockIdx (cpu_device_block.index)
#define blockDim (cpu_device_block.block_dim)
#define gridDim (cpu_device_block.grid_dim)
constexpr int warpSize = 32;

extern "C" int printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
extern "C" [[noreturn]] void __assert_fail(const char* condition, const char* file, unsigned line,
                                           const char* function) noexcept;
#define assert(condition) \
    ((condition) ? (void)0 : __assert_fail(#condition, "", __LINE__, ""))
#define __trap() cpu_device_trap("__trap() was called", __LINE__)
#define __brkpt() cpu_device_trap("__brkpt() was called", __LINE__)

extern "C" void* malloc(__SIZE_TYPE__ bytes) noexcept __asm__("cpu_device_malloc");
extern "C" void free(void* address) noexcept __asm__("cpu_device_free");
extern "C" void* memcpy(void* to, const void* from, __SIZE_TYPE__ bytes) noexcept;
extern "C" void* memmove(void* to, const void* from, __SIZE_TYPE__ bytes) noexcept;
extern "C" void* memset(void* to, int value, __SIZE_TYPE__ bytes) noexcept;
extern "C" int memcmp(const void* a, const void* b, __SIZE_TYPE__ bytes) noexcept;
inline void* operator new(__SIZE_TYPE__, void* at) noexcept { return at; }
inline void* operator new[](__SIZE_TYPE__, void* at) noexcept { return at; }
