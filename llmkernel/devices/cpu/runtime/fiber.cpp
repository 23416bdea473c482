#include "fiber.h"

#include <stdint.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the context switch is written for x86-64"
#endif

// The System V ABI keeps only these six registers across a call, so a switch is a call that returns elsewhere.
asm(R"(
.text
.globl cpu_device_switch
.type cpu_device_switch, @function
cpu_device_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cpu_device_switch, . - cpu_device_switch
)");

namespace cpu_device {

static char* stacks;
static unsigned long stacks_size;
// Of each worker: the stacks below this number have their guard page.
static unsigned guarded[max_workers];

bool reserve_stacks(char* at, unsigned workers) {
    const unsigned long bytes = workers * (unsigned long)stacks_per_worker * stack_bytes;
    stacks = at;
    stacks_size = bytes;
    return mmap(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == at;
}

const char* stack_area_begin() { return stacks; }
const char* stack_area_end() { return stacks + stacks_size; }

void* new_stack(unsigned worker, unsigned number, void (*function)()) {
    char* begin = stacks + (worker * (unsigned long)stacks_per_worker + number) * stack_bytes;
    // Most kernels need few stacks: a guard is made when a stack is used for the first time. Numbers are handed
    // out from 0 upwards.
    for (; guarded[worker] <= number; guarded[worker]++)
        mprotect(begin - (number - guarded[worker]) * stack_bytes, page_bytes, PROT_NONE);
    char* end = begin + stack_bytes;
    // Stacks that all begin at the same offset of a page would fight for the same cache sets.
    end -= 64 + (number * 192) % 3840;
    void** top = (void**)((uintptr_t)end & ~15ul);
    *--top = nullptr;  // where `function` would return to; also keeps the ABI's alignment at its entry
    *--top = (void*)function;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    return top;
}

}  // namespace cpu_device
