// What a module that was compiled with -fsanitize=thread calls ahead of every load and store.
#include <string.h>

#include "access.h"

using namespace cpu_device;

#define HOOK extern "C" __attribute__((visibility("default")))
#define FRAME __builtin_frame_address(0)

HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}
// Tables of virtual functions, which belong to a thread's own objects.
HOOK void __tsan_vptr_read(void**) {}
HOOK void __tsan_vptr_update(void**, void*) {}

#define PLAIN(name, bytes, kind) \
    HOOK void name(void* address) { check_access((u64)address, bytes, kind, FRAME); }
#define PLAIN_OF_SIZE(bytes)                                        \
    PLAIN(__tsan_read##bytes, bytes, 0)                             \
    PLAIN(__tsan_write##bytes, bytes, is_write)                     \
    PLAIN(__tsan_unaligned_read##bytes, bytes, 0)                   \
    PLAIN(__tsan_unaligned_write##bytes, bytes, is_write)           \
    VOLATILE(__tsan_volatile_read##bytes, bytes, 0)                 \
    VOLATILE(__tsan_volatile_write##bytes, bytes, is_write)         \
    VOLATILE(__tsan_unaligned_volatile_read##bytes, bytes, 0)       \
    VOLATILE(__tsan_unaligned_volatile_write##bytes, bytes, is_write)

// A loop over a volatile load may wait for another thread: let that one run.
static void pass_on_after_many(u32 kind) {
    static __thread u32 count;
    if (!(kind & is_write) && ++count % 64 == 0) cpu_device_yield();
}

#define VOLATILE(name, bytes, kind)                                              \
    HOOK void name(void* address) {                                              \
        pass_on_after_many(kind);                                                \
        check_synchronising((u64)address, kind);                                 \
        check_access((u64)address, bytes, (kind) | is_volatile, FRAME);          \
    }

PLAIN_OF_SIZE(1)
PLAIN_OF_SIZE(2)
PLAIN_OF_SIZE(4)
PLAIN_OF_SIZE(8)
PLAIN_OF_SIZE(16)

HOOK void __tsan_read_range(void* address, unsigned long bytes) { check_access((u64)address, bytes, 0, FRAME); }
HOOK void __tsan_write_range(void* address, unsigned long bytes) {
    check_access((u64)address, bytes, is_write, FRAME);
}

// clang calls the first of each pair; for g++ the linker turns calls of the C library's function into the second.
#define COPY(name, function)                                               \
    HOOK void* name(void* to, const void* from, unsigned long bytes) {     \
        if (bytes) {                                                       \
            check_access((u64)from, bytes, 0, FRAME);                      \
            check_access((u64)to, bytes, is_write, FRAME);                 \
        }                                                                  \
        return function(to, from, bytes);                                  \
    }
COPY(__tsan_memcpy, memcpy)
COPY(__wrap_memcpy, memcpy)
COPY(__tsan_memmove, memmove)
COPY(__wrap_memmove, memmove)

#define FILL(name)                                                 \
    HOOK void* name(void* to, int value, unsigned long bytes) {    \
        if (bytes) check_access((u64)to, bytes, is_write, FRAME);  \
        return memset(to, value, bytes);                           \
    }
FILL(__tsan_memset)
FILL(__wrap_memset)

// ---- atomics: checked, then done ----

static void check_atomic(void* address, u32 bytes, u32 kind, const void* frame) {
    check_access((u64)address, bytes, kind | is_atomic, frame);
    check_synchronising((u64)address, kind);
}

#define ATOMIC(bits, type)                                                                                       \
    HOOK type __tsan_atomic##bits##_load(const volatile type* p, int) {                                          \
        check_atomic((void*)p, bits / 8, 0, FRAME);                                                              \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                             \
    }                                                                                                            \
    HOOK void __tsan_atomic##bits##_store(volatile type* p, type value, int) {                                   \
        check_atomic((void*)p, bits / 8, is_write, FRAME);                                                       \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                            \
    }                                                                                                            \
    HOOK type __tsan_atomic##bits##_exchange(volatile type* p, type value, int) {                                \
        check_atomic((void*)p, bits / 8, is_write, FRAME);                                                       \
        return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                                            \
    HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type value, int, int) { \
        check_atomic((void*)p, bits / 8, is_write, FRAME);                                                       \
        return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    }                                                                                                            \
    HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type value, int, int) { \
        check_atomic((void*)p, bits / 8, is_write, FRAME);                                                       \
        return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    }                                                                                                            \
    HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type value, int, int) { \
        check_atomic((void*)p, bits / 8, is_write, FRAME);                                                       \
        __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
        return expected;                                                                                         \
    }
ATOMIC(8, u8)
ATOMIC(16, u16)
ATOMIC(32, u32)
ATOMIC(64, u64)

// __threadfence is the strongest fence, __threadfence_block a weaker one (synchronization.h).
HOOK void __tsan_atomic_thread_fence(int order) { check_fence(order == __ATOMIC_SEQ_CST); }
HOOK void __tsan_atomic_signal_fence(int) {}
