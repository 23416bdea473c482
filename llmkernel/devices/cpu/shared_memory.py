"""Rewriting of `extern __shared__`: the one declaration that no macro can express.

Static shared memory is thread-local memory of the module, by a macro. Dynamic shared memory is one thread-
local array of the runner, under whatever name and type a kernel declares it: the declaration keeps both and gets the
array's symbol.
"""

from __future__ import annotations

import re

from llmkernel.devices.cpu.lexing import blank_comments

_SPECIFIERS = r"(?:(?:static|volatile|inline|const)\s+)*"
_DECLARATION = re.compile(
    rf"\b(?:extern\s+{_SPECIFIERS}__shared__|__shared__\s+{_SPECIFIERS}extern|static\s+__shared__|__shared__\s+static)\b"
)
_SYMBOL = ' __asm__("cpu_device_shared")'


def rewrite_shared(source: str) -> str:
    """Return `source` with its dynamic shared memory bound to the runner's; every line keeps its number."""
    blanked = blank_comments(source)
    pieces: list[str] = []
    done = 0
    for match in _DECLARATION.finditer(blanked):
        end = blanked.find(";", match.end())
        if end < 0:
            break
        keywords = source[match.start() : match.end()]
        is_dynamic = "extern" in keywords
        keywords = re.sub(r"\b(?:extern|static)\b", "", keywords)
        keywords = keywords.replace("__shared__", "extern __thread" if is_dynamic else "__shared__")
        pieces += [source[done : match.start()], keywords, source[match.end() : end]]
        if is_dynamic:
            pieces.append(_SYMBOL)
        done = end
    return "".join(pieces) + source[done:]
