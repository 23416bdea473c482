"""Native code in the cpu device's runner, past every check of source and module: what it asks of the system ends it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cpu import process
from tests.unit.cpu_device.support import run

from .traces import snapshot

# mov eax, edi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; syscall; ret
THROUGH_SYSCALL = bytes.fromhex("89f8 4889f7 4889d6 4889ca 4d89c2 0f05 c3")
# The same for the 32-bit interface: mov eax, edi; int 0x80; ret
THROUGH_INTERRUPT = bytes.fromhex("89f8 cd80 c3")

CALL = """
typedef long (*Call)(long, long, long, long, long);
__attribute__((section(".text"))) extern const unsigned char code[] = CODE;
// The argument `at` is the text; then the process is ended as if all were well.
__global__ void f(const char* text, long long number, long long a, long long b, long long c, long long d, int at) {
  long v[] = {a, b, c, d};
  if (at >= 0) v[at] = (long)text;
  ((Call)code)(number, v[0], v[1], v[2], v[3]);
  ((Call)code)(231, 0, 0, 0, 0);
}
"""


def call(number, *arguments, text="", code=THROUGH_SYSCALL):
    """Make one system call from a kernel; the argument `text` is the address of that text."""
    source = CALL.replace("CODE", "{" + ", ".join(str(b) for b in code) + "}")
    at = next((i for i, a in enumerate(arguments) if a is None), -1)
    values = [np.int64(a or 0) for a in (*arguments, 0, 0, 0, 0)[:4]]
    data = np.frombuffer(text.encode() + bytes(8), np.uint8).copy()
    return run(source, "f", 1, 1, data, np.int64(number), *values, np.int32(at))


HERE = -100  # AT_FDCWD
# Number and arguments; None stands for the path.
CALLS = {
    "open to read": (2, None, os.O_RDONLY),
    "openat to read": (257, HERE, None, os.O_RDONLY),
    "openat to write": (257, HERE, None, os.O_WRONLY),
    "openat to create": (257, HERE, None, os.O_CREAT | os.O_RDWR, 0o666),
    "openat2": (437, HERE, None),
    "creat": (85, None, 0o666),
    "truncate": (76, None, 0),
    "unlink": (87, None),
    "unlinkat": (263, HERE, None, 0),
    "rename": (82, None, 0),
    "link": (86, None, 0),
    "symlink": (88, None, 0),
    "mkdir": (83, None, 0o777),
    "chmod": (90, None, 0o777),
    "chown": (92, None, 1, 1),
    "utime": (132, None, 0),
    "setxattr": (188, None, 0),
    "chdir": (80, None),
    "execve": (59, None, 0, 0),
    "execveat": (322, HERE, None, 0, 0),
    "mount": (165, None, None),
    "memfd_create": (319, None, 0),
    "inotify_init": (253,),
    "fork": (57,),
    "vfork": (58,),
    "clone": (56, 17),
    "clone of a thread": (56, 0x10F00),
    "clone3": (435, None, 64),
    "kill the parent": (62, os.getpid(), 9),
    "kill everything": (62, -1, 9),
    "kill the group": (62, 0, 9),
    "tgkill": (234, os.getpid(), os.getpid(), 9),
    "pidfd_open": (434, os.getpid(), 0),
    "pidfd_send_signal": (424, 3, 9),
    "rt_sigqueueinfo": (129, os.getpid(), 9),
    "ptrace the parent": (101, 16, os.getpid()),
    "read the parent's memory": (310, os.getpid(), None, 1),
    "write the parent's memory": (311, os.getpid(), None, 1),
    "limit the parent": (302, os.getpid(), 7, None),
    "raise its own limits": (160, 4, None),
    "socket": (41, 2, 1, 0),
    "socketpair": (53, 1, 1, 0),
    "connect": (42, 3, None, 16),
    "sendto": (44, 3, None, 8),
    "io_uring_setup": (425, 8, None),
    "userfaultfd": (323, 0),
    "bpf": (321, 0, None),
    "shmget": (29, 0x5EED, 4096, 0o1666),
    "mq_open": (240, None, os.O_CREAT),
    "unshare": (272, 0x10000000),
    "setns": (308, 3, 0),
    "another filter": (317, 1, 0, None),
    "prctl": (157, 22, 2, None),
    "another signal handler": (13, 31, None),
    "another signal mask": (14, 0, None),
    "another signal stack": (131, None),
    "dup2": (33, 1, 4),
    "fcntl": (72, 1, 0),
    "ioctl": (16, 1, 0x5412, None),
    "read a descriptor": (0, 0, None, 1),
    "sendfile": (40, 1, 0),
    "splice": (275, 0, 0),
    "personality": (135, 0x40000),
    "arch_prctl": (158, 0x1002),
    "modify_ldt": (154, 1, None),
    "setsid": (112,),
    "process_madvise": (440, 3, None),
    "keyctl": (250, 0),
    "perf_event_open": (298, None),
    "finit_module": (313, 3, None),
    "reboot": (169, 0),
    "the x32 interface": (0x40000000 + 57,),
}
PATHS = ("{home}/secret", "{home}/planted", "/proc/self/mem", "/dev/shm/llmkernel-escape")


@pytest.mark.parametrize("name", CALLS)
def test_a_system_call_ends_the_run(name, tmp_path):
    (tmp_path / "secret").write_text("planted")
    before = snapshot(tmp_path)
    number, *arguments = CALLS[name]
    for path in PATHS if None in arguments and name.startswith("open") else PATHS[:1]:
        fault = call(number, *arguments, text=path.replace("{home}", str(tmp_path))).fault
        assert fault.kind == "sandbox", path
        assert fault.details["system_call"] == number
    assert snapshot(tmp_path) == before
    assert not Path("/dev/shm/llmkernel-escape").exists()


def test_the_32_bit_interface_ends_the_run():
    assert call(2, code=THROUGH_INTERRUPT).fault.kind == "sandbox"


def test_forged_reports_decide_nothing():
    """Where a record of success is written to every descriptor, results are still what lies in memory."""
    layout = process._LAYOUT
    record = layout.pack(process.ReportType.DONE, *layout.unpack(bytes(layout.size))[1:])
    source = CALL.replace("CODE", "{" + ", ".join(str(b) for b in THROUGH_SYSCALL) + "}").replace(
        "const char* text", "const char* text, float* y"
    )
    believed = 0
    for descriptor in range(64):
        data, y = np.frombuffer(record, np.uint8).copy(), np.full(4, 7, np.float32)
        values = [np.int64(v) for v in (1, descriptor, 0, len(record), 0)]
        done = run(source, "f", 1, 1, data, y, *values, np.int32(1))
        fault = done.execution.fault
        believed += fault is None
        assert fault is None or fault.kind in ("sandbox", "worker_died")
        np.testing.assert_array_equal(done.arrays[1], y)
    # One is the runner's own: a kernel that writes there has ended well, for all anyone knows, and has written nothing.
    assert believed == 1


def test_what_it_prints_has_an_end():
    source = CALL.replace("CODE", "{" + ", ".join(str(b) for b in THROUGH_SYSCALL) + "}").replace(
        "((Call)code)(number, v[0]", "while (true) ((Call)code)(number, v[0]"
    )
    data = np.full(1 << 16, ord("x"), np.uint8)
    values = [np.int64(v) for v in (1, 1, 0, 1 << 16, 0)]
    options = ExecutionOptions(timeout_seconds=0.2)
    done = run(source, "f", 1, 1, data, *values, np.int32(1), options=options)
    assert done.fault.kind == "timeout"
    assert len(done.execution.printed) <= process.MAX_PRINTED


def test_taking_the_alarm_away_gains_a_moment(monkeypatch):
    monkeypatch.setattr(process, "_GRACE_SECONDS", 0.2)
    source = CALL.replace("CODE", "{" + ", ".join(str(b) for b in THROUGH_SYSCALL) + "}").replace(
        "((Call)code)(231, 0, 0, 0, 0);", "while (true) ((volatile char*)v)[0] = 1;"
    )
    values = [np.int64(v) for v in (38, 0, 0, 0, 0)]
    options = ExecutionOptions(timeout_seconds=0.2)
    done = run(source, "f", 1, 1, np.zeros(64, np.uint8), *values, np.int32(1), options=options)
    assert done.fault.kind == "timeout"


@pytest.mark.parametrize(
    "body",
    [
        "while (true) { volatile char* p = (volatile char*)malloc(1 << 20); p[0] = 1; }",
        "while (true) { volatile char* p = (volatile char*)malloc(1 << 26); for (int i = 0; i < 64; i++) p[i << 20] = 1; }",
    ],
)
def test_allocating_without_end_is_out_of_memory(body):
    done = run(f"__global__ void f(float* x) {{ {body} }}", "f", 1, 1, np.zeros(1, np.float32))
    assert done.fault.kind == "out_of_memory"


def test_a_static_array_beyond_the_limits_is_out_of_memory():
    source = "__device__ char big[1l << 40]; __global__ void f(int* x) { x[0] = big[x[0]]++; }"
    assert run(source, "f", 1, 1, np.zeros(1, np.int32)).fault.kind == "out_of_memory"


REPLACED = """
    void* memcpy(void* a, const void* b, unsigned long n)
    long write(int file, const void* data, unsigned long n)
    int prctl(int option, ...)
    long syscall(long number, ...)
    int setrlimit(int what, const void* value)
    int setitimer(int which, const void* value, void* old)
    int sigaction(int number, const void* action, void* old)
    int clock_gettime(int which, void* time)
    void _exit(int code)
"""


@pytest.mark.parametrize("is_hidden", [True, False])
def test_functions_of_the_same_names_replace_nothing(is_hidden):
    """The module's own `write`, `prctl` and others are its own affair: the runner, and its sandbox, call the host's."""
    visible = "" if is_hidden else '__attribute__((visibility("default"))) '
    replaced = "\n".join(
        f'extern "C" {visible}{d} {{ __builtin_trap(); }}' for d in REPLACED.strip().splitlines()
    )
    source = replaced + "\n__global__ void f(float* x) { x[threadIdx.x] += 1; }"
    done = run(source, "f", 1, 32, np.zeros(32, np.float32))
    assert done.execution.fault is None
    np.testing.assert_array_equal(done.arrays[0], np.ones(32, np.float32))
    attack = source.replace("x[threadIdx.x] += 1;", "((void (*)())0)();")
    assert run(attack, "f", 1, 1, np.zeros(1, np.float32)).fault.kind == "illegal_address"
