"""Declares a magic: its arguments serve parsing, help, completion and the reference pages, and cost no start."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from functools import cache
from pkgutil import resolve_name
from typing import Any, cast

from llmkernel.magics.stopping import stops_in_one_line


def declare(
    name: str, usage: str, arguments: tuple[Any, ...] | str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a magic's method with `arguments`; `usage` is written as in a cell, its ``%%`` included.

    Its parser is made when it is asked for (`llmkernel.magics.parsing.parser_of`): a kernel that starts needs none.

    Parameters
    ----------
    name, usage : str
    arguments : tuple or str
        Decorators of IPython's ``magic_arguments``, or where they are, as ``module:name``.
    """

    def decorate(magic: Callable[..., Any]) -> Callable[..., Any]:
        def make() -> tuple[ArgumentParser, str]:
            from IPython.core.magic_arguments import kwds, magic_arguments

            def described() -> None: ...

            described.__doc__ = magic.__doc__
            declared: Any = described
            given = resolve_name(arguments) if isinstance(arguments, str) else arguments
            for decorator in reversed(given):
                declared = decorator(declared)
            # argparse makes one `%` of two, and IPython's formatter puts one in front.
            declared = magic_arguments(name)(kwds(usage=usage)(declared))
            return declared.parser, str(declared.__doc__)

        decorated: Any = stops_in_one_line(magic)
        decorated.described = cache(make)
        decorated.getdoc = lambda: decorated.described()[1]  # what IPython shows as help
        return cast("Callable[..., Any]", decorated)

    return decorate
