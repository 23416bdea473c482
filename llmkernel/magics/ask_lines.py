"""``%ask why is x nan?`` is a question, not a request for IPython's help on ``nan``."""

from __future__ import annotations

import io
import re
import tokenize

_LINE = re.compile(r"(?P<indent>[ \t]*(?:[^\W\d]\w*[ \t]*=[ \t]*)?)%ask(?P<rest>[ \t].*)?$", re.DOTALL)
# What is no Python above the line in question: magics, shell commands and help.
_FOREIGN = re.compile(r"^([ \t]*)(?:[%!?].*|[^\"'#()\[\]{}\n]*\?)$", re.MULTILINE)


class AskLines:
    """An input transformer for IPython's clean-up stage.

    Takes each ``%ask`` line as it was typed, before IPython reads a question mark at its end as its own, and
    its apostrophes as the beginnings of strings.
    """

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the cell's lines, ``%ask`` lines rewritten into calls."""
        first = next((line for line in lines if line.strip()), "")
        if first.lstrip().startswith("%%"):
            return lines
        made: list[str] = []
        for line in lines:
            found = _LINE.match(line.rstrip("\r\n"))
            if found and not is_text_open("".join(made)):
                question = (found["rest"] or "").strip()
                line = f"{found['indent']}get_ipython().run_line_magic('ask', {question!r})\n"
            made.append(line)
        return made


def is_text_open(above: str) -> bool:
    """Whether a string or a bracket that was opened in `above` is not closed there."""
    code = _FOREIGN.sub(r"\1pass", above)
    try:
        for _ in tokenize.generate_tokens(io.StringIO(code).readline):
            pass
    except tokenize.TokenError as error:
        return "EOF in multi-line" in str(error) or "unterminated triple" in str(error)
    except SyntaxError:  # bad indentation: not ours to report
        return False
    return False
