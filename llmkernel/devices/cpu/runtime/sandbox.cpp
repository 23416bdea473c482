#include "sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace cpu_device {

static bool limit(int resource, unsigned long soft, unsigned long hard) {
    struct rlimit value = {soft, hard};
    return setrlimit(resource, &value) == 0;
}

bool limit_process(const ResourceLimits& limits) {
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_FSIZE, 0, 0) &&
           limit(RLIMIT_NOFILE, 16, 16) && limit(RLIMIT_AS, limits.address_bytes, limits.address_bytes) &&
           limit(RLIMIT_DATA, limits.data_bytes, limits.data_bytes) &&
           limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 2);
}

// A filter is a program over the system call's number and arguments; it is built here rule by rule.
class Filter {
  public:
    Filter() {
        load(offsetof(struct seccomp_data, arch));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
        refuse();
        load(offsetof(struct seccomp_data, nr));
    }

    void allow(unsigned call) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
        add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }

    // Allow where the argument is one of the two values.
    void allow_with(unsigned call, unsigned argument, unsigned one, unsigned other) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5));
        load(offsetof(struct seccomp_data, args) + argument * 8);
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1));
        add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        refuse();
    }

    // Allow where the argument has none of these bits.
    void allow_without(unsigned call, unsigned argument, unsigned bits) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
        load(offsetof(struct seccomp_data, args) + argument * 8);
        add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
        add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        refuse();
    }

    bool install() {
        refuse();
        struct sock_fprog program = {length_, code_};
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
    }

  private:
    void add(struct sock_filter instruction) { code_[length_++] = instruction; }
    void load(unsigned offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
    // A trap, not a kill: the handler names the call, and the call itself is not made.
    void refuse() { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)); }

    struct sock_filter code_[128];
    unsigned short length_ = 0;
};

bool enter(Stage stage, int report_file) {
    Filter filter;
    const unsigned always[] = {SYS_futex,      SYS_exit,   SYS_exit_group, SYS_rt_sigreturn,  SYS_mmap,
                               SYS_munmap,     SYS_mremap, SYS_madvise,    SYS_brk,           SYS_mprotect,
                               SYS_sched_yield, SYS_gettid, SYS_getpid,    SYS_clock_gettime, SYS_clock_nanosleep};
    for (unsigned call : always) filter.allow(call);
    filter.allow_with(SYS_write, 0, STDOUT_FILENO, report_file);
    // Each execution sets its alarm anew. A kernel that takes it away is ended by the parent.
    filter.allow_with(SYS_setitimer, 0, ITIMER_REAL, ITIMER_REAL);
    if (stage == Stage::loading) {
        const unsigned loader[] = {SYS_read,  SYS_pread64,    SYS_close,    SYS_fstat,
                                   SYS_lseek, SYS_newfstatat, SYS_readlink, SYS_getcwd, SYS_seccomp};
        for (unsigned call : loader) filter.allow(call);
        filter.allow_without(SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
    }
    return filter.install();
}

}  // namespace cpu_device
