"""The fingerprint of a reference: equal where it computes the same, in every process, on every machine.

It covers the source (without comments and white space), what the function captured or reads from its module,
and what these in turn refer to. Libraries are named, not followed: their versions are in a record's
environment. A torch module's weights are inputs of its problem, so only their names, shapes and dtypes are
covered.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmkernel.problem.reference import Reference, is_module
from llmkernel.prompts.redaction import redact
from llmkernel.records.function_source import canonical_source, code_digest, find_definition
from llmkernel.records.introspection import (
    closure,
    file_of,
    globals_read,
    is_generated,
    is_library,
    members,
    qualified_name,
    state_of,
    wrapped_by,
)
from llmkernel.records.record import source_digest
from llmkernel.records.values import describe_array, describe_plain

_GENERATED_KERNEL = "llmkernel.synthesis.generated_kernel"
_VERSION = "llmkernel-fingerprint/1"
_MAX_DEPTH = 24
_MAX_ITEMS = 4096
_MAX_VALUES = 20_000
_MAX_TEXT = 2000


@dataclass(frozen=True)
class Fingerprint:
    """What a reference is, for finding its record again.

    Attributes
    ----------
    digest : str
        SHA-256, 64 hex digits.
    text : str
        What went into it, for a person who asks why a record was not found; secrets redacted.
    notes : tuple of str
        What could not be covered, one sentence each.
    """

    digest: str
    text: str
    notes: tuple[str, ...] = ()


def fingerprint(reference: Callable[..., Any] | Reference) -> Fingerprint:
    """Return the fingerprint of a reference.

    Parameters
    ----------
    reference : callable or llmkernel.problem.reference.Reference
        The values of a `Reference` that are fixed are part of it.

    Examples
    --------
    >>> fingerprint(len).text
    'builtin builtins.len'
    """
    walk = _Walk()
    if isinstance(reference, Reference):
        lines = [walk.describe(reference.function, "the reference")]
        lines += walk.named(reference.fixed, "fixed")
    else:
        lines = [walk.describe(reference, "the reference")]
    walk.finish()
    canonical = "\n".join([_VERSION, *lines, *walk.canonical])
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    text = redact("\n".join([*lines, *walk.readable]))
    return Fingerprint(digest, text, tuple(dict.fromkeys(walk.notes)))


class _Walk:
    """Describes values; functions and classes become numbered blocks, so that recursion ends."""

    def __init__(self) -> None:
        self.readable: list[str] = []
        self.canonical: list[str] = []
        self.notes: list[str] = []
        self._described: dict[tuple[int, bool], str] = {}
        self._numbers: dict[int, int] = {}
        self._waiting: list[tuple[int, Any]] = []
        self._kept: list[Any] = []  # keeps ids unique while they are looked up

    def finish(self) -> None:
        """Write the blocks of everything that was referred to."""
        while self._waiting:
            number, value = self._waiting.pop(0)
            readable, canonical = self._function(value) if inspect.isfunction(value) else self._class(value)
            for blocks, block in ((self.readable, readable), (self.canonical, canonical)):
                blocks.append(f"#{number}:")
                blocks.extend(block)

    def describe(self, value: Any, name: str, depth: int = 0) -> str:
        """Return one line for a value; `name` is what a note calls it."""
        if depth > _MAX_DEPTH:
            self.notes.append(f"{name} is nested deeper than {_MAX_DEPTH} levels: the rest is not covered.")
            return "…"
        plain = describe_plain(value)
        if plain is not None:
            return plain
        # A module is described without its weights where it is the reference itself.
        place = (id(value), depth == 0)
        if place not in self._described:
            self._kept.append(value)
            self._described[place] = "(itself)"  # met again while it is described: a cycle
            self._described[place] = _short(self._describe(value, name, depth))
        return self._described[place]

    def _describe(self, value: Any, name: str, depth: int) -> str:
        array = describe_array(value)
        if array is not None:
            text, note = array
            if note:
                self.notes.append(f"{name}: {note}")
            return text
        if len(self._described) > _MAX_VALUES:
            self.notes.append(f"{name} and what follows refer to too many values: the rest is not covered.")
            return "…"
        if isinstance(value, list | tuple | set | frozenset | dict | types.MappingProxyType):
            return self._container(value, name, depth)
        return self._object(value, name, depth)

    def named(self, values: Mapping[str, Any], name: str, depth: int = 0) -> list[str]:
        """Return one line for each named value, by name."""
        return [f"{key} = {self.describe(values[key], f'{name}.{key}', depth + 1)}" for key in sorted(values)]

    def _container(self, value: Any, name: str, depth: int) -> str:
        if len(value) > _MAX_ITEMS:
            self.notes.append(f"{name} has more than {_MAX_ITEMS} items: only its size is covered.")
            return f"{type(value).__name__} of {len(value)}"
        if isinstance(value, Mapping):
            items = sorted(
                f"{self.describe(k, name, depth + 1)}: {self.describe(v, name, depth + 1)}"
                for k, v in value.items()
            )
        else:
            items = [self.describe(item, name, depth + 1) for item in value]
            if isinstance(value, set | frozenset):
                items.sort()
        return f"{type(value).__name__}({', '.join(items)})"

    def _object(self, value: Any, name: str, depth: int) -> str:
        if isinstance(value, types.ModuleType):
            if not is_library(getattr(value, "__file__", None)):
                self.notes.append(f"{name}: of the module {value.__name__} only the name is covered.")
            return f"module {value.__name__}"
        if inspect.isfunction(value):
            return self._function_reference(value, name, depth)
        if isinstance(value, types.MethodType):
            owner = self.describe(value.__self__, name, depth + 1)
            return f"method {self.describe(value.__func__, name, depth + 1)} of {owner}"
        if isinstance(value, functools.partial):
            parts = [self.describe(value.func, name, depth + 1), *self._arguments(value, name, depth)]
            return f"partial({', '.join(parts)})"
        if isinstance(value, type):
            return self._class_reference(value)
        if is_module(value):
            return self._torch_module(value, name, depth)
        if any(base.__module__ == _GENERATED_KERNEL for base in type(value).__mro__):
            return f"generated kernel {source_digest(value.source)}"
        wrapped = wrapped_by(value)
        if wrapped:
            return f"{qualified_name(type(value))} around {self.describe(wrapped[0], name, depth + 1)}"
        if isinstance(
            value, types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType
        ):
            return f"builtin {qualified_name(value)}"
        if isinstance(value, np.ufunc):
            if "(vectorized)" in value.__name__:
                self.notes.append(f"{name} was made of a Python function by NumPy: only its name is covered.")
            return f"ufunc {value.__name__}"
        return self._instance(value, name, depth)

    def _arguments(self, value: functools.partial[Any], name: str, depth: int) -> Iterator[str]:
        for item in value.args:
            yield self.describe(item, name, depth + 1)
        yield from self.named(value.keywords, name, depth)

    def _function_reference(self, value: Any, name: str, depth: int) -> str:
        if not is_library(value.__code__.co_filename):
            return f"function {self._number(value)}"
        wrapped = wrapped_by(value)
        text = f"function {value.__code__.co_qualname if wrapped else qualified_name(value)}"
        if wrapped:
            return f"{text} around {self.describe(wrapped[0], name, depth + 1)}"
        captured = [self.describe(item, name, depth + 1) for _, item in closure(value)]
        return f"{text} with {', '.join(captured)}" if captured else text

    def _class_reference(self, value: type) -> str:
        if is_library(file_of(value)):
            return f"class {qualified_name(value)}"
        return f"class {self._number(value)}"

    def _torch_module(self, value: Any, name: str, depth: int) -> str:
        lines = []
        for path, module in value.named_modules():
            here = f"{name}.{path}" if path else name
            state = {k: v for k, v in vars(module).items() if not k.startswith("_") and not is_module(v)}
            lines.append(
                f"{path or 'module'}: {self._class_reference(type(module))} "
                f"{{{', '.join(self.named(state, here, depth))}}}"
            )
            if any(vars(module).get(hooks) for hooks in ("_forward_hooks", "_forward_pre_hooks")):
                self.notes.append(f"{here} has forward hooks: they are not covered.")
        tensors = [("parameter", *item) for item in value.named_parameters()]
        tensors += [("buffer", *item) for item in value.named_buffers()]
        for kind, path, tensor in tensors:
            # The weights of the reference itself are inputs; those of a module that it uses are constants.
            if depth == 0:
                text = f"{str(tensor.dtype).rsplit('.', 1)[-1]}{list(tensor.shape)}"
            else:
                text = self.describe(tensor, f"{name}.{path}", depth + 1)
            lines.append(f"{kind} {path}: {text}")
        return "; ".join(lines)

    def _instance(self, value: Any, name: str, depth: int) -> str:
        kind = self._class_reference(type(value))
        own_name = getattr(value, "__name__", None) or getattr(value, "name", None)
        if is_library(file_of(type(value))):
            state = {k: v for k, v in state_of(value).items() if not k.startswith("_")}
            if not state and not isinstance(own_name, str):
                self.notes.append(f"{name} is covered by its type, {qualified_name(type(value))}, only.")
        else:
            state = state_of(value)
        text = f"{kind} {own_name}" if isinstance(own_name, str) else kind
        return f"{text} {{{', '.join(self.named(state, name, depth))}}}" if state else text

    def _number(self, value: Any) -> str:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._numbers) + 1
            self._kept.append(value)  # classes of values are numbered without having been described
            self._waiting.append((self._numbers[id(value)], value))
        return f"#{self._numbers[id(value)]}"

    def _function(self, value: Any) -> tuple[list[str], list[str]]:
        code = value.__code__
        node = find_definition(code)
        if node is None:
            self.notes.append(
                f"The source of {value.__qualname__} was not found: its byte code is covered, "
                "which depends on the version of Python."
            )
            readable = [f"{value.__qualname__}, byte code {code_digest(code)}"]
            canonical = readable
        else:
            readable = ast.unparse(node).splitlines()
            canonical = [canonical_source(node)]
        captured = sorted(closure(value), key=lambda item: item[0])
        context = [f"captures {n} = {self.describe(v, n, 1)}" for n, v in captured]
        context += [f"reads {n} = {self.describe(v, n, 1)}" for n, v in globals_read(value)]
        if value.__defaults__:
            context.append(f"defaults {self.describe(value.__defaults__, value.__qualname__)}")
        if value.__kwdefaults__:
            context.append(f"keyword defaults {self.describe(value.__kwdefaults__, value.__qualname__)}")
        return readable + context, canonical + context

    def _class(self, value: type) -> tuple[list[str], list[str]]:
        lines = [f"class {value.__qualname__}"]
        lines += [f"base {self._class_reference(base)}" for base in value.__bases__ if base is not object]
        for name, member in sorted(vars(value).items()):
            if is_generated(name, member):
                continue
            for part, function in members(name, member):
                lines.append(f"{part} = {self.describe(function, f'{value.__qualname__}.{part}', 1)}")
        return lines, lines


def _short(text: str) -> str:
    """Return a long text as its hash: what is referred to from many places must not grow with each of them."""
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:80]}… {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
