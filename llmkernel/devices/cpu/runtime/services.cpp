// Functions of the C library that device code may call: printf, assert, malloc. The executable's definitions
// come first in symbol lookup, so a kernel's calls end here and not in libc.
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

namespace cpu_device {

constexpr unsigned long print_bytes = 64 * 1024;
constexpr unsigned long heap_bytes = 1ul << 30;
static char printed[print_bytes];
static unsigned long printed_length;
static unsigned long heap_used;
static int heap_exhausted;

void flush_printed() {
    unsigned long length = __atomic_load_n(&printed_length, __ATOMIC_SEQ_CST);
    if (length > print_bytes) length = print_bytes;
    for (unsigned long at = 0; at < length;) {
        const long written = write(STDOUT_FILENO, printed + at, length - at);
        if (written <= 0) break;
        at += written;
    }
    __atomic_store_n(&printed_length, 0, __ATOMIC_SEQ_CST);
}

bool is_heap_exhausted() { return heap_exhausted; }

}  // namespace cpu_device

extern "C" {

__attribute__((visibility("default"))) int printf(const char* format, ...) {
    using namespace cpu_device;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0) return -1;
    const unsigned long kept = (unsigned long)length < sizeof line ? length : sizeof line - 1;
    // Take a place first, so that lines of different blocks never overlap; what does not fit is dropped.
    const unsigned long at = __atomic_fetch_add(&printed_length, kept, __ATOMIC_SEQ_CST);
    if (at < print_bytes) memcpy(printed + at, line, at + kept <= print_bytes ? kept : print_bytes - at);
    return length;
}

__attribute__((visibility("default"), noreturn)) void __assert_fail(const char* condition, const char*, unsigned line,
                                                                   const char*) noexcept {
    char text[128];
    snprintf(text, sizeof text, "assertion failed: %s", condition);
    cpu_device_trap(text, line);
}

void* cpu_device_malloc(unsigned long bytes) {
    using namespace cpu_device;
    void* address = nullptr;
    if (bytes <= heap_bytes && __atomic_load_n(&heap_used, __ATOMIC_RELAXED) + bytes <= heap_bytes)
        address = malloc(bytes);
    if (address)
        __atomic_fetch_add(&heap_used, malloc_usable_size(address), __ATOMIC_RELAXED);
    else
        heap_exhausted = 1;
    return address;
}

void cpu_device_free(void* address) {
    if (!address) return;
    __atomic_fetch_sub(&cpu_device::heap_used, malloc_usable_size(address), __ATOMIC_RELAXED);
    free(address);
}

cpu_device::u64 cpu_device_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
}
