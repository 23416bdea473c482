"""A magic's line through argparse, with errors that say what to write instead."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from IPython.core.error import UsageError as IPythonUsageError

from llmkernel.errors import UsageError

_SHOWN_LENGTH = 200
_LONGEST_LINE = 20_000


def split_line(line: str) -> list[str]:
    """Split a magic's line at blanks; quotes group, a backslash is an ordinary character.

    Raises
    ------
    llmkernel.errors.UsageError
        When a quotation is not closed.
    """
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(
            "A quotation is not closed.", received=shown(line), next_step="Close it on the magic's own line."
        ) from None


def parse_line(magic: Callable[..., Any], line: str, *, prefix: str = "%%") -> argparse.Namespace:
    """Parse the line of a magic that was decorated by `llmkernel.magics.declaring.declare`.

    Raises
    ------
    llmkernel.errors.UsageError
        For an unknown option, a missing or bad value, or a word too many.
    """
    parser = parser_of(magic)
    name = f"{prefix}{parser.prog}"
    if len(line) > _LONGEST_LINE:
        raise UsageError(
            f"The line of {name} is too long.",
            rule=f"a magic's line has at most {_LONGEST_LINE} characters",
            received=f"{len(line)} characters",
            next_step="Put what is long into a variable.",
        )
    words = split_line(line)
    _check_reference(parser, name, line)
    _check_options(parser, name, words)
    try:
        arguments, extra = parser.parse_known_args(words)
    except IPythonUsageError as error:
        message = str(error)
        raise UsageError(
            _sentence(shown(message)), received=shown(line) or None, next_step=_meant(message) + _help(name)
        ) from None
    if extra:
        raise UsageError(
            f"{name} does not know what to do with {shown(extra[0])!r}.",
            rule="The line holds a name and options; everything else stands below it.",
            received=shown(line),
            next_step=f"{_about_extra(parser, line, extra[0])} {_help(name)}",
        )
    return arguments


def shown(text: str) -> str:
    """Return the user's own words as a message may repeat them: short, and without keys."""
    from llmkernel.prompts.redaction import redact

    text = redact(text.strip())
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``Did you mean …? `` for a near miss, else an empty string."""
    near = nearest(word, known, 0.6)
    return f"Did you mean {near}? " if near else ""


def nearest(word: str, known: Iterable[str], cutoff: float) -> str:
    """Return the name of `known` that is most like `word`; empty where none is at least `cutoff` like it, of 1."""
    from difflib import get_close_matches  # a kernel that starts needs no near misses

    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return near[0] if near else ""


def parser_of(magic: Callable[..., Any]) -> argparse.ArgumentParser:
    """Return the parser of a magic that was decorated by `llmkernel.magics.declaring.declare`."""
    parser: argparse.ArgumentParser = magic.described()[0]  # type: ignore[attr-defined]
    return parser


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the parser's actions by option string."""
    return dict(parser._option_string_actions)  # noqa: SLF001 - argparse has no public list of its options


def positionals_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the parser's positional arguments, in order."""
    return [action for action in parser._actions if not action.option_strings]  # noqa: SLF001 - as above


def _check_options(parser: argparse.ArgumentParser, name: str, words: list[str]) -> None:
    # argparse reports a missing reference before an unknown option, and guesses abbreviations.
    known = options_of(parser)
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if not option.startswith("-") or _is_number(word):
            continue
        if option not in known:
            raise UsageError(
                f"{name} has no option {option}.",
                rule="A value that begins with a dash is written with an equals sign: --option=-value.",
                next_step=f"{suggestion(option, known)}{_help(name)}",
            )
        if known[option].nargs == 0:
            continue
        value = None if equals else next(rest, None)
        if not equals and (value is None or (value.startswith("-") and not _is_number(value))):
            raise UsageError(
                f"{option} needs a value.",
                rule="A value that begins with a dash is written with an equals sign.",
                received=value and shown(value),
                next_step=f"Write {option}={shown(value or '…')}. {_help(name)}",
            )


def _check_reference(parser: argparse.ArgumentParser, name: str, line: str) -> None:
    """Explain a call or a lambda where the name of the reference stands."""
    if "REFERENCE" not in [action.metavar for action in positionals_of(parser)]:
        return
    if re.match(r"\s*lambda\b", line):
        raise UsageError(
            f"{name} takes the name of a reference.",
            received=shown(line),
            next_step=f"Give it one in a cell above: f = lambda …, then {name} f",
        )
    call = re.match(r"\s*(?P<name>[A-Za-z_][\w.]*)\((?P<inputs>[^\"']*?)\)", line)
    if call:
        inputs = f' --inputs "{call["inputs"]}"' if call["inputs"].strip() else ""
        raise UsageError(
            f"{name} takes the name of a reference, not a call of it.",
            rule="An example call's arguments stand in --inputs, or are the variables called like its parameters.",
            received=shown(line),
            next_step=f"Write {name} {call['name']}{inputs}",
        )


def _about_extra(parser: argparse.ArgumentParser, line: str, word: str) -> str:
    if word.startswith("#"):
        return "A magic's line takes no comment: write it below, or leave it out."
    if "--inputs" not in options_of(parser):
        return "Quote a value that holds blanks."
    if "--inputs" in line:
        return 'Quote the whole list: --inputs "x, y".'
    return 'Example inputs stand in --inputs "x, y"; a value that holds blanks is quoted.'


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _sentence(message: str) -> str:
    text = message.removeprefix("argument ").strip()
    text = text.replace("the following arguments are required: REFERENCE", "There is no name of a reference")
    text = text.replace("the following arguments are required:", "There is no")
    text = re.sub(r"^(-[\w-]+): (?=an? )", r"\1 needs ", text)
    return text if text.endswith(".") else text + "."


def _meant(message: str) -> str:
    """Suggest the choice that is most like what argparse refused."""
    refused = re.search(r"invalid choice: '(?P<word>[^']*)' \(choose from (?P<choices>.*)\)", message)
    return suggestion(refused["word"], re.findall(r"[\w-]+", refused["choices"])) if refused else ""


def _help(name: str) -> str:
    return f"{name}? lists all options."


def positive_int(text: str) -> int:
    """Read a whole number of at least 1, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return value


def positive_float(text: str) -> float:
    """Read a positive, finite number, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"a positive, finite number, not {text!r}")
    return value


def identifier(text: str) -> str:
    """Read a name that can be assigned to, for argparse."""
    from keyword import iskeyword

    if not text.isidentifier() or iskeyword(text):
        raise argparse.ArgumentTypeError(f"a Python name, not {text!r}")
    return text


def workloads(text: str) -> tuple[dict[str, int], ...]:
    """Read sizes of further workloads, ``M=1023,N=4097;M=1,N=7``, for argparse.

    Returns
    -------
    tuple of dict
        Dimension name to size; a size may be 0.
    """
    found = []
    for part in filter(str.strip, text.split(";")):
        sizes: dict[str, int] = {}
        for item in part.split(","):
            dimension, equals, size = (piece.strip() for piece in item.partition("="))
            if not equals or not dimension.isidentifier() or not (size.isascii() and size.isdigit()):
                raise argparse.ArgumentTypeError(
                    f"sizes are written M=1023,N=4097;M=1,N=7, not {item.strip()!r}"
                )
            if dimension in sizes:
                raise argparse.ArgumentTypeError(f"{dimension} stands twice in {part.strip()!r}")
            sizes[dimension] = int(size)
        found.append(sizes)
    if not found:
        raise argparse.ArgumentTypeError(f"sizes are written M=1023,N=4097;M=1,N=7, not {text!r}")
    return tuple(found)
