"""System-call filters: what a worker may not ask, whatever it runs.

The calls that a CUDA context makes are the driver's business and change with it, so a worker's filter names what is
forbidden; the cpu device's runner, whose calls are all ours, names what is allowed (`runtime/sandbox.cpp`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable

from llmkernel.sandbox.calls import AUDIT_ARCHITECTURES, call_numbers

# linux/filter.h: load a word of `struct seccomp_data`, compare, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
# Calls of the x32 interface are those of x86-64 with this bit, and would be told apart by nobody else.
_X32_BIT = 0x40000000
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2

_AF_UNIX = 1
_CLONE_THREAD = 0x10000
# New namespaces of every kind, but for time's, whose bit is part of the signal that `clone` is given.
_CLONE_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_FREQUENT = "read write futex ioctl mmap munmap poll"
_OTHER_PROCESSES = """
    ptrace process_vm_readv process_vm_writev kcmp pidfd_open pidfd_getfd pidfd_send_signal process_madvise
    rt_sigqueueinfo rt_tgsigqueueinfo
"""
_SYSTEM = """
    mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    open_by_handle_at swapon swapoff reboot acct quotactl quotactl_fd syslog settimeofday clock_settime clock_adjtime
    adjtimex sethostname setdomainname init_module finit_module delete_module kexec_load kexec_file_load iopl ioperm
    add_key request_key keyctl bpf perf_event_open
"""
# Names that outlive the process or are shared with others.
_SHARED_OBJECTS = """
    shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
"""
# Landlock does not look at these: a mode, an owner or a date of any file could be changed.
_METADATA = """
    chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat setxattr lsetxattr
    fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr
"""
# A second way in: requests in shared memory that no filter sees, and page faults that hold the kernel up.
_UNFILTERED = "io_uring_setup io_uring_enter io_uring_register userfaultfd"


class Filter:
    """A filter in the making: rules are asked in their order, and what none of them names is allowed.

    Parameters
    ----------
    machine : str
        As `platform.machine` names it.
    """

    def __init__(self, machine: str = "") -> None:
        self._machine = machine or platform.machine()
        self._numbers = call_numbers(self._machine)
        self._code: list[tuple[int, int, int, int]] = []
        self._load(_MACHINE_AT)
        self._add(_EQUAL, AUDIT_ARCHITECTURES[self._machine], 1, 0)
        self._add(_RETURN, _KILL_PROCESS)
        self._load(_NUMBER_AT)
        if self._machine == "x86_64":
            self._add(_AT_LEAST, _X32_BIT, 0, 1)
            self._refuse(errno.ENOSYS)

    def allow(self, names: str) -> None:
        """Allow calls whatever they are passed, ahead of the rules that follow."""
        for number in self._known(names):
            self._add(_EQUAL, number, 0, 1)
            self._add(_RETURN, _ALLOW)

    def refuse(self, names: str, code: int = errno.EPERM) -> None:
        """Let calls fail with an error number."""
        for number in self._known(names):
            self._add(_EQUAL, number, 0, 1)
            self._refuse(code)

    def refuse_unless(self, name: str, argument: int, values: Iterable[int], code: int = errno.EPERM) -> None:
        """Let a call fail unless the lower half of an argument is one of `values`."""
        wanted = list(values)
        for number in self._known(name):
            self._add(_EQUAL, number, 0, len(wanted) + 3)
            self._load(_ARGUMENTS_AT + 8 * argument)
            for i, value in enumerate(wanted):
                self._add(_EQUAL, value & 0xFFFFFFFF, len(wanted) - i, 0)
            self._refuse(code)
            self._add(_RETURN, _ALLOW)

    def refuse_where(self, name: str, argument: int, bits: int, code: int = errno.EPERM) -> None:
        """Let a call fail where an argument has any of these bits, in either half where `bits` is all ones."""
        for number in self._known(name):
            self._add(_EQUAL, number, 0, 6)
            self._load(_ARGUMENTS_AT + 8 * argument)
            self._add(_ANY_BIT, bits & 0xFFFFFFFF, 2, 0)
            self._load(_ARGUMENTS_AT + 8 * argument + 4)
            self._add(_ANY_BIT, bits >> 32, 0, 1)
            self._refuse(code)
            self._load(_NUMBER_AT)

    def refuse_without(self, name: str, argument: int, bits: int, code: int = errno.EPERM) -> None:
        """Let a call fail where the lower half of an argument has none of these bits."""
        for number in self._known(name):
            self._add(_EQUAL, number, 0, 4)
            self._load(_ARGUMENTS_AT + 8 * argument)
            self._add(_ANY_BIT, bits, 1, 0)
            self._refuse(code)
            self._load(_NUMBER_AT)

    def refuse_value(self, name: str, argument: int, value: int, code: int = errno.EPERM) -> None:
        """Let a call fail where the lower half of an argument is `value`."""
        for number in self._known(name):
            self._add(_EQUAL, number, 0, 4)
            self._load(_ARGUMENTS_AT + 8 * argument)
            self._add(_EQUAL, value, 0, 1)
            self._refuse(code)
            self._load(_NUMBER_AT)

    def program(self) -> bytes:
        """Return the filter as an array of `struct sock_filter`."""
        whole = [*self._code, (_RETURN, 0, 0, _ALLOW)]
        return b"".join(struct.pack("<HBBI", *instruction) for instruction in whole)

    def install(self) -> None:
        """Put every thread of the process under the filter, for good.

        Raises
        ------
        OSError
            The system has no such filters, or a thread could not be brought under it.
        """
        program = self.program()
        held = ctypes.create_string_buffer(program, len(program))
        described = struct.pack("@H6xQ", len(program) // 8, ctypes.addressof(held))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")
        number = _SECCOMP[self._machine]
        if libc.syscall(number, _SET_MODE_FILTER, _ALL_THREADS, ctypes.c_char_p(described)) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def _known(self, names: str) -> list[int]:
        return [self._numbers[name] for name in names.split() if name in self._numbers]

    def _load(self, offset: int) -> None:
        self._add(_LOAD, offset)

    def _refuse(self, code: int) -> None:
        self._add(_RETURN, _ERRNO | code)

    def _add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append((code, if_true, if_false, value))


def is_available() -> bool:
    """Whether this system takes filters, and this package has the numbers of its calls."""
    if platform.system() != "Linux" or platform.machine() not in _SECCOMP:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    # Without a filter: EFAULT where filters exist, EINVAL where they do not.
    libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT


def worker_filter(*, starts_programs: bool, machine: str = "") -> Filter:
    """Return the filter of an evaluation worker.

    Parameters
    ----------
    starts_programs : bool
        The worker itself starts compilers and runners, which keep its filter: it may end them, change modes
        and dates of files, and begin sessions. It has no sockets. One that starts none has local sockets, without
        a peer: the CUDA driver opens one.
    """
    made = Filter(machine)
    made.refuse_value("ioctl", 1, _TIOCSTI)
    made.refuse_value("ioctl", 1, _TIOCLINUX)
    made.allow(_FREQUENT)
    for names in (_OTHER_PROCESSES, _SYSTEM, _SHARED_OBJECTS):
        made.refuse(names)
    made.refuse(_UNFILTERED, errno.ENOSYS)
    made.refuse_unless("prlimit64", 0, (0, os.getpid()))
    made.refuse_value("kill", 0, 0xFFFFFFFF)
    # Its flags lie in memory, where no filter can look; the C library then falls back to `clone`.
    made.refuse("clone3", errno.ENOSYS)
    made.refuse_where("clone", 0, _CLONE_NAMESPACES)
    made.refuse("connect sendmsg sendmmsg", errno.EACCES)
    made.refuse_where("sendto", 4, (1 << 64) - 1, errno.EACCES)
    if starts_programs:
        made.refuse("socket", errno.EACCES)
        return made
    made.refuse_unless("socket", 0, (_AF_UNIX,), errno.EACCES)
    made.refuse(_METADATA)
    # No way out of the process group, which is ended as a whole.
    made.refuse("setsid setpgid tkill")
    made.refuse_unless("kill", 0, (os.getpid(),))
    made.refuse_unless("tgkill", 0, (os.getpid(),))
    return made


def no_programs_filter(machine: str = "") -> Filter:
    """Return the filter of a worker that has all it needs: from here on it starts threads, but no process."""
    made = Filter(machine)
    made.allow(_FREQUENT)
    made.refuse("fork vfork execve execveat")
    made.refuse("clone3", errno.ENOSYS)
    made.refuse_without("clone", 0, _CLONE_THREAD)
    return made
