"""Where a cell magic stands in its cell: the body is taken verbatim, a magic below code is explained."""

from __future__ import annotations

import ast
import re

from llmkernel.errors import UsageError
from llmkernel.magics.parsing import shown


class CellPlacement:
    """An input transformer for IPython's clean-up stage.

    IPython refuses a cell magic without a body by a message of its own, and strips trailing blanks from blank
    lines. Here the body is taken as it was typed, an empty one reaches the magic, and a magic below a comment
    or other code is explained.

    Parameters
    ----------
    names : tuple of str
        The cell magics this is for; all others are left alone.
    """

    # IPython also asks its transformers whether a cell is complete, but not those with this mark. It must see
    # the cell as it was typed, or a terminal would run it before its body is written.
    has_side_effects = True

    def __init__(self, names: tuple[str, ...]) -> None:
        self._first = re.compile(rf"%%({'|'.join(map(re.escape, names))})(?![\w?])[ \t]*(.*)", re.DOTALL)

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the cell's lines, rewritten where its first line is one of the magics.

        Raises
        ------
        llmkernel.errors.UsageError
            When one of the magics stands below something else.
        """
        at = next((i for i, line in enumerate(lines) if line.strip()), None)
        if at is None:
            return lines
        found = self._first.match(lines[at].lstrip())
        if found:
            name, arguments = found.groups()
            body = "".join(lines[at + 1 :])
            return [f"get_ipython().run_cell_magic({name!r}, {arguments.strip()!r}, {body or chr(10)!r})\n"]
        if not lines[at].lstrip().startswith("%%"):
            self._refuse_misplaced(lines)
        return lines

    def _refuse_misplaced(self, lines: list[str]) -> None:
        for i, line in enumerate(lines):
            found = self._first.match(line.lstrip())
            if found and _is_complete_code(lines[:i]):
                raise UsageError(
                    f"%%{found[1]} stands on line {i + 1} of its cell.",
                    rule="A cell magic is the first line of its cell.",
                    received=shown(line),
                    next_step="Move what is above it to another cell; a comment may go below it.",
                )


def _is_complete_code(lines: list[str]) -> bool:
    # Inside an open string or bracket the line is text, not a magic.
    try:
        ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return False
    return True
