"""Alignment checks that clang leaves out: of whole vectors that are copied, as in ``float4 v = *p``.

clang's ``-fsanitize=alignment`` looks at members and references only, and its optimiser splits a copy into loads that
have less to be aligned to. Between its front end and its optimiser every copy still says what both sides are aligned
to: that is where a check is put in front of it.
"""

from __future__ import annotations

import re

_SIDE = r"ptr (?:(?!align)[a-z_]+(?:\([^()]*\))? )*align (\d+) (?:[a-z_]+(?:\([^()]*\))? )*(%[\w.$-]+)"
_COPY = re.compile(
    rf"^ *call void @llvm\.memcpy\.p0\.p0\.i64\({_SIDE}, {_SIDE}, i64 \d+, i1 \w+\)", re.MULTILINE
)
_LOCATION = re.compile(r"!dbg !\d+")
_LOCAL = re.compile(r"^ *(%[\w.$-]+) = alloca\b", re.MULTILINE)
_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)


def check_copies(listing: str) -> str:
    """Return clang's textual output with a check ahead of every copy whose sides may be misaligned.

    Parameters
    ----------
    listing : str
        LLVM IR as the front end writes it, before any pass.
    """
    return _FUNCTION.sub(lambda function: _check_function(function.group()), listing)


def _check_function(text: str) -> str:
    if "@llvm.memcpy" not in text:
        return text
    local = set(_LOCAL.findall(text))

    def checked(copy: re.Match[str]) -> str:
        end = text.find("\n", copy.end())
        location = _LOCATION.search(text, copy.end(), end)
        suffix = f", {location.group()}" if location else ""
        to_alignment, to, from_alignment, source = copy.groups()
        calls = [
            f"  call void @cpu_device_require_alignment(ptr {name}, i64 {int(alignment) - 1}){suffix}\n"
            for name, alignment in ((source, from_alignment), (to, to_alignment))
            if name not in local and int(alignment) > 1
        ]
        return "".join(calls) + copy.group()

    return _COPY.sub(checked, text)
