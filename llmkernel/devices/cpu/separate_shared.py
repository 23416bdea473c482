"""Static shared memory in checked mode: each variable of a function in a place of its own.

As thread-local variables they would lie side by side, and an overrun of one would be a legal access to the next. The
declaration becomes the body of a struct, which keeps its types whatever they are, and each name a reference.
"""

from __future__ import annotations

import re

from llmkernel.devices.cpu.lexing import blank_comments
from llmkernel.devices.cpu.shared_memory import is_in_function

_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_SPECIFIERS = (
    rf"(?:(?:static|volatile|const|inline|__device__"
    rf"|(?:alignas|__align__|__attribute__|__builtin_align__)\s*{_PARENTHESES})\s*)*"
)
_DECLARATION = re.compile(rf"(?<![\w$]){_SPECIFIERS}\b__shared__\b(?!\s*(?:extern\b|{_SPECIFIERS}extern\b))")
_KEYWORDS = re.compile(r"\b(?:static|inline|__shared__|__device__)\b")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\[\]]*\]\s*)*\Z")


def separate_shared(source: str) -> str:
    """Return `source` with the static shared variables of functions set apart; every line keeps its number.

    A declaration that cannot be read stays as it is: its memory is still watched, without a gap after it.
    """
    blanked = blank_comments(source)
    pieces: list[str] = []
    done = 0
    for number, match in enumerate(_DECLARATION.finditer(blanked)):
        start = match.start()
        end = _end_of_statement(blanked, match.end())
        if end < 0 or start < done or not _begins_statement(blanked, start):
            continue
        if not is_in_function(blanked, start):
            continue
        declaration = _KEYWORDS.sub("", blanked[start:end])
        names = _names(declaration)
        if not names:
            continue
        holder = f"cpu_device_holder_{number}"
        references = " ".join(f"CPU_DEVICE_SHARED({holder}, {name})" for name in names)
        # The literal text of comments is gone, its line breaks are not.
        pieces += [source[done:start], f"struct {holder} {{{declaration};}}; {references}"]
        done = end + 1
    return "".join(pieces) + source[done:]


def _begins_statement(blanked: str, start: int) -> bool:
    before = blanked[:start].rstrip()
    line = before[before.rfind("\n") + 1 :].lstrip()
    # A directive ends with its line; inside of one there is no declaration.
    is_directive = line.startswith("#")
    begins_line = "\n" in blanked[len(before) : start]
    return begins_line if is_directive else not before or before[-1] in ";{}"


def _end_of_statement(blanked: str, at: int) -> int:
    depth = 0
    for i in range(at, len(blanked)):
        depth += (blanked[i] == "{") - (blanked[i] == "}")
        if depth < 0:
            return -1
        if blanked[i] == ";" and depth == 0:
            return i
    return -1


def _names(declaration: str) -> list[str] | None:
    """Return what is declared; None where a declarator is not a plain name or array."""
    names = []
    for part in _declarators(declaration):
        match = _NAME.search(part.rstrip())
        if match is None or "=" in part:
            return None
        names.append(match.group(1))
    return names


def _declarators(declaration: str) -> list[str]:
    parts: list[str] = []
    depth = angles = begin = 0  # an angle inside of brackets is a comparison
    for i, character in enumerate(declaration):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character in "<>" and depth == 0:
            angles += 1 if character == "<" else -1
        elif character == "," and depth == angles == 0:
            parts.append(declaration[begin:i])
            begin = i + 1
    return [*parts, declaration[begin:]]
