"""The host compilers that can build for this device, and how each is called.

Ours is a small demand: compile one freestanding translation unit and link a shared object. `zig` from the
`ziglang` wheel is enough for it, so an installation from a package registry needs no system compiler.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from llmkernel.devices.cpu.includes import HEADERS, PACKAGE_HEADERS
from llmkernel.errors import ConfigurationError, DeviceUnavailableError

_CHOICE = "LLMKERNEL_CXX"
_RUNTIME = Path(__file__).parent / "runtime"

# No fused multiply-add, no reassociation: results do not depend on the host's vector units.
# No library headers: a candidate sees the same names with every compiler.
_KERNEL_FLAGS = (
    "-std=c++17",
    "-O2",
    "-g1",
    "-gdwarf-4",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-fno-builtin-printf",
    "-fno-stack-protector",
    "-nostdinc",
    "-nostdinc++",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
    "-Wno-unused-value",
    "-Wno-psabi",
)
_CLANG_FLAGS = (
    "-fno-caret-diagnostics",
    "-fno-color-diagnostics",
    "-ferror-limit=20",
    "-Wno-unknown-attributes",
    "-Wno-ignored-attributes",
    "-Wno-unknown-warning-option",
    "-Wno-pass-failed",
)
_GCC_FLAGS = ("-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-fmax-errors=20")
# The C library's functions by the names under which the runner checks them; and without the initialiser that the
# compiler adds, which would only say that there is a runtime.
_CHECKED_LINK = ("--wrap=memcpy", "--wrap=memmove", "--wrap=memset", "-T")
# x86 reads a vector from any address, a GPU does not.
_ALIGNMENT_CHECKS = ("-fsanitize=alignment", "-fno-sanitize-recover=alignment")
_RUNNER_FLAGS = (
    "-std=c++17",
    "-O2",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    # The hooks of checked mode look at their callers' frames.
    "-fno-optimize-sibling-calls",
)
# Checked mode: every load and store calls the runner first. Nothing is inlined, so that each function's code belongs
# to one file, and the chain of frames leads from a header to the line of the candidate.
_CHECKED_FLAGS = (
    "-O1",
    "-DCPU_DEVICE_CHECKED",
    "-fno-inline",
    "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
)
_CHECKED_GCC = (
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
    "-U__SANITIZE_THREAD__",
)
_CHECKED_CLANG = (
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-Xclang",
    "-fsanitize=thread",
    "-mllvm",
    "-tsan-distinguish-volatile=1",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
)


@dataclass(frozen=True)
class Toolchain:
    """One compiler.

    Attributes
    ----------
    kind : str
        ``g++``, ``clang++`` or ``zig``.
    path : str
        The executable.
    version : str
        What it says of itself, one line.
    """

    kind: str
    path: str
    version: str

    def kernel_flags(self, cuda_arch: int, *, is_checked: bool = False) -> tuple[str, ...]:
        """Return the options that decide what a candidate compiles to.

        Parameters
        ----------
        cuda_arch : int
            Value of ``__CUDA_ARCH__``.
        is_checked : bool
            Instrumented for checked mode.
        """
        flags = self._fast_flags(cuda_arch)
        if not is_checked:
            return flags
        return (*flags, *_CHECKED_FLAGS, *(_CHECKED_GCC if self.kind == "g++" else _CHECKED_CLANG))

    def _fast_flags(self, cuda_arch: int) -> tuple[str, ...]:
        flags: tuple[str, ...] = (*_KERNEL_FLAGS, f"-D__CUDA_ARCH__={cuda_arch}")
        if self.kind == "g++":
            return (*flags, *_GCC_FLAGS, *_ALIGNMENT_CHECKS, f"-march={_cpu_level()}")
        flags = (*flags, *_CLANG_FLAGS)
        if self.kind == "clang++":
            return (*flags, *_ALIGNMENT_CHECKS, f"-march={_cpu_level()}")
        return (
            *flags,
            "-target",
            "x86_64-linux-gnu",
            f"-mcpu={_cpu_level().replace('-', '_')}",
            "-fno-sanitize=all",
            # Past zig's own driver, which would ask for its runtime library.
            "-Xclang",
            _ALIGNMENT_CHECKS[0],
        )

    def compile_kernel(self, source: Path, output: Path, flags: tuple[str, ...]) -> list[str]:
        """Return the command that compiles one candidate to an object file."""
        return [
            *self._compiler(),
            *flags,
            # Beside the candidate lie the headers that were rewritten for it.
            f"-I{source.parent}",
            f"-I{HEADERS}",
            f"-I{PACKAGE_HEADERS}",
            "-include",
            "cpu_device/prelude.h",
            "-c",
            str(source),
            "-o",
            str(output),
        ]

    @property
    def compiles_through_listing(self) -> bool:
        """Whether a candidate is compiled in two steps, between which `copy_alignment.check_copies` is due."""
        return self.kind != "g++"

    def list_kernel(self, source: Path, listing: Path, flags: tuple[str, ...]) -> list[str]:
        """Return the command of the first step: the front end's output, as text."""
        command = self.compile_kernel(source, listing, flags)
        command[command.index("-c")] = "-S"
        return [*command, "-emit-llvm", "-Xclang", "-disable-llvm-passes"]

    def compile_listing(self, listing: Path, output: Path, flags: tuple[str, ...]) -> list[str]:
        """Return the command of the second step."""
        return [
            *self._compiler(),
            *flags,
            "-Wno-unused-command-line-argument",
            "-c",
            str(listing),
            "-o",
            str(output),
        ]

    def link_kernel(self, objects: Path, output: Path, *, is_checked: bool = False) -> list[str]:
        """Return the command that links it; without start files, nothing in it runs when it is loaded."""
        script = str(_RUNTIME / "checked" / "no_initialisers.ld")
        if self.kind == "zig":
            command = [self.path, "ld.lld", "-shared", "--build-id=none", "-o", str(output), str(objects)]
            return [*command, *_CHECKED_LINK, script] if is_checked else command
        static_runtime = ["-lgcc"] if self.kind == "g++" else []
        checked = [f"-Wl,{','.join((*_CHECKED_LINK, script))}"] if is_checked else []
        return [
            self.path,
            "-shared",
            "-nostdlib",
            "-nostartfiles",
            "-o",
            str(output),
            str(objects),
            *static_runtime,
            *checked,
        ]

    def build_runner(self, work: Path, output: Path) -> list[list[str]]:
        """Return the commands that build the runner, to be run one after another in `work`."""
        source = str(_RUNTIME / "runner.cpp")
        if self.kind != "zig":
            # The maths library is for the candidates: the runner itself does not call it.
            libraries = ("-Wl,--no-as-needed", "-lm", "-ldl", "-lpthread")
            return [[self.path, *_RUNNER_FLAGS, "-rdynamic", "-o", str(output), source, *libraries]]
        # Linking with `zig c++` would first build its C++ library, which takes up to a minute. The runner
        # needs only the C library, and the one to use is the one that is on this machine.
        made = [str(work / "runner.o"), str(work / "start.o")]
        target = ("-target", "x86_64-linux-gnu", "-fno-sanitize=all", "-c")
        loader, host_libraries = _host_libraries()
        return [
            [*self._compiler(), *target, *_RUNNER_FLAGS, source, "-o", made[0]],
            [*self._compiler(), *target, str(_RUNTIME / "start.S"), "-o", made[1]],
            [
                self.path,
                "ld.lld",
                "-pie",
                "--export-dynamic",
                "--eh-frame-hdr",
                "--allow-shlib-undefined",
                "--dynamic-linker",
                loader,
                "-o",
                str(output),
                *made,
                *host_libraries,
            ],
        ]

    def environment(self, work: Path) -> dict[str, str]:
        """Return the environment that the compiler runs in: nothing of the user's but where to find tools.

        Zig's own cache would keep every candidate for ever, and gains nothing here: it goes with `work`.
        """
        own = str(work / "zig")
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "HOME": str(work),
            "TMPDIR": str(work),
            "ZIG_GLOBAL_CACHE_DIR": own,
            "ZIG_LOCAL_CACHE_DIR": own,
        }

    def _compiler(self) -> list[str]:
        return [self.path, "c++"] if self.kind == "zig" else [self.path]


def find_toolchain() -> Toolchain:
    """Return the compiler to use: ``LLMKERNEL_CXX``, else g++, else clang++, else zig.

    Raises
    ------
    llmkernel.errors.DeviceUnavailableError
        There is none.
    llmkernel.errors.ConfigurationError
        ``LLMKERNEL_CXX`` names none.
    """
    return _find(os.environ.get(_CHOICE, ""), os.environ.get("PATH", os.defpath))


@cache
def _find(choice: str, search_path: str) -> Toolchain:
    names = (choice,) if choice else ("g++", "clang++", "zig")
    for name in names:
        path = (
            (_zig() or shutil.which("zig", path=search_path))
            if name == "zig"
            else shutil.which(name, path=search_path)
        )
        toolchain = _identify(path) if path else None
        if toolchain:
            return toolchain
    if choice:
        raise ConfigurationError(
            f"{_CHOICE} names no usable compiler.",
            rule="It is g++, clang++, zig, or the path of one of them.",
            received=choice,
            next_step=f"Unset {_CHOICE} to have a compiler chosen.",
        )
    raise DeviceUnavailableError(
        "The cpu device found no C++ compiler.",
        rule="It needs g++, clang++, or zig from the ziglang package.",
        next_step="Install it with: pip install 'llmkernel[cpu]'",
    )


def _zig() -> str | None:
    # The wheel's own launcher is a Python module; the compiler beside it can be called directly.
    spec = importlib.util.find_spec("ziglang")
    for location in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(location) / "zig"
        if os.access(binary, os.X_OK):
            return str(binary)
    return None


def _identify(path: str) -> Toolchain | None:
    is_zig = Path(path).name.startswith("zig")
    try:
        text = subprocess.run(
            [path, "version" if is_zig else "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    first = text.strip().splitlines()[0] if text.strip() else ""
    if is_zig:
        return Toolchain("zig", path, f"zig {first}")
    kind = "clang++" if "clang" in text else "g++"
    return Toolchain(kind, path, first)


@cache
def _cpu_level() -> str:
    """Return the newest x86-64 level that this host has; it is in the flags, and so in the cache key."""
    try:
        flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return "x86-64"
    have = set(flags.group(1).split()) if flags else set()
    if {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"} <= have:
        return "x86-64-v3"
    return "x86-64-v2" if {"sse4_2", "popcnt", "ssse3"} <= have else "x86-64"


def _host_libraries() -> tuple[str, list[str]]:
    """Return the dynamic loader and the C and maths libraries that this Python itself runs with."""
    import ctypes

    ctypes.CDLL("libm.so.6")
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    found = {Path(path).name: path for path in mapped}
    loader = next(
        (path for name, path in found.items() if name.startswith("ld-linux")), "/lib64/ld-linux-x86-64.so.2"
    )
    names = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")
    return loader, [found[name] for name in names if name in found]
