"""What Python tells of functions, classes and instances, for a fingerprint."""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import sys
import sysconfig
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llmkernel.records.function_source import global_names

# Where decorators of libraries keep the function that they wrap.
_WRAPPED = ("__wrapped__", "_torchdynamo_orig_callable", "py_func", "pyfunc")


def members(name: str, member: Any) -> Iterable[tuple[str, Any]]:
    """Return the functions and values behind one member of a class, by name."""
    if isinstance(member, staticmethod | classmethod):
        return [(f"{type(member).__name__} {name}", member.__func__)]
    if isinstance(member, property):
        accessors = (("get", member.fget), ("set", member.fset), ("delete", member.fdel))
        return [(f"{name} {word}", function) for word, function in accessors if function is not None]
    return [(name, member)]


_CLASS_NOISE = frozenset(
    [
        "__module__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__qualname__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "_abc_impl",
        "__dataclass_params__",
        "__dataclass_fields__",
        "__match_args__",
        "__parameters__",
        "__orig_bases__",
        "__classcell__",
        "__type_params__",
        "__hash__",
    ]
)


def is_generated(name: str, member: Any) -> bool:
    """Whether Python or a class decorator made this member: its text depends on the version of Python."""
    if name in _CLASS_NOISE or isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
        return True
    function = inspect.unwrap(member) if inspect.isfunction(member) else member
    return inspect.isfunction(function) and function.__code__.co_filename == "<string>"


def closure(function: Any) -> list[tuple[str, Any]]:
    """Return what a function captured, by name; what is not assigned yet is left out."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # assigned later than the function was made
            continue
        # The class that `super()` needs refers back to the method that is described.
        if name != "__class__":
            found.append((name, value))
    return found


def globals_read(function: Any) -> list[tuple[str, Any]]:
    """Return what a function reads from its module, by name, builtins excepted."""
    scope = function.__globals__
    names = global_names(function.__code__)
    return [(n, scope[n]) for n in names if n in scope and scope[n] is not getattr(builtins, n, scope)]


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, those in slots included."""
    state = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                state[name] = getattr(value, name)
    return state


def wrapped_by(value: Any) -> list[Any]:
    """Return what a decorated function, or an object around one, wraps; empty for others."""
    # Not `hasattr`: some objects have every attribute that they are asked for.
    own = getattr(value, "__dict__", {})
    return [own[attribute] for attribute in _WRAPPED if attribute in own]


def qualified_name(value: Any) -> str:
    """Return ``module.name`` of a function or class."""
    module = getattr(value, "__module__", None) or ""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__name__
    return f"{module}.{name}" if module else str(name)


def file_of(cls: type) -> str | None:
    """Return the file of the module that a class is from; None for builtins, ``__main__`` for a notebook."""
    if cls.__module__ == "builtins":
        return None
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "__main__":
        return "__main__"
    return getattr(module, "__file__", None)


@functools.lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    own = str(Path(__file__).resolve().parents[1])
    roots = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(os.path.realpath(root) + os.sep for root in (*roots, own))


@functools.lru_cache(maxsize=4096)
def is_library(filename: str | None) -> bool:
    """Whether code belongs to an installed library, which is named and not followed."""
    if filename is None or filename.startswith("<frozen"):
        return True
    parts = Path(filename).parts
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    return os.path.realpath(filename).startswith(_library_roots())
