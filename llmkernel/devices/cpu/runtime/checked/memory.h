// Which variable an address belongs to.
#pragma once

#include "../job.h"
#include "shadow.h"

namespace cpu_device {

// The buffers of the plan, in their slots, as the job describes them.
void read_buffers(JobReader& job, u64 count);

// The module's own variables, and where its thread-local ones lie in the calling thread.
void find_module(void* address_inside, void* (*anchor)());

// The calling OS thread begins a launch, or a block: shared memory is nobody's yet.
void begin_shared(u32 dynamic_bytes);
void forget_shared();

// The region that an access of `bytes` bytes touches or just misses; null for a thread's own memory and anything else.
Region* find_region(u64 address, u64 bytes);

}  // namespace cpu_device
