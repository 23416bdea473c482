"""A candidate is native code that nobody vouches for: what it tries must fail, and leave no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmkernel.devices.cpu import build as build_module
from llmkernel.errors import CompileError, UnsupportedFeatureError

from .support import DEVICE, run

HOST_CALLS = {
    "system": 'extern "C" int system(const char*); __global__ void k(int* x) { x[0] = system("touch {path}"); }',
    "constructor": """
        extern "C" int system(const char*);
        __attribute__((constructor)) void early() {{ system("touch {path}"); }}
        __global__ void k(int* x) {{ x[0] = 1; }}""",
    "global object": """
        extern "C" int system(const char*);
        struct Early {{ int v; Early() : v(system("touch {path}")) {{}} }};
        __device__ Early early;
        __global__ void k(int* x) {{ x[0] = early.v; }}""",
    "fork": 'extern "C" int fork(); __global__ void k(int* x) { x[0] = fork(); }',
    "open": 'extern "C" int open(const char*, int, int); __global__ void k(int* x) { x[0] = open("{path}", 65, 420); }',
    "syscall": 'extern "C" long syscall(long, ...); __global__ void k(int* x) { x[0] = syscall(57); }',
    "dlsym": 'extern "C" void* dlsym(void*, const char*); __global__ void k(int* x) { x[0] = dlsym(0, "fork") != 0; }',
}


def attack(source: str, path: Path) -> str:
    return source.replace("{path}", str(path)).replace("{{", "{").replace("}}", "}")


@pytest.mark.parametrize("name", HOST_CALLS)
def test_host_calls_do_not_compile(name: str, tmp_path: Path) -> None:
    path = tmp_path / "escaped"
    with pytest.raises(CompileError):
        run(attack(HOST_CALLS[name], path), "k", 1, 1, np.zeros(1, np.int32))
    assert not path.exists()


@pytest.mark.parametrize("name", HOST_CALLS)
def test_the_sandbox_holds_where_the_check_of_the_module_is_gone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "escaped"
    monkeypatch.setattr(build_module, "check_module", lambda elf, source, **_: None)
    # Another source than above, so that nothing comes from the cache or stays in it for others.
    done = run(attack(HOST_CALLS[name], path) + f"// {path}", "k", 1, 1, np.zeros(1, np.int32))
    assert done.execution.fault is not None or name == "dlsym"
    if done.execution.fault is not None:
        assert done.execution.fault.kind in ("sandbox", "launch_failed", "worker_died")
    assert not path.exists()


def machine_code(number: int, first: int = 0) -> str:
    """A kernel that runs the bytes of `mov eax, number; mov edi, first; syscall; ret`, which no compiler sees as code."""
    code = b"\xb8" + number.to_bytes(4, "little") + b"\xbf" + first.to_bytes(4, "little") + b"\x0f\x05\xc3"
    values = ", ".join(str(b) for b in code)
    return f"""
    __attribute__((section(".text"))) extern const unsigned char code[] = {{{values}}};
    __global__ void k(int* x) {{ ((void (*)())code)(); x[0] = 1; }}"""


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("fork", 57),
        ("execve", 59),
        ("socket", 41),
        ("kill", 62),
        ("open", 2),
        ("ptrace", 101),
        ("unlink", 87),
    ],
)
def test_machine_code_makes_no_system_call(name: str, number: int) -> None:
    fault = run(machine_code(number), "k", 1, 1, np.zeros(1, np.int32)).fault
    assert fault.kind == "sandbox", name
    assert fault.details["system_call"] == number


def test_ending_the_process_is_no_success() -> None:
    done = run(machine_code(231, 0), "k", 1, 1, np.zeros(1, np.int32))
    assert done.fault.kind == "worker_died"


def test_writing_code_into_data_does_not_run() -> None:
    source = """
    __global__ void k(unsigned char* x) { ((void (*)())x)(); }"""
    fault = run(source, "k", 1, 1, np.full(64, 0xC3, np.uint8)).fault
    assert fault.kind == "illegal_address"


@pytest.mark.parametrize(
    "directive",
    [
        '#include "/etc/passwd"', "#include </etc/passwd>", "%:include </etc/passwd>", '#include "../../../../etc/passwd"',
        "#inc\\\nlude </etc/passwd>", "#define F </etc/passwd>\n#include F", "#embed </etc/passwd>",
        "#include <sys/socket.h>",
        '#import "/etc/passwd"', "#/**/include </etc/passwd>", "#if __has_include(</etc/passwd>)\n#endif",
        '_Pragma("GCC dependency \\"/etc/passwd\\"")', "??=include </etc/passwd>", '#pragma GCC dependency "/etc/passwd"',
    ],
)  # fmt: skip
def test_no_file_of_the_host_is_read(directive: str) -> None:
    source = f"// first\n{directive}\n__global__ void k(int* x) {{ x[0] = 1; }}"
    with pytest.raises(CompileError) as caught:
        DEVICE.compile(source, ["k"])
    assert "root:" not in caught.value.log
    assert all(d.line in (0, 2, 3) for d in caught.value.diagnostics)


@pytest.mark.parametrize(
    "text", ['asm(".incbin \\"/etc/passwd\\"");', '__asm__("nop");', 'asm volatile("syscall");']
)
def test_assembly_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        DEVICE.compile(f"__global__ void k(int* x) {{ x[0] = 1; }}\n{text}", ["k"])
    assert caught.value.line == 2
