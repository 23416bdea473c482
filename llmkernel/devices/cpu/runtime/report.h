// What the runner tells its parent: records of one fixed layout, safe to write from a signal handler.
#pragma once

#include "../include/cpu_device/abi.h"

namespace cpu_device {

enum class ReportType : u32 {
    loaded = 1,             // address: where the module lies
    done = 2,               // one execution ended well
    launch_failed = 3,      // text says why
    out_of_memory = 4,      // text says what did not fit
    signal = 5,             // signal, code, address, pc
    trap = 6,               // text, line
    deadlock = 7,           // lines and counts of the waiting threads
    divergent_barrier = 8,  // two lines
    divergent_collective = 9,
    lane_outside_mask = 10,
    shared_overrun = 11,  // address: offset behind the dynamic shared memory
    misaligned = 12,      // address, code: the alignment that it should have, text: the type; line
    // Findings of checked mode, after which the run goes on.
    out_of_bounds = 13,
    uninitialised_read = 14,
    data_race = 15,  // with the other access
    misaligned_element = 17,  // code: the alignment; the run ends
    barrier_without_lanes = 16,  // line; finished: lanes of the warp that have returned, at_barrier: those that wait
};

// Read by process.py with the same layout.
struct Report {
    ReportType type;
    u32 execution;
    u32 launch;
    int signal;
    int code;
    u32 has_thread;
    u32 block[3];
    u32 thread[3];
    u32 line;
    u32 other_line;
    u32 at_barrier;
    u32 at_collective;
    u32 finished;
    u32 heap_exhausted;
    // Of a finding: how and how widely memory is accessed, and what lies there (checked/shadow.h).
    u32 kind, other_kind;
    u32 bytes, element_bytes, space;
    u32 other_block[3];
    u32 other_thread[3];
    u32 reserved;
    u64 size;
    u64 address;
    u64 pc;
    u64 blocks_done;
    double elapsed_ms;
    char text[128];
};
static_assert(sizeof(Report) == 288, "process.py reads this layout");

// Where reports go and which execution and launch they are about.
void set_report_file(int file);
void set_position(u32 execution, u32 launch);

void send(Report report);

// Fill in the calling thread's place in the grid.
void set_thread(Report& report);

// Send the report, with the calling thread's place in the grid, hand over what was printed, and end the process.
[[noreturn]] void fail(Report report);

// Turn the signals that a kernel can raise into reports. Called once, before anything untrusted is loaded.
void install_signal_handlers();

// Give the calling OS thread a stack on which a handler can run when its own is exhausted.
void use_alternate_stack(unsigned worker);

// Hand over the text that kernels printed.
void flush_printed();

// True once a kernel's malloc was refused.
bool is_heap_exhausted();

}  // namespace cpu_device
