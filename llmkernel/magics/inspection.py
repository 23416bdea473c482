"""`?`, `??` and Shift-Tab on a kernel say what it is, and not where its Python class was made."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

from llmkernel.magics.namespace import is_kernel

_MAGIC = re.compile(r"\s*(?P<name>%{1,2}[A-Za-z_]\w*)")

Sections = list[tuple[str, str]]
Hook = Callable[[Any], Sections | None]

_ATTRIBUTE = "_llmkernel_inspection"


def register_inspection(ipython: Any) -> None:
    """Let IPython's inspector describe kernels in our words; other objects are left to it, and to other hooks."""
    inspector = ipython.inspector
    before: dict[str, Hook] = dict(inspector.mime_hooks)
    ours = {
        "text/plain": _hook(_plain, before.get("text/plain")),
        "text/html": _hook(_html, before.get("text/html")),
    }
    inspector.mime_hooks = {**before, **ours}
    setattr(ipython, _ATTRIBUTE, (ours, before))


def magic_at(code: str, cursor: int) -> str:
    """Return the magic on whose line the cursor stands, behind its name; empty where there is none."""
    line = code[code.rfind("\n", 0, cursor) + 1 : cursor]
    found = _MAGIC.match(line)
    return found["name"] if found else ""


def unregister_inspection(ipython: Any) -> None:
    """Undo `register_inspection`."""
    ours, before = ipython.__dict__.pop(_ATTRIBUTE, ({}, {}))
    hooks = dict(ipython.inspector.mime_hooks)
    for kind, hook in ours.items():
        if hooks.get(kind) is hook:
            del hooks[kind]
            hooks |= {kind: before[kind]} if kind in before else {}
    ipython.inspector.mime_hooks = hooks


def _hook(describe: Callable[[Sections], Sections], otherwise: Hook | None) -> Hook:
    def hook(data: Any) -> Sections | None:
        if not is_kernel(data.obj):
            return otherwise(data) if otherwise is not None else None
        from llmkernel.display.kernel_help import kernel_help

        return describe(kernel_help(data.obj, data.detail_level))

    return hook


def _plain(sections: Sections) -> Sections:
    return sections


def _html(sections: Sections) -> Sections:
    return [(title, f"<pre>{html.escape(text)}</pre>") for title, text in sections]
