// Asynchronous copies to shared memory, done at once: what a kernel may observe after waiting is the same.
#pragma once

#include "cpu_device/language.h"

CPU_DEVICE_INLINE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    __builtin_memcpy(to, from, bytes - zeros);
    __builtin_memset((char*)to + bytes - zeros, 0, zeros);
}
CPU_DEVICE_INLINE void __pipeline_commit() {}
CPU_DEVICE_INLINE void __pipeline_wait_prior(size_t) {}
