// One load or store, held against what is remembered of the memory that it touches.
#pragma once

#include "../report.h"
#include "clock.h"
#include "shadow.h"

namespace cpu_device {

struct Access {
    u64 address;
    u32 bytes;
    u32 kind;
    u32 line;
    u32 rank;
    BlockClock* clock;
};

// A store that races with another one, where both may store the same value: known after the store.
struct PendingStore {
    u64 contested;  // of the first 64 bytes that are stored: those that race; 0 where nothing waits
    u64 address;
    u8 before[64];
    Report report;
};

void report_misaligned(const Access& access, const Region& region);
void report_out_of_bounds(const Access& access, const Region& region);
// Report a read of what nobody wrote; remember what is written.
void check_initialised(const Access& access, Region& region);
void check_races(const Access& access, Region& region, PendingStore& pending);
void settle_store(PendingStore& pending);

// The line of the candidate from which the function with this stack frame was called.
u32 line_of_caller(const void* frame);

// Called by the compiler's hooks.
void check_access(u64 address, u64 bytes, u32 kind, const void* frame);
void check_fence(bool is_device_wide);
// An atomic or volatile access carries what fences have released.
void check_synchronising(u64 address, u32 kind);

}  // namespace cpu_device
