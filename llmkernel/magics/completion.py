"""Completion on a magic's own line: options, their values, the notebook's callables and arrays, kernels."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult

from llmkernel.magics.kernel_names import kernel_names, record_store
from llmkernel.magics.kernels import ACTIONS
from llmkernel.magics.namespace import is_array, is_reference, user_names
from llmkernel.magics.parsing import options_of, positionals_of


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
        self._line = re.compile(rf"(?:(?P<cell>%%)(?:{cell})|%(?:{line}))(?=[ \t])")

    def __call__(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return completions of the word before the cursor; none outside of a magic's line."""
        found = self._line.match(context.text_until_cursor)
        above = context.full_text.split("\n")[: context.cursor_line]
        if not found or (found["cell"] and any(line.strip() for line in above)):
            return {"completions": []}
        find = self._ipython.find_cell_magic if found["cell"] else self._ipython.find_line_magic
        magic = find(found[0].lstrip("%"))
        text = context.text_until_cursor[found.end() :].lstrip()
        words = [
            SimpleCompletion(text=word, type=kind)
            for kind, word in self._candidates(magic.parser, text)
            if word.startswith(context.token)
        ]
        return {"completions": words, "suppress": bool(words), "ordered": True}

    def _candidates(self, parser: argparse.ArgumentParser, text: str) -> Iterable[tuple[str, str]]:
        options = options_of(parser)
        *before, word = re.split(r"[ \t]+", text)
        option, equals, _ = word.partition("=")
        if equals and option in options:
            return self._values(options[option], "")
        if word.startswith("-"):
            used = {w.partition("=")[0] for w in before}
            return [
                ("param", name)
                for name, action in options.items()
                if name not in used or isinstance(action, argparse._AppendAction)  # noqa: SLF001
            ]
        quoted = _open_option(before, options)
        if quoted is not None:
            return self._values(options[quoted], word)
        given = _positional_words(before, options)
        positional = positionals_of(parser)[len(given) :][:1]
        if positional and positional[0].dest in ("record", "other"):
            values = self._kernels(given, word)
        else:
            values = [value for action in positional for value in self._values(action, word)]
        return values + [("param", name) for name in options if not word]

    def _values(self, action: argparse.Action, word: str) -> Iterable[tuple[str, str]]:
        namespace = self._ipython.user_ns
        if action.choices is not None:
            return [("keyword", str(choice)) for choice in action.choices]
        if action.dest == "provider":
            from llmkernel.providers.registry import available_providers

            return [("keyword", name) for name in available_providers()]
        if action.dest == "inputs":
            return [("instance", name) for name in user_names(namespace, is_array)]
        if action.dest in ("baseline", "reference"):
            return self._callables(word)
        if action.dest == "context":
            return [("instance", name) for name in user_names(namespace, lambda _: True)]
        if action.dest == "kernel":
            return [("instance", name) for name in kernel_names(self._ipython)]
        return []

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

    def _callables(self, word: str) -> list[tuple[str, str]]:
        owner, dot, _ = word.rpartition(".")
        if not dot:
            return [("function", name) for name in user_names(self._ipython.user_ns, is_reference)]
        value = self._ipython.user_ns.get(owner)
        return [("function", f"{owner}.{name}") for name in dir(value)] if value is not None else []


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
