"""What a question puts below: a corrected cell, the answer's code, an edited kernel. Nothing of it is run."""

from __future__ import annotations

import re
from typing import Any

from llmkernel.candidate.reply import Block, find_blocks
from llmkernel.errors import LLMKernelError
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.parsing import parse_line
from llmkernel.magics.session import get_session

_PYTHON = ("python", "py", "python3", "ipython", "ipython3")
_MAKES_KERNEL = re.compile(r"\s*%%(?P<magic>cuda_from|cuda)[ \t]+(?P<line>[^\n]*)")
_KEPT_OPTIONS = ("inputs", "shapes", "tolerance", "device", "arch")


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
    """Return what the notebook calls the reference, by value; its own name where nothing has it."""
    made = kernel.problem.reference
    names: dict[str, Any] = {n: v for n, v in ipython.user_ns.items() if not n.startswith("_")}
    if made.name in names and _is_same(names[made.name], made.function):
        return str(made.name)
    for name, value in names.items():
        if _is_same(value, made.function):
            return name
    own = str(getattr(made.function, "__name__", made.name))
    for name, value in names.items():
        if _is_same(getattr(value, own, None), made.function):
            return f"{name}.{own}"
    return str(made.name)


def _is_same(value: Any, function: Any) -> bool:
    # Bound methods are made anew at each look: they are equal, not the same.
    is_method = hasattr(function, "__self__") and type(value) is type(function)
    return value is function or (is_method and bool(value == function))


def _options_of_cell(ipython: Any, name: str) -> list[str]:
    magics = {"cuda_from": CudaFromMagics.cuda_from, "cuda": CudaMagics.cuda}
    for cell in reversed(get_session(ipython).cells):
        found = _MAKES_KERNEL.match(cell.text)
        if not found:
            continue
        try:
            given = vars(parse_line(magics[found["magic"]], found["line"]))
        except LLMKernelError:
            continue
        if (given["name"] or f"{given['reference'].rpartition('.')[2]}_cuda") != name:
            continue
        words = [f"--{option} {_written(option, given[option])}" for option in _KEPT_OPTIONS if given[option]]
        return [*words, *(f"--baseline {b}" for b in given["baseline"] or ())]
    return []


def _written(option: str, value: Any) -> str:
    """Return a value as the line takes it."""
    if option == "shapes":
        value = ";".join(",".join(f"{k}={v}" for k, v in sizes.items()) for sizes in value)
    text = str(value)
    if not re.search(r"[\s\"';]", text):
        return text
    # Neighbouring quotations are one word.
    return "'\"'".join(f'"{part}"' for part in text.split('"')) if '"' in text else f'"{text}"'
