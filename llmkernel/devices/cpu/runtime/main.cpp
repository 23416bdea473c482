// The runner: one process that loads one compiled candidate and executes its launches over shared buffers.
//
// Order matters. Everything that needs the operating system comes first; then the sandbox's first stage, the
// module, the second stage, and only then the kernels.
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "checked/checker.h"
#include "checked/memory.h"
#include "job.h"
#include "report.h"
#include "workers.h"

using namespace cpu_device;

namespace {

// One launch of the plan; pointers are relative to the buffers of one execution.
struct PlannedLaunch {
    const char* symbol;
    dim3 grid, block;
    u32 shared_bytes;
    u32 argument_count;
    struct Argument {
        bool is_pointer;
        u64 buffer, offset;  // of a pointer
        char* value;         // of a scalar
        u64 bytes;
    }* arguments;
    const Entry* entry;
};

void* allocate(unsigned long count, unsigned long size) {
    void* memory = calloc(count ? count : 1, size);
    if (!memory) _exit(2);
    return memory;
}

[[noreturn]] void fail_with(ReportType type, const char* format, const char* detail = "", u64 a = 0, u64 b = 0) {
    Report report = {};
    report.type = type;
    snprintf(report.text, sizeof report.text, format, detail, a, b);
    fail(report);
}

dim3 read_dim3(JobReader& job) {
    const u32 x = (u32)job.number(), y = (u32)job.number(), z = (u32)job.number();
    return dim3(x, y, z);
}

void read_launch(JobReader& job, PlannedLaunch& launch) {
    launch.symbol = job.bytes();
    launch.grid = read_dim3(job);
    launch.block = read_dim3(job);
    launch.shared_bytes = (u32)job.number();
    launch.argument_count = (u32)job.number();
    launch.arguments = (PlannedLaunch::Argument*)allocate(launch.argument_count, sizeof *launch.arguments);
    for (u32 i = 0; i < launch.argument_count; i++) {
        PlannedLaunch::Argument& argument = launch.arguments[i];
        argument.is_pointer = job.number();
        if (argument.is_pointer) {
            argument.buffer = job.number();
            argument.offset = job.number();
            argument.bytes = sizeof(void*);
        } else {
            argument.bytes = job.number();
            argument.value = job.bytes();
        }
    }
}

void map_buffers(JobReader& job, int buffer_input, u64* addresses, u64 count) {
    for (u64 i = 0; i < count; i++) {
        const Mapping mapping = {job.number(), job.number(), job.number()};
        addresses[i] = job.number();
        void* got = mmap((void*)mapping.address, mapping.bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, buffer_input, (long)mapping.file_offset);
        if (got != (void*)mapping.address)
            fail_with(ReportType::out_of_memory, "%sa buffer of %llu bytes cannot be mapped", "", mapping.bytes);
    }
}

// The kernel that was compiled must take what the plan passes: count, pointers and sizes.
void resolve(void* module, PlannedLaunch& launch) {
    const Entry* entry = launch.entry = (const Entry*)dlsym(module, launch.symbol);
    if (!entry) fail_with(ReportType::launch_failed, "the module has no entry %s", launch.symbol);
    if (entry->parameter_count != launch.argument_count)
        fail_with(ReportType::launch_failed, "%sthe kernel takes %llu arguments and the plan passes %llu", "",
                  entry->parameter_count, launch.argument_count);
    for (u32 i = 0; i < launch.argument_count; i++) {
        const Parameter& parameter = entry->parameters[i];
        const PlannedLaunch::Argument& argument = launch.arguments[i];
        if (parameter.bytes != argument.bytes || (bool)parameter.is_pointer != argument.is_pointer)
            fail_with(ReportType::launch_failed,
                      "%sparameter %llu of the kernel takes %llu bytes; the plan passes something else", "", i + 1ull,
                      parameter.bytes);
    }
}

void run_planned(const PlannedLaunch& planned, const u64* addresses, Order order, u64 seed, u64 pattern_seed) {
    void* values[256];
    u64 pointers[256];
    for (u32 i = 0; i < planned.argument_count; i++) {
        const PlannedLaunch::Argument& argument = planned.arguments[i];
        pointers[i] = argument.is_pointer ? addresses[argument.buffer] + argument.offset : 0;
        values[i] = argument.is_pointer ? (void*)&pointers[i] : argument.value;
    }
    const Launch launch = {planned.entry->call, values, planned.grid, planned.block, planned.shared_bytes,
                           (u64)planned.grid.x * planned.grid.y * planned.grid.z, order, seed};
    run_launch(launch, pattern_seed);
}

void start_timer(u64 microseconds) {
    struct itimerval timer = {};
    timer.it_value.tv_sec = (long)(microseconds / 1000000);
    timer.it_value.tv_usec = (long)(microseconds % 1000000);
    setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

// Arguments: the numbers of the files with the job and the buffers, and of the pipe for reports.
int main(int count, char** values) {
    if (count != 4) return 2;
    const int job_input = atoi(values[1]), buffer_input = atoi(values[2]), report_output = atoi(values[3]);
    set_report_file(report_output);
    JobReader job;
    if (!job.open(job_input)) return 2;
    const char* library = job.bytes();
    const u64 timeout_microseconds = job.number();
    const Order order = (Order)job.number();
    const u64 seed = job.number(), pattern_seed = job.number();
    const unsigned workers = (unsigned)job.number();
    char* stacks = (char*)job.number();
    const ResourceLimits limits = {job.number(), job.number(), job.number()};
    const u64 execution_count = job.number(), buffer_count = job.number(), launch_count = job.number();
    if (job.is_exhausted() || !workers || workers > max_workers) return 2;

    PlannedLaunch* launches = (PlannedLaunch*)allocate(launch_count, sizeof *launches);
    for (u64 i = 0; i < launch_count; i++) read_launch(job, launches[i]);
    u64* addresses = (u64*)allocate(execution_count * buffer_count, sizeof *addresses);

    if (!limit_process(limits)) fail_with(ReportType::launch_failed, "%sthe process cannot be limited");
    start_timer(timeout_microseconds);
    mallopt(M_ARENA_MAX, 1);
    install_signal_handlers();
    map_buffers(job, buffer_input, addresses, execution_count * buffer_count);
    const bool is_checked = job.number();
    if (is_checked) {
        read_line_table(job);
        read_buffers(job, buffer_count);
    }
    if (job.is_exhausted()) return 2;
    if (!reserve_stacks(stacks, workers) || !start_workers(workers))
        fail_with(ReportType::out_of_memory, "%sthere is no room for the threads' stacks");
    close(job_input);
    close(buffer_input);

    if (!enter(Stage::loading, report_output)) fail_with(ReportType::launch_failed, "%sseccomp is not available");
    void* module = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!module) fail_with(ReportType::launch_failed, "the module cannot be loaded: %s", dlerror());
    for (u64 i = 0; i < launch_count; i++) resolve(module, launches[i]);
    set_static_shared_anchor((void* (*)())dlsym(module, "cpu_device_static_shared"));
    Dl_info info = {};
    dladdr(dlsym(module, "cpu_device_static_shared"), &info);
    if (is_checked) begin_checking(info.dli_fbase, (void* (*)())dlsym(module, "cpu_device_static_shared"));
    if (!enter(Stage::running, report_output)) fail_with(ReportType::launch_failed, "%sseccomp is not available");

    Report loaded = {};
    loaded.type = ReportType::loaded;
    loaded.address = (u64)info.dli_fbase;
    send(loaded);
    for (u64 execution = 0; execution < execution_count; execution++) {
        start_timer(timeout_microseconds);
        const u64 begin = cpu_device_nanoseconds();
        for (u64 i = 0; i < launch_count; i++) {
            set_position((u32)execution, (u32)i);
            run_planned(launches[i], addresses + execution * buffer_count, order, seed, pattern_seed);
        }
        Report done = {};
        done.type = ReportType::done;
        done.elapsed_ms = (cpu_device_nanoseconds() - begin) * 1e-6;
        set_position((u32)execution, 0);
        send(done);
    }
    flush_printed();
    _exit(0);
}
