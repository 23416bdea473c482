"""What a question puts below: a corrected cell, or the answer's code. Nothing of it is run."""

from __future__ import annotations

from llmkernel.candidate.reply import Block, find_blocks

_PYTHON = ("python", "py", "python3", "ipython", "ipython3")


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
