#include "checker.h"

#include <string.h>

#include "access.h"
#include "clock.h"
#include "findings.h"
#include "memory.h"

namespace cpu_device {

static bool is_on;
static u64 code_begin, code_bytes;
static const u16* lines;

static __thread BlockClock* block_clock;
static __thread PendingStore pending;

bool is_checking() { return is_on; }

void read_line_table(JobReader& job) {
    code_begin = job.number();
    code_bytes = job.number();
    lines = (const u16*)job.bytes();
}

void begin_checking(void* module_base, void* (*anchor)()) {
    is_on = true;
    code_begin += (u64)module_base;
    find_module((void*)code_begin, anchor);
}

u32 line_of_caller(const void* frame) {
    // A call chain inside the headers ends in the candidate after a few steps.
    for (u32 depth = 0; frame && depth < 16; depth++) {
        const u64 at = ((const u64*)frame)[1] - 1 - code_begin;
        if (at < code_bytes && lines[at]) return lines[at];
        frame = *(const void* const*)frame;
    }
    return 0;
}

// ---- what the scheduler tells ----

void check_launch(const Launch& launch) {
    if (!is_on) return;
    begin_clock(launch.blocks);
    begin_findings(launch.grid, launch.block);
}

void check_worker(const Launch& launch) {
    if (!is_on) return;
    if (!block_clock) block_clock = (BlockClock*)reserve(sizeof(BlockClock));
    begin_shared(launch.shared_bytes);
}

void check_block(u64 block) {
    if (!is_on) return;
    block_clock->begin((u32)block);
    forget_shared();
}

void check_pause() {
    if (is_on) settle_store(pending);
}

void check_barrier() {
    if (is_on) block_clock->barrier();
}

void check_partial_warp(u32 line, u32 waiting, u32 finished) {
    if (!is_on) return;
    Report report = report_here(ReportType::barrier_without_lanes, line);
    report.at_barrier = waiting;
    report.finished = finished;
    report_finding(report);
}

void check_warp_barrier(u32 warp, u32 lanes) {
    if (is_on) block_clock->warp_barrier(warp, lanes);
}

void check_launch_end() {
    if (is_on) flush_findings();
}

// ---- what instrumented code asks ----

static bool is_on_fiber_stack(u64 address) {
    return address >= (u64)stack_area_begin() && address < (u64)stack_area_end();
}

void check_access(u64 address, u64 bytes, u32 kind, const void* frame) {
    settle_store(pending);
    if (is_on_fiber_stack(address) || !cpu_device_thread) return;
    Region* region = find_region(address, bytes);
    if (!region) return;
    const Access access = {address, (u32)bytes, kind, line_of_caller(frame), cpu_device_thread->rank, block_clock};
    if (!region->holds(address, bytes)) return report_out_of_bounds(access, *region);
    if (region->is_written) check_initialised(access, *region);
    check_races(access, *region, pending);
}

void check_misaligned(u64 address, u32 alignment, const void* frame) {
    if (!is_on || !cpu_device_thread) return;
    const Region* region = find_region(address, 1);
    if (!region) return;
    const Access access = {address, alignment, 0, line_of_caller(frame), cpu_device_thread->rank, block_clock};
    report_misaligned(access, *region);
}

void check_fence(bool is_device_wide) {
    settle_store(pending);
    block_clock->fence(cpu_device_thread->rank, is_device_wide);
}

void check_synchronising(u64 address, u32 kind) {
    if (is_on_fiber_stack(address)) return;
    const u32 rank = cpu_device_thread->rank;
    block_clock->acquire(address, rank);
    if (kind & is_write) block_clock->release(address, rank);
}

}  // namespace cpu_device
