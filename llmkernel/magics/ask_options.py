"""The line of ``%ask`` and ``%%ask``: options first, and then a question that is nobody's syntax."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from IPython.core.magic_arguments import argument, argument_group

from llmkernel.errors import UsageError
from llmkernel.magics import parsing

ASK_ARGUMENTS = (
    argument(
        "question",
        metavar="QUESTION",
        nargs="*",
        help="""The rest of the line, as it stands; a cell's further lines are added to it. With an error or
        --fix it may be left out.""",
    ),
    argument_group("what is sent along"),
    argument(
        "--context",
        metavar="NAMES",
        action="append",
        help="Variables of the notebook: x,y or model.weight. Arrays are described, never sent.",
    ),
    argument(
        "--error",
        action="store_true",
        default=None,
        help="The last exception and its cell. Default: when the cell before this one failed.",
    ),
    argument(
        "--no-error", dest="error", action="store_false", default=None, help="Leave the last exception out."
    ),
    argument(
        "--cells",
        metavar="N",
        type=parsing.positive_int,
        help="The texts of the last N cells that were run.",
    ),
    argument(
        "--kernel",
        metavar="NAME",
        help="A generated kernel: its source, reference, report and timing.",
    ),
    argument_group("what becomes of the answer"),
    argument(
        "--fix",
        action="store_true",
        help="""Put a corrected cell below, and show what changes. With --kernel: a changed kernel, once it
        has passed the whole evaluation.""",
    ),
    argument("--code", action="store_true", help="Put the answer's code into a cell below."),
    argument_group("who answers"),
    argument("--provider", metavar="NAME", help="claude, codex, openai-compatible or an installed plug-in."),
    argument("--model", metavar="ID", help="Model id, in the provider's own words."),
    argument("--effort", metavar="LEVEL", help="Reasoning effort, in the provider's own words."),
    argument(
        "--max-tokens",
        metavar="N",
        type=parsing.positive_int,
        help="Limit of the answer in tokens, reasoning included.",
    ),
    argument_group("the conversation"),
    argument(
        "--show-context",
        action="store_true",
        help="Show exactly what would be sent, with its tokens, and stop: nothing is sent.",
    ),
    argument("--sent", action="store_true", help="Show exactly what was sent last, and stop."),
    argument("--reset", action="store_true", help="Forget earlier questions and answers."),
)

_WORD = re.compile(r"\S+")
_VALUE = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """One question; `ASK_ARGUMENTS` has the meanings.

    Attributes
    ----------
    question : str
        Verbatim; empty where none was asked.
    context : tuple of str
        Dotted names.
    error : bool or None
        None where the line says nothing.
    """

    question: str
    context: tuple[str, ...]
    error: bool | None
    cells: int
    kernel: str | None
    fix: bool
    code: bool
    provider: str | None
    model: str | None
    effort: str | None
    max_tokens: int | None
    show_context: bool
    sent: bool
    reset: bool


def parse_ask(magic: Callable[..., Any], line: str, cell: str | None) -> AskOptions:
    """Parse the line and the body of ``%ask`` (`cell` is None) or ``%%ask``.

    Raises
    ------
    llmkernel.errors.UsageError
        For an unknown option, a bad value, or an option behind the beginning of the question.
    """
    parser = parsing.parser_of(magic)
    prefix = "%" if cell is None else "%%"
    words, question = split_ask_line(parser, line, prefix)
    given = vars(parsing.parse_line(magic, words, prefix=prefix))
    body = (cell or "").strip()
    given["question"] = f"{question}\n\n{body}" if question and body else question or body
    given["context"] = _names(given["context"] or [])
    given["cells"] = given["cells"] or 0
    options = AskOptions(**given)
    if options.fix and options.code:
        raise UsageError(
            "--fix and --code exclude each other.",
            rule="One cell is put below: the corrected one, or the answer's code.",
            next_step="Leave one of them out.",
        )
    return options


def split_ask_line(parser: ArgumentParser, line: str, prefix: str = "%") -> tuple[str, str]:
    """Split a line into its options and its question, which is kept as it stands.

    The question begins at the first word that is no option, or behind a lone ``--``.

    Raises
    ------
    llmkernel.errors.UsageError
        For an unknown option before the question, or a known one within it.
    """
    known = parsing.options_of(parser)
    name = f"{prefix}{parser.prog}"
    place = 0
    while found := _WORD.search(line, place):
        word, equals, _ = found[0].partition("=")
        if found[0] == "--":
            return line[:place].strip(), line[found.end() :].strip()
        if not re.match(r"--[A-Za-z]", word):
            break
        if word not in known:
            raise UsageError(
                f"{name} has no option {parsing.shown(word)}.",
                rule="Options stand before the question.",
                next_step=f"{parsing.suggestion(word, known)}A question that begins so stands behind a lone --: "
                f"{name} -- {parsing.shown(line[place:].strip())}",
            )
        place = found.end()
        if known[word].nargs != 0:
            # The value may be quoted, and hold blanks then.
            value = _VALUE.search(line, found.start() + len(word) + 1 if equals else place)
            place = value.end() if value else place
    question = line[place:].strip()
    for word in question.split():
        if word.partition("=")[0] in known:
            raise UsageError(
                f"{word} stands within the question.",
                rule="Options stand before the question; the rest of the line is sent as it is.",
                received=parsing.shown(line),
                next_step=f"Move it to the front. To send it as part of the question, put a lone -- before that: "
                f"{name} -- {parsing.shown(question)}",
            )
    return line[:place].strip(), question


def _names(groups: list[str]) -> tuple[str, ...]:
    names = [name.strip() for group in groups for name in group.split(",") if name.strip()]
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise UsageError(
                "--context takes names.",
                rule="Names of variables, joined by commas: x,y or model.weight. Nothing is evaluated.",
                received=parsing.shown(name),
                next_step="Give the value a name first.",
            )
    return tuple(dict.fromkeys(names))
