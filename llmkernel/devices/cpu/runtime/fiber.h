// Fibers: CUDA threads that share one OS thread and switch only where they wait for one another.
#pragma once

#include "../include/cpu_device/abi.h"

namespace cpu_device {

// Stacks lie side by side in one reservation, each above a page that nobody may touch.
constexpr unsigned long stack_bytes = 256 * 1024;
constexpr unsigned long page_bytes = 4096;
constexpr unsigned max_threads = 1024;
constexpr unsigned stacks_per_worker = max_threads + 1;

// As many blocks run at the same time as the device says it has multiprocessors, on every host, so that blocks
// that wait for one another behave the same everywhere.
constexpr unsigned max_workers = 8;

// Reserve the stacks of `workers` OS threads; false when there is no room.
bool reserve_stacks(char* at, unsigned workers);

// Where the stacks lie.
const char* stack_area_begin();
const char* stack_area_end();

// Stack pointer of a new fiber on the stack `number` of `worker`; it begins in `function`, which never returns.
void* new_stack(unsigned worker, unsigned number, void (*function)());

}  // namespace cpu_device

// Save the callee-saved registers and the stack pointer to `*from`, and continue where `to` was saved.
extern "C" void cpu_device_switch(void** from, void* to);
