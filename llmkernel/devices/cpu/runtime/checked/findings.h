// What checked mode reports. Some of it is only known to be wrong, or to be right after all, a little later.
#pragma once

#include "../report.h"
#include "shadow.h"

namespace cpu_device {

// The blocks and threads of the launch, for coordinates.
void begin_findings(dim3 grid, dim3 block);

// A report about the calling thread, at `line`.
Report report_here(ReportType type, u32 line);

// Fill in who made an earlier access.
void set_other(Report& report, const Stamp& other);

// Send a finding, unless there was one of the same kind at the same lines.
void report_finding(const Report& report);

// A read of memory that nobody wrote: a thread that writes it later without a barrier in between explains it (a race).
void report_uninitialised(const Report& report);
void explain_uninitialised(u32 line);

// A plain read of what others change by atomics. It is right where an atomic of the same thread follows, which checks what
// was read: `old = *p; do … atomicCAS(p, …)`.
void report_read_beside_atomic(const Report& report, u32 reading_line);
void excuse_read(u32 reading_line);

// Send what is still waiting.
void flush_findings();

}  // namespace cpu_device
