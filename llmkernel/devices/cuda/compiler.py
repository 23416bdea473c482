"""Source to a loaded module: NVRTC, a content-addressed cache, CuPy's RawModule.

The machine code is compiled here and handed to `cupy.RawModule(path=…)` rather than compiled by
`RawModule(code=…)`: CuPy appends ``-ftz=true`` after the options that it is given, and NVRTC obeys the last
one, so denormals would be flushed whatever we asked for; and its cache key knows nothing of headers.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from llmkernel.devices.base import Diagnostic, KernelResources
from llmkernel.devices.cuda import headers, toolchain
from llmkernel.devices.cuda.driver import (
    FUNCTION_LOCAL_BYTES,
    FUNCTION_MAX_THREADS,
    FUNCTION_REGISTERS,
    FUNCTION_SHARED_BYTES,
    Driver,
)
from llmkernel.devices.cuda.nvrtc import Binary, compile_with_nvrtc, compiler_options
from llmkernel.errors import CompileError, LaunchError

_FORMAT = 1
_MAX_FILES = 4096


@dataclass(frozen=True)
class CachedBinary:
    """A successful compilation on disk.

    Attributes
    ----------
    path : pathlib.Path
        The cubin (or PTX).
    binary : Binary
    is_cached : bool
        It was there before.
    seconds : float
        Of the compilation or of the look-up.
    """

    path: Path
    binary: Binary
    is_cached: bool
    seconds: float


def compile_cached(source: str, kernels: Sequence[str], arch: str) -> CachedBinary:
    """Compile, or take what the same source, options, headers and versions gave before.

    Raises
    ------
    llmkernel.errors.CompileError
        With diagnostics, errors first.
    """
    started = time.perf_counter()
    path = toolchain.cache_directory("cubin") / f"{_key(source, kernels, arch)}.cubin"
    kept = _read(path)
    if kept is not None:
        return CachedBinary(path, kept, is_cached=True, seconds=time.perf_counter() - started)
    binary = compile_with_nvrtc(source, kernels, arch)
    errors = [d for d in binary.diagnostics if d.severity == "error"]
    if errors or not binary.code:
        raise compile_error(binary.diagnostics, binary.log, arch)
    _write(path, binary)
    return CachedBinary(path, binary, is_cached=False, seconds=binary.seconds)


def compile_error(diagnostics: tuple[Diagnostic, ...], log: str, arch: str) -> CompileError:
    """Describe a failed compilation: the first error is in the message, all of them are in the attributes."""
    errors = [d for d in diagnostics if d.severity == "error"]
    first = errors[0]
    place = f"line {first.line}: " if first.line else ""
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return CompileError(
        f"The candidate does not compile for {arch}: {place}{first.message}{more}",
        diagnostics=diagnostics,
        log=log,
        next_step="Correct the source; `error.diagnostics` has every message with its line.",
    )


def _key(source: str, kernels: Sequence[str], arch: str) -> str:
    from cuda.bindings import __version__ as binding

    parts = {
        "format": _FORMAT,
        "source": source,
        "kernels": sorted(set(kernels)),
        "options": compiler_options(arch),
        "headers": headers.memory_headers_hash(),
        "includes": toolchain.headers_fingerprint(),
        "nvrtc": toolchain.nvrtc_version(),
        "binding": binding,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _write(path: Path, binary: Binary) -> None:
    data = asdict(replace(binary, code=b""))
    data["code"] = hashlib.sha256(binary.code).hexdigest()
    toolchain.write_atomically(path, binary.code)
    toolchain.write_atomically(path.with_suffix(".json"), json.dumps(data).encode())
    toolchain.prune(path.parent, _MAX_FILES)


def _read(path: Path) -> Binary | None:
    try:
        data: dict[str, Any] = json.loads(path.with_suffix(".json").read_bytes())
        code = path.read_bytes()
        # A torn or edited file is a miss.
        if hashlib.sha256(code).hexdigest() != data.pop("code"):
            return None
        return Binary(
            **{
                **data,
                "code": code,
                "diagnostics": tuple(Diagnostic(**d) for d in data["diagnostics"]),
                "resources": {name: KernelResources(**r) for name, r in data["resources"].items()},
                "options": tuple(data["options"]),
            }
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass
class LoadedModule:
    """Machine code in a context.

    Attributes
    ----------
    functions : dict
        Name expression to `CUfunction`.
    keeper : object
        What keeps the module loaded: a `cupy.RawModule`, or None for one that `unload` ends.
    handle : int
        `CUmodule`; 0 where CuPy owns it.
    """

    functions: dict[str, int]
    keeper: Any = None
    handle: int = 0

    def unload(self, driver: Driver) -> None:
        """Unload a module that `load_fresh` loaded."""
        if self.handle:
            driver.call("cuModuleUnload", self.handle)
            self.handle = 0
            self.functions = {}


def load_raw_module(compiled: CachedBinary, ordinal: int) -> LoadedModule:
    """Load through `cupy.RawModule` into the primary context of a device.

    Loading is forced here: RawModule would put off every failure to its first use.
    """
    import cupy

    lowered = compiled.binary.lowered
    try:
        with cupy.cuda.Device(ordinal):
            module = cupy.RawModule(path=str(compiled.path))
            functions = {
                name: int(module.get_function(symbol).kernel.ptr) for name, symbol in lowered.items()
            }
    except cupy.cuda.driver.CUDADriverError as error:
        raise LaunchError(
            "The compiled candidate cannot be loaded into the GPU.",
            received=str(error),
            next_step="Look at the size of its __device__ and __constant__ arrays, and at `nvidia-smi`.",
        ) from error
    return LoadedModule(functions, keeper=module)


def load_fresh(driver: Driver, binary: Binary) -> LoadedModule:
    """Load another copy into the current context: its `__device__` variables hold their initialisers."""
    handle = driver.handle("cuModuleLoadData", binary.code + b"\0")
    functions = {
        name: driver.handle("cuModuleGetFunction", handle, symbol.encode())
        for name, symbol in binary.lowered.items()
    }
    return LoadedModule(functions, handle=handle)


def loaded_resources(driver: Driver, loaded: LoadedModule, binary: Binary) -> dict[str, KernelResources]:
    """Complete ptxas's figures by what the driver says of the loaded functions."""
    found = {}
    for name, function in loaded.functions.items():
        found[name] = replace(
            binary.resources.get(name, KernelResources()),
            registers=driver.function_attribute(FUNCTION_REGISTERS, function),
            local_bytes=driver.function_attribute(FUNCTION_LOCAL_BYTES, function),
            static_shared_bytes=driver.function_attribute(FUNCTION_SHARED_BYTES, function),
            max_threads_per_block=driver.function_attribute(FUNCTION_MAX_THREADS, function),
        )
    return found
