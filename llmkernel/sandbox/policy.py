"""Which files and devices a worker needs, and nothing beside them."""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llmkernel.sandbox.limits import memory_bytes

_SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /gnu/store"
# The dynamic loader's and the clock's; not the rest of /etc, where accounts and keys are.
_SETTINGS = (
    "/etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.preload /etc/localtime /etc/alternatives"
)
# Of /proc no other process: its environment may hold the notebook's keys.
_PROC = "self cpuinfo meminfo stat vmstat devices modules version filesystems driver sys"
_NULL_DEVICES = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom"
_GPU_DEVICES = ("nvidia*", "nvhost*", "nvmap", "dxg", "dri/renderD*")
_TOOLKITS = ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX")
_COMPILERS = ("g++", "clang++", "zig")
_GPU_FILE_BYTES = 4 << 30


@dataclass(frozen=True)
class Policy:
    """What one process may reach.

    Attributes
    ----------
    readable, writable, devices : tuple of pathlib.Path
        Directories with all that is below them, or single files.
    starts_programs : bool
        See `worker_filter`.
    file_bytes : int
        Largest file that it may make.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    devices: tuple[Path, ...]
    starts_programs: bool
    file_bytes: int


def worker_policy(scratch: Path, *, caches: Iterable[Path] = (), starts_programs: bool) -> Policy:
    """Return what an evaluation worker may reach.

    Parameters
    ----------
    scratch : pathlib.Path
        The worker's own directory.
    caches : iterable of pathlib.Path
        Further directories that it writes: only where no untrusted code runs in the worker's own process.
    starts_programs : bool
        It runs compilers and runners instead of using a GPU.
    """
    readable = [*map(Path, (_SYSTEM + " " + _SETTINGS).split()), *(Path("/proc") / n for n in _PROC.split())]
    readable += [Path("/sys"), *_python(), *_toolkits()]
    devices = [Path(p) for p in _NULL_DEVICES.split()]
    if starts_programs:
        readable += _compilers()
    else:
        devices += [p for pattern in _GPU_DEVICES for p in Path("/dev").glob(pattern)]
        # The driver names its threads there, and makes no context where it may not.
        devices += _existing([Path("/proc/self/task"), Path("/proc/self/comm")])
    return Policy(
        readable=_existing(readable),
        writable=(scratch, *caches),
        devices=tuple(devices),
        starts_programs=starts_programs,
        # Buffers that are shared with a runner are files in memory.
        file_bytes=memory_bytes() if starts_programs else _GPU_FILE_BYTES,
    )


def _python() -> Iterator[Path]:
    """Yield where this interpreter, this package and what they import are."""
    yield from map(Path, (sys.prefix, sys.base_prefix, sys.exec_prefix))
    yield from (Path(p) for p in sysconfig.get_paths().values())
    yield from map(Path, [*site.getsitepackages(), site.getusersitepackages()])
    package = Path(__file__).resolve().parents[1]
    yield package
    home = Path.home()
    for entry in sys.path:
        path = Path(entry)
        # A folder of notebooks is on the path too; only one that this package was imported from is needed.
        is_persons = home.is_relative_to(path) or path == Path.cwd()
        if entry and not is_persons and path != package.parent:
            yield path


def _toolkits() -> Iterator[Path]:
    yield from (Path(os.environ[name]) for name in _TOOLKITS if os.environ.get(name))
    yield from (Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p)


def _compilers() -> Iterator[Path]:
    """Yield the installations of the compilers that may be called."""
    for name in (os.environ.get("LLMKERNEL_CXX", ""), *_COMPILERS):
        found = shutil.which(name) if name else None
        if found:
            binary = Path(found).resolve()
            yield binary.parent.parent if binary.parent.name == "bin" else binary.parent


def _existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the directories and files that are there, each once; never a person's home, nor everything."""
    home = Path.home().resolve()
    seen: dict[Path, None] = {}
    for path in paths:
        try:
            # `self` is this process: resolved, it stays this process's own.
            found = path.resolve(strict=True)
        except OSError:
            continue
        if not home.is_relative_to(found):
            seen[found] = None
    return tuple(seen)
