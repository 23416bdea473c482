"""NVRTC without a GPU or a driver: compile, diagnose, and read what a kernel uses."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llmkernel.devices.base import Diagnostic, KernelResources
from llmkernel.devices.cuda import headers, toolchain
from llmkernel.devices.cuda.diagnostics import PROGRAM_NAME, clean_log, parse_log, parse_resources
from llmkernel.errors import DeviceUnavailableError

_VERBOSE = re.compile(r"^ ?ptxas +(info *:(?! \(C\d)|\.) .*\n?", re.MULTILINE)
_REMARK = re.compile(r"^Remark: .*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Binary:
    """The outcome of one NVRTC compilation.

    Attributes
    ----------
    code : bytes
        cubin (or PTX where the GPU is newer than NVRTC); empty when compilation failed.
    is_machine_code : bool
        Whether `code` is a cubin.
    lowered : dict
        Name expression to the symbol in `code`.
    diagnostics : tuple of Diagnostic
        Errors first.
    resources : dict
        Name expression to `KernelResources`.
    seconds : float
    log : str
        Cleaned, without ptxas's resource lines.
    options : tuple of str
        As given to NVRTC, without include directories.
    """

    code: bytes
    is_machine_code: bool
    lowered: dict[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    resources: dict[str, KernelResources] = field(default_factory=dict)
    seconds: float = 0.0
    log: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class NvrtcCheck:
    """What the real compiler says of a candidate, on a machine that need not have a GPU.

    Attributes
    ----------
    diagnostics : tuple of Diagnostic
        Errors first; empty when there is nothing to say.
    resources : dict
        Name expression to `KernelResources`.
    seconds : float
    log : str
    """

    diagnostics: tuple[Diagnostic, ...]
    resources: dict[str, KernelResources]
    seconds: float
    log: str

    @property
    def is_compiled(self) -> bool:
        """Whether there was no error."""
        return not any(d.severity == "error" for d in self.diagnostics)


def compiler_options(arch: str) -> tuple[str, ...]:
    """Return the options that decide what is compiled, in NVRTC's order.

    Division, square root and denormals follow IEEE 754, as in a default nvcc build; a product and a sum may
    contract into one rounding, likewise.
    """
    return (
        toolchain.architecture_option(arch)[0],
        "-std=c++17",
        "-ftz=false",
        "-prec-div=true",
        "-prec-sqrt=true",
        "-fmad=true",
        "-lineinfo",
        f"--pre-include={headers.PRELUDE}",
        "--ptxas-options=-v",
    )


def compile_with_nvrtc(source: str, kernels: Sequence[str], arch: str) -> Binary:
    """Compile to machine code; failures are in the diagnostics, not raised.

    Raises
    ------
    llmkernel.errors.DeviceUnavailableError
        NVRTC or its Python binding is not installed.
    """
    version = toolchain.nvrtc_version()
    if version is None:
        raise DeviceUnavailableError(
            "NVRTC, the CUDA compiler library, is not installed.",
            next_step="pip install 'llmkernel[cuda]'",
        )
    from cuda.bindings import nvrtc

    options = compiler_options(arch)
    directories = tuple(str(path) for path in toolchain.include_directories())
    in_memory = headers.memory_headers()
    started = time.perf_counter()
    program = _checked(
        nvrtc.nvrtcCreateProgram(
            source.encode(),
            PROGRAM_NAME.encode(),
            len(in_memory),
            [text.encode() for text in in_memory.values()],
            [name.encode() for name in in_memory],
        )
    )
    try:
        for kernel in kernels:
            _checked(nvrtc.nvrtcAddNameExpression(program, kernel.encode()))
        flags = [flag.encode() for flag in (*options, *(f"-I{path}" for path in directories))]
        status = int(nvrtc.nvrtcCompileProgram(program, len(flags), flags)[0])
        log = clean_log(_text(nvrtc, program), directories)
        seconds = time.perf_counter() - started
        diagnostics = _complete(parse_log(log, source), status, log)
        shown = _REMARK.sub("", _VERBOSE.sub("", log + "\n")).strip()
        is_machine_code = toolchain.architecture_option(arch)[1]
        if status:
            return Binary(b"", is_machine_code, {}, diagnostics, {}, seconds, shown, options)
        lowered = {
            k: bytes(_checked(nvrtc.nvrtcGetLoweredName(program, k.encode()))).decode() for k in kernels
        }
        by_symbol = parse_resources(log)
        resources = {k: by_symbol.get(symbol, KernelResources()) for k, symbol in lowered.items()}
        code = _code(nvrtc, program, is_machine_code=is_machine_code)
        return Binary(code, is_machine_code, lowered, diagnostics, resources, seconds, shown, options)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def check_with_nvrtc(source: str, kernels: Sequence[str], arch: str) -> NvrtcCheck:
    """Compile a candidate for an architecture without a GPU or a driver.

    Parameters
    ----------
    source : str
        The whole `.cu` file.
    kernels : sequence of str
        Name expressions; each is instantiated.
    arch : str
        Such as ``sm_80``, ``sm_90a`` or ``sm_100a``.

    Raises
    ------
    llmkernel.errors.DeviceUnavailableError
        NVRTC or its Python binding is not installed.
    """
    binary = compile_with_nvrtc(source, kernels, arch)
    return NvrtcCheck(binary.diagnostics, binary.resources, binary.seconds, binary.log)


def _checked(result: tuple[Any, ...]) -> Any:
    status = result[0]
    if int(status):
        raise DeviceUnavailableError(
            f"NVRTC failed: {getattr(status, 'name', status)}.",
            next_step="Check with `llmkernel doctor` that NVRTC's wheels have one version.",
        )
    return result[1] if len(result) > 1 else None


def _text(nvrtc: Any, program: Any) -> str:
    buffer = bytearray(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
    _checked(nvrtc.nvrtcGetProgramLog(program, buffer))
    return buffer.decode("utf-8", "replace")


def _code(nvrtc: Any, program: Any, *, is_machine_code: bool) -> bytes:
    size, get = (
        (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        if is_machine_code
        else (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    )
    buffer = bytearray(_checked(size(program)))
    _checked(get(program, buffer))
    return bytes(buffer)


def _complete(diagnostics: tuple[Diagnostic, ...], status: int, log: str) -> tuple[Diagnostic, ...]:
    """Make sure that a failure has an error: an unknown form of message must not read as success."""
    if not status or any(d.severity == "error" for d in diagnostics):
        return diagnostics
    first = next(
        (line.strip() for line in log.split("\n") if line.strip()), f"NVRTC failed with status {status}"
    )
    return (Diagnostic("error", 0, 0, first), *diagnostics)
