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

// Report a write behind the calling worker's dynamic shared memory.
void check_shared_overrun();

// A function of the module that touches its thread-local memory, where static shared memory lives.
void set_static_shared_anchor(void* (*anchor)());

}  // namespace cpu_device
