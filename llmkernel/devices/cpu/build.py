"""From a candidate's source to a shared object in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llmkernel.devices.base import Diagnostic
from llmkernel.devices.cpu.cache import (
    cache_directory,
    choose_again,
    is_kept,
    prune,
    publish,
    require_room,
    work_directory,
)
from llmkernel.devices.cpu.copy_alignment import check_copies
from llmkernel.devices.cpu.diagnostics import compile_error, parse_diagnostics
from llmkernel.devices.cpu.elf import check_module, read_elf
from llmkernel.devices.cpu.includes import HEADERS, PACKAGE_HEADERS, refuse_foreign_includes
from llmkernel.devices.cpu.separate_shared import separate_shared
from llmkernel.devices.cpu.shared_memory import rewrite_shared
from llmkernel.devices.cpu.toolchain import Toolchain, find_toolchain
from llmkernel.devices.cpu.unsupported import refuse_unsupported
from llmkernel.devices.kills import is_kill, memory_kills
from llmkernel.errors import CompileError, DeviceUnavailableError
from llmkernel.sandbox.limits import memory_bytes, within_limits

COMPILE_SECONDS = 60.0
_COMPILER_MEMORY = 8 << 30
_COMPILER_CPU_SECONDS = 120
_LARGEST_FILE_BYTES = 256 << 20
# Of what a compiler says; a source can make it say gigabytes.
_LOG_BYTES = 1 << 20
_KILLS_FORGIVEN = 2
# What the driver of g++ or clang++ says of a compiler proper that was killed.
_CHILD_KILLED = re.compile(
    r"^\S+: (?:fatal )?error: "
    r"(?:(?:Killed|Terminated) signal terminated program|unable to execute command: (?:Killed|Terminated))",
    re.MULTILINE,
)
_DEFAULT_ARCH = 800


@dataclass(frozen=True)
class BuiltModule:
    """A compiled candidate.

    Attributes
    ----------
    library : pathlib.Path
    runner : pathlib.Path
    warnings : tuple of Diagnostic
    static_shared_bytes : int
        Of all kernels of the source together.
    is_cached : bool
    seconds : float
    options : tuple of str
    """

    library: Path
    runner: Path
    warnings: tuple[Diagnostic, ...]
    static_shared_bytes: int
    is_cached: bool
    seconds: float
    options: tuple[str, ...]


def entry_symbol(kernel: str) -> str:
    """Return the symbol of the launch entry of a C++ name expression."""
    return "cpu_device_entry_" + hashlib.sha256("".join(kernel.split()).encode()).hexdigest()[:16]


def build(
    source: str, kernels: Sequence[str], arch: str | None = None, *, is_checked: bool = False
) -> BuiltModule:
    """Compile a candidate, or take it from the cache.

    Parameters
    ----------
    is_checked : bool
        Instrumented for checked mode: it runs in `checked.run_checked` only.

    Raises
    ------
    llmkernel.errors.UnsupportedFeatureError, llmkernel.errors.CompileError
    llmkernel.errors.DeviceUnavailableError
        When nothing can be written anywhere.
    """
    try:
        return _build(source, kernels, arch, is_checked=is_checked)
    except OSError:
        choose_again()
    try:
        return _build(source, kernels, arch, is_checked=is_checked)
    except OSError as error:
        raise DeviceUnavailableError(
            "The cpu device cannot keep what it compiles.",
            rule="it needs a directory of its own with a few megabytes of room",
            received=f"{error.strerror or error} ({cache_directory()})",
            next_step="Free some space, or name another directory in LLMKERNEL_CACHE_DIR.",
        ) from error


def _build(source: str, kernels: Sequence[str], arch: str | None, *, is_checked: bool) -> BuiltModule:
    begin = time.perf_counter()
    toolchain = find_toolchain()
    refuse_unsupported(source)
    refuse_foreign_includes(source)
    runner = build_runner(toolchain)
    flags = toolchain.kernel_flags(_cuda_arch(arch), is_checked=is_checked)
    text = _translation_unit(source, kernels, is_checked=is_checked)
    key = _digest(
        "checked" if is_checked else "fast",
        toolchain.version,
        toolchain.path,
        *flags,
        _headers_digest(),
        _rewriters_digest(),
        text,
    )
    library = cache_directory() / f"{key}.so"
    facts = cache_directory() / f"{key}.json"
    known = _facts(facts) if is_kept(library) else None
    is_cached = known is not None
    if known is None:
        _compile(toolchain, flags, source, kernels, text, library, facts, is_checked=is_checked)
        prune()
        known = json.loads(facts.read_text())
    return BuiltModule(
        library=library,
        runner=runner,
        warnings=tuple(Diagnostic(**w) for w in known["warnings"]),
        static_shared_bytes=known["static_shared_bytes"],
        is_cached=is_cached,
        seconds=time.perf_counter() - begin,
        options=(toolchain.kind, *flags),
    )


def build_runner(toolchain: Toolchain) -> Path:
    """Return the runner's executable, built once a compiler and version of the package."""
    key = _digest("runner", toolchain.version, toolchain.path, _runtime_digest())
    runner = cache_directory() / f"runner-{key}"
    if runner.exists():
        return runner
    with work_directory() as work:
        made = work / "runner"
        for command in toolchain.build_runner(work, made):
            code, log = _run_compiler(command, toolchain, work)
            if code:
                require_room(work)
                raise DeviceUnavailableError(
                    "The cpu device's runner cannot be built with this compiler.",
                    received=f"{toolchain.version}: {log.strip()[:500]}",
                    next_step="Choose another compiler with LLMKERNEL_CXX=zig, g++ or clang++.",
                )
        publish(made, runner)
    return runner


def check_compiler() -> None:
    """Compile next to nothing.

    Raises
    ------
    llmkernel.errors.DeviceUnavailableError
        The compiler does not run in this process's sandbox, or finds no room.
    """
    toolchain = find_toolchain()
    arguments = ["c++", "-c"] if toolchain.kind == "zig" else ["-c"]
    with work_directory() as work:
        (work / "ready.cpp").write_text("int ready;\n")
        code, log = _run_compiler([toolchain.path, *arguments, "ready.cpp", "-o", "ready.o"], toolchain, work)
    if code:
        raise DeviceUnavailableError(
            "The cpu device's compiler does not run.",
            received=f"{toolchain.version}: {log.strip()[:500]}",
            next_step="Choose another compiler with LLMKERNEL_CXX=zig, g++ or clang++.",
        )


def _compile(
    toolchain: Toolchain,
    flags: tuple[str, ...],
    source: str,
    kernels: Sequence[str],
    text: str,
    library: Path,
    facts: Path,
    *,
    is_checked: bool,
) -> None:
    with work_directory() as work:
        unit, compiled, linked = work / "candidate.cpp", work / "candidate.o", work / "candidate.so"
        unit.write_bytes(text.encode(errors="replace"))
        if is_checked:
            for header in PACKAGE_HEADERS.glob("*.cuh"):
                (work / header.name).write_text(separate_shared(header.read_text()))
        code, log = _compile_unit(toolchain, flags, unit, compiled, work)
        diagnostics = parse_diagnostics(log, kernels)
        if code:
            require_room(work)  # or it is no fault of the source
            raise compile_error(diagnostics, log, code)
        code, log = _run_compiler(
            toolchain.link_kernel(compiled, linked, is_checked=is_checked), toolchain, work
        )
        if code:
            require_room(work)
            raise compile_error(parse_diagnostics(log, kernels), log, code)
        elf = read_elf(linked.read_bytes())
        check_module(elf, source, is_checked=is_checked)
        made = work / "facts.json"
        warnings = [vars(d) for d in diagnostics if d.severity == "warning"]
        made.write_text(json.dumps({"warnings": warnings, "static_shared_bytes": elf.thread_local_bytes}))
        # The facts first: a library that is in place has its facts.
        publish(made, facts)
        publish(linked, library)


def _compile_unit(
    toolchain: Toolchain, flags: tuple[str, ...], unit: Path, compiled: Path, work: Path
) -> tuple[int, str]:
    """Compile to an object file; return the exit code and what was said."""
    if not toolchain.compiles_through_listing:
        return _run_compiler(toolchain.compile_kernel(unit, compiled, flags), toolchain, work)
    listing = work / "candidate.ll"
    code, log = _run_compiler(toolchain.list_kernel(unit, listing, flags), toolchain, work)
    if code:
        return code, log
    listing.write_text(check_copies(listing.read_text()))
    code, more = _run_compiler(toolchain.compile_listing(listing, compiled, flags), toolchain, work)
    return code, log + more


def _facts(path: Path) -> dict[str, Any] | None:
    """Return what is known of a module in the cache; None where it was damaged, as a full disk may do."""
    try:
        known = json.loads(path.read_text())
        return known if {"warnings", "static_shared_bytes"} <= known.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _translation_unit(source: str, kernels: Sequence[str], *, is_checked: bool) -> str:
    """Return the candidate with its launch entries, each on the line of its number, for diagnostics."""
    if is_checked:
        source = separate_shared(source)
    lines = ['#line 1 "kernel.cu"', rewrite_shared(source), '#line 1 "<launch>"']
    lines += [f"CPU_DEVICE_ENTRY({entry_symbol(kernel)}, {kernel})" for kernel in kernels]
    lines += ['#line 1 "<module>"', "CPU_DEVICE_STATIC_SHARED_ANCHOR"]
    return "\n".join(lines) + "\n"


def _cuda_arch(arch: str | None) -> int:
    digits = "".join(c for c in (arch or "") if c.isdigit())
    return int(digits) * 10 if digits else _DEFAULT_ARCH


def _run_compiler(command: list[str], toolchain: Toolchain, work: Path) -> tuple[int, str]:
    """Run in `work`, within time and memory; return the exit code and what it said.

    What someone else killed is started again: it says nothing of the source.
    """
    for _ in range(_KILLS_FORGIVEN + 1):
        kills = memory_kills()
        code, log = _run_once(command, toolchain, work)
        if not (is_kill(code) or _CHILD_KILLED.search(log)) or memory_kills() != kills:
            break
    return code, log


def _run_once(command: list[str], toolchain: Toolchain, work: Path) -> tuple[int, str]:
    limited = within_limits(
        command,
        cpu_seconds=_COMPILER_CPU_SECONDS,  # nobody is left to end it where all were killed
        memory_bytes=min(_COMPILER_MEMORY, memory_bytes() // 2),
        file_bytes=_LARGEST_FILE_BYTES,
    )
    log = (work / "log").open("w+b")
    process = subprocess.Popen(
        limited,
        cwd=work,
        env=toolchain.environment(work),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        process_group=0,  # of the worker's session, so that whoever ends the worker finds it
    )
    try:
        process.wait(timeout=COMPILE_SECONDS)
        log.seek(0)
        output = log.read(_LOG_BYTES)
    except subprocess.TimeoutExpired:
        raise CompileError(
            "The compiler did not finish.",
            rule=f"A candidate compiles within {COMPILE_SECONDS:.0f} s.",
            next_step="Reduce unrolling, template instantiations and constant evaluation.",
        ) from None
    finally:
        # Also after an interrupt: the driver's children are in its group.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        process.wait()
        log.close()
    return process.returncode, output.decode(errors="replace")


def _digest(*parts: str) -> str:
    h = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="replace")
        h.update(len(data).to_bytes(8, "little") + data)
    return h.hexdigest()[:32]


def _tree_digest(*roots: Path) -> str:
    files = sorted(path for root in roots if root.exists() for path in root.rglob("*") if path.is_file())
    return _digest(*(f"{path.name}\n{path.read_text()}" for path in files))


@cache
def _headers_digest() -> str:
    return _tree_digest(HEADERS, PACKAGE_HEADERS)


@cache
def _rewriters_digest() -> str:
    # What they do to headers and to clang's output does not show in the text that is compiled.
    here = Path(__file__).parent
    return _digest(*((here / name).read_text() for name in ("separate_shared.py", "copy_alignment.py")))


@cache
def _runtime_digest() -> str:
    return _tree_digest(Path(__file__).parent / "runtime", HEADERS / "cpu_device")
