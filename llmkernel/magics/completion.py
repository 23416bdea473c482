"""Completion on a magic's own line: options, their values, the notebook's callables and arrays, kernels."""

from __future__ import annotations

import argparse
import re
from itertools import pairwise
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult

from llmkernel.magics.completion_values import Candidates, ValueCompleter
from llmkernel.magics.kernel_names import kernel_names, record_store
from llmkernel.magics.kernels import ACTIONS
from llmkernel.magics.parsing import options_of, parser_of, positionals_of

_SETTING = re.compile(r"%config[ \t]+LLMKernel\.(?P<name>\w+)[ \t]*=[ \t]*(?P<quote>[\"']?)[^\"']*$")


class MagicMatcher:
    """A matcher of IPython's completer for the lines of our magics.

    Parameters
    ----------
    ipython : InteractiveShell
    cell_magics, line_magics : tuple of str
        The magics to complete; a cell magic only on the first line of its cell.
    """

    matcher_api_version = 2
    matcher_identifier = "llmkernel"

    def __init__(self, ipython: Any, cell_magics: tuple[str, ...], line_magics: tuple[str, ...]) -> None:
        self.__qualname__ = type(self).__qualname__  # IPython asks every matcher, as if all were functions
        self._ipython = ipython
        cell, line = ("|".join(map(re.escape, names)) for names in (cell_magics, line_magics))
        self._values = ValueCompleter(ipython)
        self._line = re.compile(rf"(?:(?P<cell>%%)(?:{cell})|%(?:{line}))(?=[ \t])")

    def __call__(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return completions of the word before the cursor; none outside of a magic's line."""
        if setting := _SETTING.match(context.text_until_cursor):
            is_quoted = setting["quote"] != ""
            values = [v.strip("'") if is_quoted else v for v in self._values.configured(setting["name"])]
            return _result(("keyword", value) for value in values if value.startswith(context.token))
        found = self._line.match(context.text_until_cursor)
        above = context.full_text.split("\n")[: context.cursor_line]
        if not found or (found["cell"] and any(line.strip() for line in above)):
            return {"completions": []}
        find = self._ipython.find_cell_magic if found["cell"] else self._ipython.find_line_magic
        magic = find(found[0].lstrip("%"))
        text = context.text_until_cursor[found.end() :].lstrip()
        candidates = self._candidates(parser_of(magic), text)
        return _result((kind, word) for kind, word in candidates if word.startswith(context.token))

    def _candidates(self, parser: argparse.ArgumentParser, text: str) -> Candidates:
        options = options_of(parser)
        *before, word = re.split(r"[ \t]+", text)
        option, equals, _ = word.partition("=")
        given = _given(parser, before, options)
        if equals and option in options:
            return self._values.of(options[option], word.partition("=")[2], given)
        if word.startswith("-"):
            used = {w.partition("=")[0] for w in before}
            return [
                ("param", name)
                for name, action in options.items()
                if name not in used or isinstance(action, argparse._AppendAction)  # noqa: SLF001
            ]
        quoted = _open_option(before, options)
        if quoted is not None:
            return self._values.of(options[quoted], word, given)
        places = _positional_words(before, options)
        positional = positionals_of(parser)[len(places) :][:1] or [
            action for action in positionals_of(parser)[-1:] if action.nargs == "*"
        ]
        if positional and positional[0].dest in ("record", "other"):
            values = self._kernels(places, word)
        else:
            values = [value for action in positional for value in self._values.of(action, word, given)]
        return values + [("param", name) for name in options if not word]

    def _kernels(self, given: list[str], word: str) -> list[tuple[str, str]]:
        """Return what may follow `given` on the line of ``%kernels``: kernels, or numbers of their versions."""
        action, *names = given
        second = ACTIONS.get(action, "")
        if names and not second:
            return []
        if names and second == "N":
            return [("keyword", number) for number in self._versions(names[0])]
        name, at, _ = word.partition("@")
        if at:
            return [("keyword", number) for number in self._versions(name)]
        return [("instance", name) for name in kernel_names(self._ipython)]

    def _versions(self, name: str) -> list[str]:
        earlier = record_store(self._ipython).history(name) if name.isidentifier() else ()
        return [str(number) for number in range(1, 1 + len(earlier))]


def _result(candidates: Candidates) -> SimpleMatcherResult:
    words = [SimpleCompletion(text=word, type=kind) for kind, word in candidates]
    return {"completions": words, "suppress": bool(words), "ordered": True}


def _given(
    parser: argparse.ArgumentParser, before: list[str], options: dict[str, argparse.Action]
) -> dict[str, str]:
    """Return what the words before give: values by option, and positional ones by metavar."""
    given = {
        o: value for o, equals, value in (word.partition("=") for word in before) if equals and o in options
    }
    given |= {word: value for word, value in pairwise(before) if word in options}
    places = zip(positionals_of(parser), _positional_words(before, options), strict=False)
    return given | {str(action.metavar): word for action, word in places}


def _positional_words(before: list[str], options: dict[str, argparse.Action]) -> list[str]:
    found = []
    for previous, word in zip(["", *before], before, strict=False):
        is_value = previous in options and options[previous].nargs != 0
        if word and not word.startswith("-") and not is_value:
            found.append(word)
    return found


def _open_option(before: list[str], options: dict[str, argparse.Action]) -> str | None:
    """Return the option whose value is being written: the last word, or one whose quotation is still open."""
    if before and before[-1] in options:
        return before[-1] if options[before[-1]].nargs != 0 else None
    text = " ".join(before)
    for quote in "\"'":
        if text.count(quote) % 2:
            head = text[: text.rindex(quote)].rstrip(" =").rpartition(" ")[2]
            return head if head in options else None
    return None
