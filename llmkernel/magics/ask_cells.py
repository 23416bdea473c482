"""What a question puts below: a corrected cell, the answer's code, an edited kernel. Nothing of it is run."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from llmkernel.candidate.reply import Block, find_blocks
from llmkernel.errors import LLMKernelError
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.parsing import options_of, parse_line, split_line
from llmkernel.magics.session import get_session

_PYTHON = ("python", "py", "python3", "ipython", "ipython3")
_MAKES_KERNEL = re.compile(r"\s*%%(?P<magic>cuda_from|cuda)[ \t]+(?P<line>[^\n]*)")


def corrected_cell(answer: str) -> str | None:
    """Return the whole cell that an answer holds; None where there is none, or more than one may be meant."""
    blocks = find_blocks(answer)
    found = [b for b in blocks if b.tag in _PYTHON] or (list(blocks) if len(blocks) == 1 else [])
    return _text(found[-1]) if found else None


def answer_code(answer: str) -> str | None:
    """Return the Python of an answer as one cell: a front end takes one cell at a time."""
    found = [_text(b) for b in find_blocks(answer) if b.tag in _PYTHON]
    # A cell magic takes a cell for itself.
    if len(found) > 1:
        found = [text for text in found if not text.startswith("%%")]
    return "\n\n".join(found) or None


def _text(block: Block) -> str:
    return block.text.rstrip("\n")


def kernel_cell(ipython: Any, kernel: Any, source: str) -> str:
    """Return a ``%%cuda`` cell that judges `source` as `kernel` was judged.

    The options are those of the cell that made the kernel, where this session ran it.
    """
    name, reference = kernel.problem.name, _reference_name(ipython, kernel)
    words = [f"%%cuda {name} --from {reference}", *_options_of_cell(ipython, name)]
    return " ".join(words) + "\n" + source.rstrip("\n")


def _reference_name(ipython: Any, kernel: Any) -> str:
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


def _options_of_cell(ipython: Any, name: str) -> list[str]:
    """Return the options that the cell which made `name` has in common with ``%%cuda``."""
    magics = {"cuda_from": CudaFromMagics.cuda_from, "cuda": CudaMagics.cuda}
    for cell in reversed(get_session(ipython).cells):
        found = _MAKES_KERNEL.match(cell.text)
        if not found:
            continue
        try:
            given = vars(parse_line(magics[found["magic"]], found["line"]))
        except LLMKernelError:
            continue
        if (given["name"] or f"{(given['reference'] or '').rpartition('.')[2]}_cuda") == name:
            return list(_kept_words(found["line"]))
    return []


def _kept_words(line: str) -> Iterator[str]:
    known = options_of(CudaMagics.cuda.parser)  # type: ignore[attr-defined]
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
