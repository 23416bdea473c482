"""Rewriting of `extern __shared__`: the one declaration that no macro can express.

Static shared memory is thread-local memory of the module, by a macro. Dynamic shared memory is one thread-local
array of the runner: a declaration in a function becomes a reference to it, under the declared name and type; one
outside gets the array's symbol (which g++ would ignore inside a template).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

from llmkernel.devices.cpu.lexing import blank_comments

_SPECIFIERS = r"(?:(?:static|volatile|inline|const)\s+)*"
# Every shared declaration that the macro alone does not make right.
_DECLARATION = re.compile(
    rf"\b(?:extern\s+{_SPECIFIERS}__shared__|__shared__\s+{_SPECIFIERS}extern"
    r"|static\s+__shared__|__shared__\s+static|__shared__\s+(?=alignas\b))\b"
)
_KEYWORDS = re.compile(r"\b(?:extern|static|inline|__shared__)\b")
_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_ALIGNMENT = re.compile(rf"(?:\b__align__|\balignas|\b__attribute__|\b__builtin_align__)\s*{_PARENTHESES}")
_ALIGNAS = re.compile(rf"\balignas\s*{_PARENTHESES}")
_ARRAY = re.compile(
    r"(?P<type>[^\[\],]*[\s*&>])(?P<name>[A-Za-z_]\w*)\s*(?P<dims>\[\s*\](?:\s*\[[^\[\]]*\])*)\s*", re.DOTALL
)
_OUTSIDE_FUNCTIONS = re.compile(r"(?:\bnamespace\b[\s\w:]*|\bextern\s+)\s*\Z")
_SYMBOL = "cpu_device_shared"


def rewrite_shared(source: str) -> str:
    """Return `source` with its dynamic shared memory bound to the runner's; every line keeps its number."""
    blanked = blank_comments(source)
    pieces: list[str] = []
    done = 0
    for match in _DECLARATION.finditer(blanked):
        end = blanked.find(";", match.end())
        if end < 0:
            break
        text = blanked[match.start() : end]
        is_dynamic = "extern" in match.group(0)
        rest = _KEYWORDS.sub("", text)
        pieces.append(source[done : match.start()])
        if not is_dynamic:
            pieces.append(_declared("__shared__", rest))
        elif is_in_function(blanked, match.start()):
            pieces.append(_reference(rest) or _labelled(rest))
        else:
            pieces.append(_labelled(rest))
        done = end
    return "".join(pieces) + source[done:]


def _reference(declaration: str) -> str | None:
    array = _ARRAY.fullmatch(_ALIGNMENT.sub(_newlines_of, declaration).lstrip(" \t"))
    if not array:
        return None
    base, name, dims = array["type"], array["name"], " ".join(array["dims"].split())
    # The line breaks of the declaration stay once, in its type.
    return f"{base} (&{name}){dims} = *({' '.join(base.split())} (*){dims}){_SYMBOL}"


def _labelled(declaration: str) -> str:
    # Its assembler name is that of the runner's array (cpu_device/prelude.h).
    return _declared("extern __thread", declaration) + " CPU_DEVICE_DYNAMIC_SHARED"


def _declared(keywords: str, declaration: str) -> str:
    # CUDA's keywords are attributes, after which `alignas` may stand; after C++'s own it may not.
    alignments = " ".join(" ".join(m.group(0).split()) + " " for m in _ALIGNAS.finditer(declaration))
    return f"{alignments}{keywords} {_ALIGNAS.sub(_newlines_of, declaration)}"


def _newlines_of(match: re.Match[str]) -> str:
    return "\n" * match.group(0).count("\n")


def is_in_function(blanked: str, offset: int) -> bool:
    """Whether the innermost braces around `offset` are other than a namespace's or those of `extern "C"`."""
    places, are_in_function = _braces(blanked)
    before = bisect_left(places, offset) - 1
    return before >= 0 and are_in_function[before]


@lru_cache(maxsize=2)
def _braces(blanked: str) -> tuple[list[int], list[bool]]:
    """Return where the braces are, and of what is behind each whether it is in a function."""
    places: list[int] = []
    are_in_function: list[bool] = []
    outer: list[bool] = []
    for match in re.finditer(r"[{}]", blanked):
        at = match.start()
        if match.group() == "{":
            outer.append(not _OUTSIDE_FUNCTIONS.search(blanked, max(0, at - 200), at))
        elif outer:
            outer.pop()
        places.append(at)
        are_in_function.append(bool(outer) and outer[-1])
    return places, are_in_function
