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

bool reserve_stacks(char* at, unsigned workers, unsigned threads) {
    const unsigned long bytes = workers * (unsigned long)stacks_per_worker * stack_bytes;
    void* got = mmap(at, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != at) return false;
    stacks = at;
    for (unsigned worker = 0; worker < workers; worker++)
        for (unsigned number = 0; number <= threads; number++) {
            char* guard = at + (worker * (unsigned long)stacks_per_worker + number) * stack_bytes;
            if (mprotect(guard, page_bytes, PROT_NONE)) return false;
        }
    return true;
}

void* new_stack(unsigned worker, unsigned number, void (*function)()) {
    char* end = stacks + (worker * (unsigned long)stacks_per_worker + number + 1) * stack_bytes;
    // Stacks that all begin at the same offset of a page would fight for the same cache sets.
    end -= 64 + (number * 192) % 3840;
    void** top = (void**)((uintptr_t)end & ~15ul);
    *--top = nullptr;  // where `function` would return to; also keeps the ABI's alignment at its entry
    *--top = (void*)function;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    return top;
}

}  // namespace cpu_device
