"""Where a cell magic stands in its cell: the body is taken verbatim, a magic below code is explained."""

from __future__ import annotations

import re
from collections.abc import Callable

from llmkernel.errors import UsageError
from llmkernel.magics.ask_lines import is_text_open
from llmkernel.magics.parsing import nearest, shown

# What could be the name of a magic, also with a blank behind the sign, a dash, or another case.
_MAGIC = re.compile(r"(?P<sign>%%?)(?P<blank>[ \t]*)(?P<name>[A-Za-z_][\w-]*)(?![?\w.=(\[])")


class CellPlacement:
    """An input transformer for IPython's clean-up stage.

    IPython refuses a cell magic without a body by a message of its own, and strips trailing blanks from blank
    lines. Here the body is taken as it was typed, an empty one reaches the magic, and a magic below a comment
    or other code, or a name that is nearly one of ours, is explained.

    Parameters
    ----------
    names : tuple of str
        The cell magics this is for; all others are left alone.
    line_names : tuple of str
        The line magics whose misspelt names are explained.
    is_known : callable
        Whether the shell has a magic, from kind (``cell`` or ``line``) and name.
    """

    # IPython also asks its transformers whether a cell is complete, but not those with this mark. It must see
    # the cell as it was typed, or a terminal would run it before its body is written.
    has_side_effects = True

    def __init__(
        self, names: tuple[str, ...], line_names: tuple[str, ...], is_known: Callable[[str, str], bool]
    ) -> None:
        self._names = {"%%": names, "%": line_names}
        self._is_known = is_known
        self._first = re.compile(rf"%%({'|'.join(map(re.escape, names))})(?![\w?-])[ \t]*(.*)", re.DOTALL)

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the cell's lines, rewritten where its first line is one of the magics.

        Raises
        ------
        llmkernel.errors.UsageError
            When one of the magics stands below something else, or its name is misspelt.
        """
        at = next((i for i, line in enumerate(lines) if line.strip()), None)
        if at is None:
            return lines
        found = self._first.match(lines[at].lstrip())
        if found:
            name, arguments = found.groups()
            body = "".join(lines[at + 1 :])
            return [f"get_ipython().run_cell_magic({name!r}, {arguments.strip()!r}, {body or chr(10)!r})\n"]
        if lines[at].lstrip().startswith("%"):
            self._refuse_misspelt(lines[at].strip())
        if not lines[at].lstrip().startswith("%%"):
            self._refuse_misplaced(lines)
        return lines

    def _refuse_misspelt(self, line: str) -> None:
        found = _MAGIC.match(line)
        if found is None:
            return
        sign, name = found["sign"], found["name"]
        if not found["blank"] and self._is_known("cell" if sign == "%%" else "line", name):
            return
        meant = nearest(name.lower().replace("-", "_"), self._names[sign], 0.75)
        if meant:
            raise UsageError(
                f"There is no magic {shown(found[0])}.",
                received=shown(line),
                next_step=f"Did you mean {sign}{meant}? {sign}{meant}? explains it.",
            )

    def _refuse_misplaced(self, lines: list[str]) -> None:
        for i, line in enumerate(lines):
            found = self._first.match(line.lstrip())
            if found and not is_text_open("".join(lines[:i])):
                raise UsageError(
                    f"%%{found[1]} stands on line {i + 1} of its cell.",
                    rule="A cell magic is the first line of its cell.",
                    received=shown(line),
                    next_step="Move what is above it to another cell; a comment may go below it.",
                )
