"""Where NVRTC, the CUDA headers and the compile cache are."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import tempfile
from pathlib import Path

from llmkernel.errors import UsageError

_PROBE = "cuda_fp16.h"
# From this compute capability on, each architecture has a variant with instructions of its own: sm_90a…
_FIRST_SPECIFIC = 90


def cache_directory(kind: str) -> Path:
    """Return a writable directory for generated files, created.

    The user's cache directory (`LLMKERNEL_CACHE_DIR` overrides it), or a private temporary one where that
    cannot be written.
    """
    import platformdirs

    base = os.environ.get("LLMKERNEL_CACHE_DIR") or platformdirs.user_cache_dir("llmkernel", appauthor=False)
    path = Path(base) / kind
    try:
        path.mkdir(parents=True, exist_ok=True)
        if os.access(path, os.W_OK):
            return path
    except OSError:
        pass
    return _temporary_directory(kind)


@functools.cache
def _temporary_directory(kind: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"llmkernel-{kind}-"))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that another process sees all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def prune(directory: Path, limit: int) -> None:
    """Delete the oldest half of the files of a cache that holds more than `limit`."""
    files = [entry for entry in os.scandir(directory) if entry.is_file()]
    if len(files) <= limit:
        return
    ages: list[tuple[float, str]] = []
    for entry in files:
        with contextlib.suppress(OSError):
            ages.append((entry.stat().st_mtime, entry.path))
    for _, path in sorted(ages)[: len(ages) // 2]:
        with contextlib.suppress(OSError):
            Path(path).unlink()


@functools.cache
def include_directories() -> tuple[Path, ...]:
    """Return the directories that hold the CUDA headers, most specific first.

    Looked for in this order: the `nvidia-cuda-*` wheels, the conda environment, ``CUDA_PATH`` and
    ``CUDA_HOME``, the usual places of a toolkit. The CCCL headers (``cuda/std``, ``cub``) may come from
    another place than ``cuda_fp16.h``, but never a second copy of either.
    """
    roots = [path for path in _candidate_roots() if path.is_dir()]
    chosen: list[Path] = []
    for probe in (_PROBE, "cuda/std/cstdint", "mma.h", "crt/mma.h", "cooperative_groups.h", "nv/target"):
        if any((path / probe).is_file() for path in chosen):
            continue
        found = next((path for path in roots if (path / probe).is_file()), None)
        if found is not None:
            chosen.append(found)
    return tuple(chosen)


def _candidate_roots() -> list[Path]:
    includes: list[Path] = []
    spec = importlib.util.find_spec("nvidia")
    for base in [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []:
        for pattern in ("cu[0-9]*/include", "cuda_runtime/include", "cuda_nvcc/include", "cuda_cccl/include"):
            includes += sorted(base.glob(pattern), reverse=True)
    toolkits = [os.environ.get(name) for name in ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME")]
    for root in [Path(t) for t in toolkits if t] + _installed_toolkits():
        includes += [root / "include", root / "targets" / "x86_64-linux" / "include"]
        includes.append(root / "targets" / "sbsa-linux" / "include")
    # CUDA 13 keeps CCCL in a folder of its own below `include`.
    return [path for include in includes for path in (include, include / "cccl")]


def _installed_toolkits() -> list[Path]:
    if os.name == "nt":
        base = Path(os.environ.get("PROGRAMFILES", "C:/Program Files")) / "NVIDIA GPU Computing Toolkit/CUDA"
        return sorted(base.glob("v*"), key=_version_key, reverse=True)
    found = [Path("/usr/local/cuda"), Path("/opt/cuda")]
    return found + sorted(Path("/usr/local").glob("cuda-*"), key=_version_key, reverse=True)


def _version_key(path: Path) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", path.name))


@functools.cache
def headers_fingerprint() -> str:
    """Return a short hash that changes when other CUDA headers are found."""
    digest = hashlib.sha256()
    for directory in include_directories():
        digest.update(str(directory).encode())
        for name in ("cuda_runtime_api.h", _PROBE, "cuda/std/__cccl/version.h", "crt/mma.h"):
            path = directory / name
            if path.is_file():
                digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def nvrtc_version() -> tuple[int, int] | None:
    """Return NVRTC's version; None where it or its binding is not installed."""
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError):
        return None
    return (int(major), int(minor)) if int(status) == 0 else None


@functools.cache
def supported_architectures() -> tuple[int, ...]:
    """Return the compute capabilities that NVRTC compiles for, such as (75, 80, 90, 100)."""
    if nvrtc_version() is None:
        return ()
    from cuda.bindings import nvrtc

    status, archs = nvrtc.nvrtcGetSupportedArchs()
    return tuple(sorted(int(a) for a in archs)) if int(status) == 0 else ()


def architecture_name(major: int, minor: int) -> str:
    """Return the architecture with all of a GPU's instructions.

    Examples
    --------
    >>> architecture_name(8, 6), architecture_name(9, 0)
    ('sm_86', 'sm_90a')
    """
    number = 10 * major + minor
    return f"sm_{number}a" if number >= _FIRST_SPECIFIC else f"sm_{number}"


def architecture_option(arch: str) -> tuple[str, bool]:
    """Return NVRTC's ``-arch`` option for an architecture, and whether it yields machine code.

    A GPU newer than NVRTC gets PTX of the newest architecture that NVRTC knows: the driver compiles it.

    Raises
    ------
    llmkernel.errors.UsageError
        `arch` is not of the form ``sm_90a``.
    """
    match = re.fullmatch(r"sm_(\d{2,3})[af]?", arch)
    if match is None:
        raise UsageError(
            f"{arch!r} is not an architecture.",
            rule="an architecture is written sm_80, sm_90a, sm_100a …",
            received=arch,
            next_step="NVRTC here compiles for "
            + ", ".join(f"sm_{a}" for a in supported_architectures())
            + ".",
        )
    number = int(match[1])
    known = supported_architectures()
    if known and number > max(known):
        return f"-arch=compute_{max(known)}", False
    return f"-arch={arch}", True
