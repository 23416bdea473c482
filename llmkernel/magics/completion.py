"""Completion on a magic's own line: options, their values, and the notebook's callables and arrays."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult

from llmkernel.config import PROVIDERS
from llmkernel.magics.namespace import is_array, is_reference, user_names
from llmkernel.magics.parsing import options_of


class MagicMatcher:
    """A matcher of IPython's completer for the first line of our cell magics.

    Parameters
    ----------
    ipython : InteractiveShell
    names : tuple of str
        The cell magics to complete.
    """

    matcher_api_version = 2
    matcher_identifier = "llmkernel"

    def __init__(self, ipython: Any, names: tuple[str, ...]) -> None:
        self.__qualname__ = type(self).__qualname__  # IPython asks every matcher, as if all were functions
        self._ipython = ipython
        self._line = re.compile(rf"%%({'|'.join(map(re.escape, names))})[ \t](.*)", re.DOTALL)

    def __call__(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return completions of the word before the cursor; none outside of a magic's line."""
        above = context.full_text.split("\n")[: context.cursor_line]
        found = self._line.match(context.text_until_cursor)
        if not found or any(line.strip() for line in above):
            return {"completions": []}
        name, text = found.groups()
        magic = self._ipython.find_cell_magic(name)
        token = context.token
        words = [
            SimpleCompletion(text=word, type=kind)
            for kind, word in self._candidates(magic.parser, text)
            if word.startswith(token)
        ]
        return {"completions": words, "suppress": bool(words), "ordered": True}

    def _candidates(self, parser: argparse.ArgumentParser, text: str) -> Iterable[tuple[str, str]]:
        options = options_of(parser)
        *before, word = re.split(r"[ \t]+", text)
        option, equals, _ = word.partition("=")
        if equals and option in options:
            return self._values(options[option])
        if word.startswith("-"):
            used = {w.partition("=")[0] for w in before}
            return [
                ("param", name)
                for name, action in options.items()
                if name not in used or isinstance(action, argparse._AppendAction)  # noqa: SLF001
            ]
        quoted = _open_option(before, options)
        if quoted is not None:
            return self._values(options[quoted])
        takes_reference = not any(action.dest == "reference" for action in options.values())
        references = self._callables(word) if takes_reference and not _has_reference(before, options) else []
        return references + [("param", name) for name in options if not word]

    def _values(self, action: argparse.Action) -> Iterable[tuple[str, str]]:
        namespace = self._ipython.user_ns
        if action.choices is not None:
            return [("keyword", str(choice)) for choice in action.choices]
        if action.dest == "provider":
            return [("keyword", name) for name in provider_names()]
        if action.dest == "inputs":
            return [("instance", name) for name in user_names(namespace, is_array)]
        if action.dest in ("baseline", "reference"):
            return [("function", name) for name in user_names(namespace, is_reference)]
        return []

    def _callables(self, word: str) -> list[tuple[str, str]]:
        owner, dot, _ = word.rpartition(".")
        if not dot:
            # Modules and objects too: the reference may be one of their functions.
            return [("function", name) for name in user_names(self._ipython.user_ns, is_reference)]
        value = self._ipython.user_ns.get(owner)
        return [("function", f"{owner}.{name}") for name in dir(value)] if value is not None else []


def _has_reference(before: list[str], options: dict[str, argparse.Action]) -> bool:
    for previous, word in zip(["", *before], before, strict=False):
        is_value = previous in options and options[previous].nargs != 0
        if word and not word.startswith("-") and not is_value:
            return True
    return False


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


def provider_names() -> list[str]:
    """Return the names of our providers and of installed plug-ins; loads none of them."""
    return sorted({*PROVIDERS, *(point.name for point in entry_points(group="llmkernel.providers"))})
