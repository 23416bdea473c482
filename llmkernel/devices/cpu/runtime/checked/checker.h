// Checked mode: what the scheduler tells it, and what instrumented code asks of it.
#pragma once

#include "../job.h"
#include "../scheduler.h"

namespace cpu_device {

// Which line of the source each byte of the module's code belongs to; 0 for headers.
void read_line_table(JobReader& job);
// Where the module lies, and a function of it that gives an address in its thread-local memory.
void begin_checking(void* module_base, void* (*anchor)());
// Whether the module that runs is instrumented.
bool is_checking();

// What happens in a launch, in the order in which it happens.
void check_launch(const Launch& launch);
void check_worker(const Launch& launch);
void check_block(u64 block);
void check_barrier();
// A warp is at the barrier of `line` with only a part of its lanes, the others have returned.
void check_partial_warp(u32 line, u32 waiting, u32 finished);
void check_warp_barrier(u32 warp, u32 lanes);
void check_launch_end();
// A vector is about to be accessed at an address that it cannot have; `frame` is that of the function which was told so.
void check_misaligned(u64 address, u32 alignment, const void* frame);
// The calling thread stops for now: what it has just stored is in memory.
void check_pause();

}  // namespace cpu_device
