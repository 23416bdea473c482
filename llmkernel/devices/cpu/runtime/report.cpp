#include "report.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "checked/checker.h"
#include "workers.h"

namespace cpu_device {

static int report_file = -1;
static u32 current_execution, current_launch;
static int is_failing;

constexpr unsigned alternate_stack_bytes = 64 * 1024;
static char alternate_stacks[max_workers][alternate_stack_bytes];

void set_report_file(int file) { report_file = file; }

void set_position(u32 execution, u32 launch) {
    current_execution = execution;
    current_launch = launch;
}

void send(Report report) {
    report.execution = current_execution;
    report.launch = current_launch;
    report.heap_exhausted = is_heap_exhausted();
    // A pipe takes a record of this size whole, so that reports of two threads never mix.
    if (write(report_file, &report, sizeof report) != (long)sizeof report) _exit(3);
}

void set_thread(Report& report) {
    if (!cpu_device_thread) return;
    const uint3 block = cpu_device_block.index, thread = cpu_device_thread->index;
    report.has_thread = 1;
    report.block[0] = block.x, report.block[1] = block.y, report.block[2] = block.z;
    report.thread[0] = thread.x, report.thread[1] = thread.y, report.thread[2] = thread.z;
}

void fail(Report report) {
    // The first fault is the one that counts: a second OS thread waits here until the process is gone.
    while (__atomic_exchange_n(&is_failing, 1, __ATOMIC_SEQ_CST)) sched_yield();
    check_launch_end();
    set_thread(report);
    report.blocks_done = blocks_done();
    send(report);
    flush_printed();
    _exit(1);
}

static void on_signal(int number, siginfo_t* info, void* context) {
    Report report = {};
    report.type = ReportType::signal;
    report.signal = number;
    report.code = info->si_code;
    report.address = number == SIGSYS ? (u64)info->si_syscall : (u64)info->si_addr;
    report.pc = (u64)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
    fail(report);
}

void install_signal_handlers() {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM, SIGXCPU, SIGSYS};
    for (int number : signals) sigaction(number, &action, nullptr);
}

void use_alternate_stack(unsigned worker) {
    stack_t stack = {};
    stack.ss_sp = alternate_stacks[worker];
    stack.ss_size = alternate_stack_bytes;
    sigaltstack(&stack, nullptr);
}

}  // namespace cpu_device

extern "C" void cpu_device_trap(const char* what, unsigned line) {
    cpu_device::Report report = {};
    report.type = cpu_device::ReportType::trap;
    report.line = line;
    strncpy(report.text, what, sizeof report.text - 1);
    cpu_device::fail(report);
}

// What -fsanitize=alignment calls: the layout of its data is that of the compilers' own runtime libraries.
namespace {

struct MisalignedAccess {
    const char* file;
    cpu_device::u32 line, column;
    const struct {
        cpu_device::u16 kind, size;
        char name[1];
    } * type;
    unsigned char alignment_log2;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void __ubsan_handle_type_mismatch_v1_abort(
    const MisalignedAccess* access, unsigned long address) {
    cpu_device::check_misaligned(address, 1u << access->alignment_log2, __builtin_frame_address(0));
    cpu_device::Report report = {};
    report.type = cpu_device::ReportType::misaligned;
    report.line = cpu_device::place(access->line, access->file);
    report.code = 1 << access->alignment_log2;
    report.address = address;
    report.pc = (cpu_device::u64)__builtin_return_address(0) - 1;
    strncpy(report.text, access->type->name, sizeof report.text - 1);
    cpu_device::fail(report);
}

extern "C" void cpu_device_misaligned(const void* address, unsigned long alignment) {
    cpu_device::check_misaligned((cpu_device::u64)address, (cpu_device::u32)alignment, __builtin_frame_address(0));
    cpu_device::Report report = {};
    report.type = cpu_device::ReportType::misaligned;
    report.line = cpu_device::header_line;
    report.code = (int)alignment;
    report.address = (cpu_device::u64)address;
    report.pc = (cpu_device::u64)__builtin_return_address(0) - 1;
    cpu_device::fail(report);
}
