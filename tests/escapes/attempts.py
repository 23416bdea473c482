"""What native code in a worker's process might try, tried from inside the sandbox.

`python attempts.py KIND SCRATCH VICTIM [gpu]` enters the sandbox of a worker that runs candidates in its own process
(``gpu``) or starts compilers and runners (``programs``), makes every attempt, and prints what came of each as JSON: the
name of the error, or ``done`` with what was gained. VICTIM is a folder of the user's with a file ``secret`` in it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206


class Attempts:
    """Every attempt is a method; its name is the attempt's."""

    def __init__(self, scratch: Path, victim: Path, address: tuple[str, int], local: str) -> None:
        self.scratch, self.victim, self.address, self.local = scratch, victim, address, local
        self.parent = os.getppid()

    # ---- files ----

    def reads_a_secret(self) -> Any:
        return (self.victim / "secret").read_text()

    def reads_a_secret_through_a_link(self) -> Any:
        link = self.scratch / "link"
        (self.scratch / "links").mkdir(exist_ok=True)
        try:
            link.symlink_to(self.victim / "secret")
        except OSError:
            os.link(self.victim / "secret", link)
        return link.read_text()

    def lists_a_home(self) -> Any:
        return [p.name for p in self.victim.iterdir()]

    def reads_the_accounts(self) -> Any:
        return Path("/etc/passwd").read_text()[:20]

    def writes_beside_a_secret(self) -> Any:
        return (self.victim / "planted").write_text("x")

    def overwrites_a_secret(self) -> Any:
        return (self.victim / "secret").write_text("x")

    def truncates_a_secret(self) -> Any:
        return os.truncate(self.victim / "secret", 0)

    def removes_a_secret(self) -> Any:
        return (self.victim / "secret").unlink()

    def moves_a_secret_into_the_scratch(self) -> Any:
        return (self.victim / "secret").rename(self.scratch / "taken")

    def makes_a_folder(self) -> Any:
        return (self.victim / "folder").mkdir()

    def plants_a_link(self) -> Any:
        return (self.victim / "planted").symlink_to("/")

    def writes_into_the_temporary_directory(self) -> Any:
        path = Path("/tmp") / f"llmkernel-escape-{os.getpid()}"
        path.write_text("x")
        return str(path)

    def makes_shared_memory(self) -> Any:
        rt = ctypes.CDLL("librt.so.1", use_errno=True)
        name = f"/llmkernel-escape-{os.getpid()}".encode()
        return _checked(rt.shm_open(name, os.O_CREAT | os.O_RDWR, 0o600))

    def makes_system_v_shared_memory(self) -> Any:
        return _checked(LIBC.shmget(0x5EED, 4096, 0o1666))

    # ---- network ----

    def connects(self) -> Any:
        return socket.create_connection(self.address, timeout=2).getpeername()

    def sends_a_datagram(self) -> Any:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            return s.sendto(b"x", self.address)

    def listens(self) -> Any:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            return s.getsockname()

    def opens_a_netlink_socket(self) -> Any:
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).fileno()

    def connects_to_a_local_service(self) -> Any:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.local)
            return s.getpeername()

    def sends_to_a_local_service(self) -> Any:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            return s.sendto(b"x", self.local)

    def asks_the_kernel_through_a_ring(self) -> Any:
        return _checked(LIBC.syscall(425, 8, ctypes.create_string_buffer(256)))  # io_uring_setup

    # ---- other processes ----

    def ends_its_parent(self) -> Any:
        return os.kill(self.parent, signal.SIGTERM)

    def probes_its_parent(self) -> Any:
        return os.kill(self.parent, 0)

    def ends_everything(self) -> Any:
        return os.kill(-1, signal.SIGTERM)

    def signals_through_a_descriptor(self) -> Any:
        return signal.pidfd_send_signal(os.pidfd_open(self.parent), signal.SIGTERM)

    def attaches_to_its_parent(self) -> Any:
        return _checked(LIBC.ptrace(PTRACE_ATTACH, self.parent, 0, 0))

    def seizes_its_parent(self) -> Any:
        return _checked(LIBC.ptrace(PTRACE_SEIZE, self.parent, 0, 0))

    def reads_its_parents_memory(self) -> Any:
        return Path(f"/proc/{self.parent}/mem").open("rb").fileno()

    def copies_its_parents_memory(self) -> Any:
        here = ctypes.create_string_buffer(8)
        local = (ctypes.c_void_p * 2)(ctypes.addressof(here), 8)
        return _checked(LIBC.process_vm_readv(self.parent, local, 1, local, 1, 0))

    def reads_its_parents_environment(self) -> Any:
        return Path(f"/proc/{self.parent}/environ").read_bytes()[:20].hex()

    def looks_at_its_parents_descriptors(self) -> Any:
        return [p.name for p in Path(f"/proc/{self.parent}/fd").iterdir()]

    def takes_its_parents_descriptor(self) -> Any:
        return _checked(LIBC.syscall(438, os.pidfd_open(self.parent), 0, 0))

    def limits_its_parent(self) -> Any:
        import resource

        return resource.prlimit(self.parent, resource.RLIMIT_NOFILE, (64, 64))

    def writes_its_own_memory_as_a_file(self) -> Any:
        return Path("/proc/self/mem").open("r+b").fileno()

    # ---- the system ----

    def mounts(self) -> Any:
        return _checked(LIBC.mount(b"none", str(self.scratch).encode(), b"tmpfs", 0, None))

    def makes_namespaces(self) -> Any:
        return _checked(LIBC.unshare(0x10020000))

    def loads_a_program_into_the_kernel(self) -> Any:
        return _checked(LIBC.syscall(321 if X86 else 280, 5, ctypes.create_string_buffer(128), 128))

    def handles_page_faults(self) -> Any:
        return _checked(LIBC.syscall(323 if X86 else 282, 1))

    def asks_for_the_kernels_keys(self) -> Any:
        return _checked(LIBC.syscall(250 if X86 else 219, 0, -3, 0))

    def lifts_its_limits(self) -> Any:
        import resource

        return resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def writes_a_file_without_end(self) -> Any:
        with (self.scratch / "large").open("wb") as file:
            return os.posix_fallocate(file.fileno(), 0, 1 << 45)

    def takes_all_memory(self) -> Any:
        # Every page would be the process's own: counted when it is asked for, long before it is touched.
        return len(mmap.mmap(-1, 1 << 46, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


class NativeAttempts(Attempts):
    """What is left to a worker that starts no programs."""

    def starts_a_program(self) -> Any:
        return subprocess.run(["/bin/sh", "-c", "echo out"], capture_output=True, check=True).stdout.decode()

    def forks(self) -> Any:
        child = os.fork()
        if child == 0:
            os._exit(0)
        return os.waitpid(child, 0)

    def becomes_another_program(self) -> Any:
        os.execv("/bin/true", ["true"])

    def leaves_its_session(self) -> Any:
        return os.setsid()

    def leaves_its_group(self) -> Any:
        return os.setpgid(0, 0)

    def changes_a_mode(self) -> Any:
        return (self.victim / "secret").chmod(0o777)

    def changes_an_owner(self) -> Any:
        return os.chown(self.victim / "secret", os.getuid(), os.getgid())

    def changes_a_date(self) -> Any:
        return os.utime(self.victim / "secret", (0, 0))

    def tags_a_file(self) -> Any:
        return os.setxattr(self.victim / "secret", b"user.seen", b"1")


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def make_all(attempts: Attempts) -> dict[str, str]:
    """Make every attempt; what ends the process ends all of them."""
    found = {}
    for name in dir(attempts):
        attempt: Callable[[], Any] = getattr(attempts, name)
        if name.startswith("_") or not callable(attempt):
            continue
        try:
            found[name] = f"done: {attempt()}"
        except OSError as error:
            found[name] = errno.errorcode.get(error.errno or 0, str(error))
        except (MemoryError, ValueError) as error:
            found[name] = type(error).__name__
    return found


def main() -> None:
    kind, scratch, victim, port, local = (
        sys.argv[1],
        Path(sys.argv[2]),
        Path(sys.argv[3]),
        int(sys.argv[4]),
        sys.argv[5],
    )
    from llmkernel.sandbox.enter import enter, start_no_more_programs
    from llmkernel.sandbox.policy import worker_policy

    policy = worker_policy(scratch, starts_programs=kind == "programs")
    confinement = enter(policy)
    if "context" in sys.argv[6:]:
        from llmkernel.devices.cuda.device import CudaDevice

        CudaDevice().warm_up()
    start_no_more_programs(policy, confinement)
    made = (Attempts if kind == "programs" else NativeAttempts)(scratch, victim, ("127.0.0.1", port), local)
    print(json.dumps({"sandbox": confinement.to_dict(), "attempts": make_all(made)}))


if __name__ == "__main__":
    main()
