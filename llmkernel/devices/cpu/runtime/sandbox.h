// What the process may still ask of the operating system. A kernel is native code that nobody has vouched for.
#pragma once

namespace cpu_device {

struct ResourceLimits {
    unsigned long address_bytes;
    unsigned long data_bytes;
    unsigned long cpu_seconds;
};

// Die with the parent, never gain privileges, and stay within `limits`.
bool limit_process(const ResourceLimits& limits);

// While the module is loaded: reading files is allowed, as the dynamic loader must.
// Afterwards: memory, waiting, writing to the two pipes and ending the process; nothing else.
enum class Stage { loading, running };

// Restrict every thread of the process, for good. Forbidden calls raise SIGSYS.
bool enter(Stage stage, int report_file);

}  // namespace cpu_device
