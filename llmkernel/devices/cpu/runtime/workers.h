// Spreads the blocks of a launch over OS threads.
#pragma once

#include "scheduler.h"

namespace cpu_device {

// Start the OS threads that launches need; they wait until `run_launch`.
bool start_workers(unsigned count);

// Run every block of `launch` and return when all have ended. Fills shared memory with a pattern first when
// `pattern_seed` is not 0.
void run_launch(const Launch& launch, u64 pattern_seed);

// Of the launch that runs now: take a block's number, or false when none is left.
bool take_block(u64* number);
u64 blocks_done();

// In checked mode one thread runs at a time; this is where it lets another one on.
void let_others_run();

// The part of the module's thread-local memory that the calling thread has.
struct StaticShared {
    char* begin;
    unsigned long bytes;
};
StaticShared find_static_shared_memory(void* (*anchor)());

// Report a write behind the calling worker's dynamic shared memory.
void check_shared_overrun();

// A function of the module that touches its thread-local memory, where static shared memory lives.
void set_static_shared_anchor(void* (*anchor)());

}  // namespace cpu_device
