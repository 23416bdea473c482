"""HTML as values: everything that is not `Markup` already is cleaned and escaped on its way in."""

from __future__ import annotations

import html
import re
from typing import Any

from llmkernel.display.clean import clean, hold_together

_CODE = re.compile(r"`([^`]+)`")
_VOID = frozenset({"br", "hr", "col"})


class Markup(str):
    """Text that is HTML already; only this package's own functions make it."""

    __slots__ = ()


def escape(value: Any) -> Markup:
    """Return `value` cleaned and escaped; `Markup` comes back unchanged."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(clean(value), quote=True))


def join(parts: Any, separator: str = "") -> Markup:
    """Escape and concatenate `parts`; None is left out."""
    return Markup(escape(separator).join(escape(p) for p in parts if p is not None))


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return one element.

    Parameters
    ----------
    name : str
    *children : object
        Markup or text; None is left out.
    **attributes : object
        ``cls`` stands for ``class``, ``aria_label`` for ``aria-label``; None and False are left out, True is
        a bare attribute.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False or value == "":
            continue
        attribute = "class" if key == "cls" else key.replace("_", "-")
        parts.append(
            f" {attribute}" if value is True else f' {attribute}="{html.escape(clean(value), quote=True)}"'
        )
    parts.append(">")
    if name in _VOID:
        return Markup("".join(parts))
    return Markup("".join(parts) + join(children) + f"</{name}>")


def prose(text: str) -> Markup:
    """Return a sentence; what stands in it between backticks is code."""
    parts = _CODE.split(text)
    return join([tag("code", part) if place % 2 else hold_together(part) for place, part in enumerate(parts)])
