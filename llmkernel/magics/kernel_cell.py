"""A ``%%cuda`` cell that is filled: the source of a kernel under the line that judges it as it was judged before."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llmkernel.errors import LLMKernelError
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.parsing import options_of, parse_line, parser_of, split_line
from llmkernel.magics.session import RunCell, get_session

_MAKES_KERNEL = re.compile(r"\s*%%(?P<magic>cuda_from|cuda)(?:[ \t]+(?P<line>[^\n]*))?(?=\n|$)")


def kernel_cell(ipython: Any, kernel: Any, source: str) -> str:
    """Return a ``%%cuda`` cell that judges `source` as `kernel` was judged.

    The options are those of the cell that made the kernel, where this session ran it.
    """
    name, reference = kernel.problem.name, reference_name(ipython, kernel)
    made = making_cell(ipython, name)
    words = [f"%%cuda {name} --from {reference}", *(made.options if made is not None else ())]
    return " ".join(words) + "\n" + source.rstrip("\n")


def reference_name(ipython: Any, kernel: Any) -> str:
    """Return what the notebook calls the reference, by value; its own name where nothing is found."""
    made = kernel.problem.reference
    names = {n: v for n, v in ipython.user_ns.items() if not n.startswith("_")}
    same = [n for n, v in names.items() if v is made.function]
    if same:
        return str(made.name) if made.name in same else same[0]
    own = str(getattr(made.function, "__name__", made.name))
    # Bound methods are made anew at each look: what they are bound to is not.
    owner = getattr(made.function, "__self__", None)
    modules = {n: v for n, v in names.items() if inspect.ismodule(v)}
    places = [n for n, v in names.items() if v is owner] if owner is not None else []
    places += [n for n, v in modules.items() if vars(v).get(own) is made.function]
    inner = getattr(made.function, "__module__", None) or ""
    places += [
        name + inner.removeprefix(module.__name__)
        for name, module in modules.items()
        if inner.startswith(f"{module.__name__}.")
        and vars(sys.modules.get(inner, module)).get(own) is made.function
    ]
    return f"{places[0]}.{own}" if places else str(made.name)


@dataclass(frozen=True)
class MakingCell:
    """A cell of this session that makes a kernel.

    Attributes
    ----------
    reference : str or None
        As its line names it; None for a kernel without one.
    options : tuple of str
        Those that ``%%cuda`` has too, as words of a line.
    cell : RunCell
    """

    reference: str | None
    options: tuple[str, ...]
    cell: RunCell


def making_cell(ipython: Any, name: str) -> MakingCell | None:
    """Return the last cell of this session that made the kernel called `name`, or tried to."""
    magics = {"cuda_from": CudaFromMagics.cuda_from, "cuda": CudaMagics.cuda}
    for cell in reversed(get_session(ipython).cells):
        found = _MAKES_KERNEL.match(cell.text)
        if not found:
            continue
        try:
            given = vars(parse_line(magics[found["magic"]], found["line"] or ""))
        except LLMKernelError:
            continue
        if (given["name"] or _default_name(given["reference"], cell.text)) == name:
            return MakingCell(given["reference"], tuple(_kept_words(found["line"] or "")), cell)
    return None


def _default_name(reference: str | None, text: str) -> str:
    if text.lstrip().startswith("%%cuda_from"):
        return f"{(reference or '').rpartition('.')[2]}_cuda"
    header = re.search(r"^//!\s*(\w+)\s*\(", text, re.MULTILINE)
    return header[1] if header else ""


def _kept_words(line: str) -> Iterator[str]:
    known = options_of(parser_of(CudaMagics.cuda))
    words = iter(split_line(line))
    for word in words:
        option, equals, value = word.partition("=")
        action = known.get(option)
        if action is None or action.nargs == 0 or option == "--from":
            continue
        value = value if equals else next(words, "")
        yield f"{option}={quoted(value)}" if value.startswith("-") else f"{option} {quoted(value)}"


def quoted(text: str) -> str:
    """Return `text` as one word of a magic's line."""
    if text and not re.search(r"[\s\"']", text):
        return text
    # Neighbouring quotations are one word.
    return "'\"'".join(f'"{part}"' for part in text.split('"'))
