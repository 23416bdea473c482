"""Which headers a candidate may include. A host compiler would read any file that it is pointed at."""

from __future__ import annotations

import re
from pathlib import Path

from llmkernel.candidate.lexer import tokenize
from llmkernel.devices.base import Diagnostic
from llmkernel.devices.cpu.lexing import blank_comments, line_of
from llmkernel.errors import CompileError

HEADERS = Path(__file__).parent / "include"
PACKAGE_HEADERS = Path(__file__).parent.parent / "include"

_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(\w+)[ \t]*(.*)$", re.MULTILINE)
_CONTINUATION = re.compile(r"\\[ \t]*\r?\n")
_NAME = re.compile(r"[<\"]([\w./+-]+)[>\"]\s*$")
# What reads a file, or changes what the compiler calls the source's lines.
_READING = {"include", "include_next", "import", "embed", "line"}
_UNROLL = re.compile(r'\b_Pragma\s*\(\s*"(?:no)?unroll[^"]*"\s*\)')
_ASKING = re.compile(r"\b(?:__has_include\w*|__has_embed|_Pragma)\b")
_READING_PRAGMA = re.compile(r"\bcomment\b|\bdependency\b|\binclude_alias\b|\bmodule\b|\bsystem_header\b")


def refuse_foreign_includes(source: str) -> None:
    """Raise unless every header that `source` includes is one of ours.

    Raises
    ------
    llmkernel.errors.CompileError
        With a diagnostic for each refused directive.
    """
    # A backslash at the end of a line joins it with the next: look at what the compiler will see.
    text = blank_comments(source, keeps_strings=True)
    joined, places = _join_lines(text)
    diagnostics: dict[int, Diagnostic] = {}
    found = [(m.group(), line_of(text, places[m.start()])) for m in _DIRECTIVE.finditer(joined)]
    # Twice, by two readers: what hides a line from one, such as a quote in an unused macro, does not from the other.
    found += [(token.text, token.line) for token in tokenize(source) if token.kind == "directive"]
    for directive, line in found:
        match = _DIRECTIVE.match(directive)
        word, rest = (match.group(1), match.group(2).strip()) if match else ("", "")
        if word not in _READING and not (word == "pragma" and _READING_PRAGMA.search(rest)):
            continue
        name = _NAME.match(rest)
        if word == "include" and name and is_ours(name.group(1)):
            continue
        message = f"#{word} {rest}: " + (
            "no such header on the cpu device"
            if word == "include"
            else "this directive is not allowed in a candidate"
        )
        diagnostics.setdefault(line, Diagnostic("error", line, 1, message))
    joined = _UNROLL.sub("", joined)
    refused = [diagnostics[line] for line in sorted(diagnostics)]
    refused += [
        Diagnostic("error", 0, 0, f"{word} is not allowed in a candidate") for word in _ASKING.findall(joined)
    ]
    if refused:
        raise CompileError(
            "The source includes what the cpu device does not have.",
            diagnostics=tuple(refused),
            log="\n".join(f"{d.line}: {d.message}" for d in refused),
            rule="A candidate includes CUDA's own headers and the C++ headers that NVRTC programs use.",
            received=refused[0].message,
            next_step="Remove the include; a candidate stands alone.",
        )


def is_ours(name: str) -> bool:
    """Whether `name` is a header that the package ships."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        return False
    return (HEADERS / path).is_file() or (PACKAGE_HEADERS / path).is_file()


def _join_lines(text: str) -> tuple[str, list[int]]:
    """Return the text without continued lines, and where each of its characters was."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for match in _CONTINUATION.finditer(text):
        pieces.append(text[at : match.start()])
        places += range(at, match.start())
        at = match.end()
    pieces.append(text[at:])
    places += range(at, len(text) + 1)
    return "".join(pieces), places
