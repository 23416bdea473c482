"""Parts of a notebook as text for a prompt: variables, cells, exceptions; bounded, cleaned and without secrets.

Values come from anybody: a repr may raise, never end well, or be ten megabytes with a key inside.
"""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llmkernel.problem.arrays import is_array, kind_of
from llmkernel.problem.reference import source_of
from llmkernel.prompts.array_facts import describe_array
from llmkernel.prompts.redaction import find_secrets, redact
from llmkernel.prompts.text import clean, cut, fenced

MAX_TEXT = 400
MAX_SOURCE = 6_000
MAX_OWN_WORDS = 8_000
MAX_CELL = 12_000
MAX_MESSAGE = 3_000
_MAX_ITEMS = 6
_MAX_COLUMNS = 30
_MAX_DEPTH = 2
_MAX_CAUSES = 3
_MAX_FRAMES = 12
# A secret that is cut in two is no longer known as one: this much is dropped where a text was cut before it was looked at.
_MARGIN = 512
_OWN_FRAMES = ("/IPython/core/", "/ipykernel/", "\\IPython\\core\\")


def safe(text: str, limit: int) -> str:
    """Return `text` cleaned, without secrets, and cut to about `limit` characters."""
    if len(text) > 4 * limit + _MARGIN:
        text = text[: 4 * limit]
        return cut(redact(clean(text))[:-_MARGIN], limit) + " … (cut)"
    return cut(redact(clean(text)), limit)


def describe_value(name: str, value: Any) -> str:
    """Describe a variable: what it says of itself by `_repr_llm_`, else its type and the facts that matter.

    Arrays are described by dtype, shape, place and range, and never by their contents.

    Parameters
    ----------
    name : str
    value : object

    Returns
    -------
    str
        A line or a few, Markdown, without secrets.
    """
    try:
        found = _describe(name, value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a value of the user's does on being looked at
        found = f"{_type_name(value)}; it cannot be looked at: {type(error).__name__}"
    return f"`{name}`: {found}"


def _describe(name: str, value: Any) -> str:
    own = getattr(type(value), "_repr_llm_", None)
    if own is not None and not inspect.isclass(value):
        said = _said_by(own, value)
        if said is not None:
            return f"{_type_name(value)}\n{fenced(safe(said, MAX_OWN_WORDS))}"
    if is_array(value):
        return redact(describe_array(value))
    if isinstance(value, str):
        return _text(name, value)
    if inspect.ismodule(value):
        version = getattr(value, "__version__", "")
        return f"module {value.__name__}" + (f" {version}" if isinstance(version, str) and version else "")
    if inspect.isroutine(value) or inspect.isclass(value):
        return _callable(value)
    if hasattr(type(value), "columns") and hasattr(type(value), "shape"):
        return _table(value)
    return _one(name, value, 0)


def _said_by(method: Any, value: Any) -> str | None:
    try:
        said = method(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the description below takes its place
        return None
    return said if isinstance(said, str) else None


def _one(name: str, value: Any, depth: int) -> str:
    """Describe a value on one line, as an item of something or alone."""
    if is_array(value):
        shape = ", ".join(map(str, value.shape))
        return f"{kind_of(value)} array {value.dtype}[{shape}]"
    if isinstance(value, str):
        return _text(name, value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{type(value).__name__} of {len(value):,} bytes"
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        return f"{_type_name(value)} {safe(_repr(value), MAX_TEXT)}" if value is not None else "None"
    # Exactly these: a subclass may do anything on being iterated.
    if type(value) in (list, tuple, set, frozenset, dict):
        return _container(value, depth)
    shown = safe(_repr(value), MAX_TEXT)
    if _is_secret(name, shown):
        return f"{_type_name(value)}; its value is not sent: it looks like a secret"
    return f"{_type_name(value)}: {shown}"


def _text(name: str, value: str) -> str:
    size = f"str of {len(value):,} character{'' if len(value) == 1 else 's'}"
    if _is_secret(name, value[: 4 * MAX_TEXT]):
        return f"{size}; its value is not sent: it looks like a secret"
    return f"{size}: {safe(repr(value[: 8 * MAX_TEXT]), MAX_TEXT)}"


def _is_secret(name: str, value: str) -> bool:
    # As it would stand in a cell: a password is known by the name it is assigned to.
    return bool(find_secrets(f"{name.rpartition('.')[2]} = '{value}'"))


def _container(value: Any, depth: int) -> str:
    kind = f"{type(value).__name__} of {len(value):,}"
    if not value or depth >= _MAX_DEPTH:
        return kind
    if isinstance(value, dict):
        pairs = zip(value.items(), range(_MAX_ITEMS), strict=False)
        items = [f"{safe(_repr(k), 80)}: {_item(str(k)[:80], v, depth)}" for (k, v), _ in pairs]
    else:
        items = [_item("", v, depth) for v, _ in zip(value, range(_MAX_ITEMS), strict=False)]
    more = len(value) - len(items)
    return f"{kind}: " + "; ".join(items) + (f"; … {more:,} more" if more > 0 else "")


def _item(name: str, value: Any, depth: int) -> str:
    return safe(_one(name, value, depth + 1), MAX_TEXT // 2)


def _callable(value: Any) -> str:
    source = source_of(value)
    if source:
        return f"{_type_name(value)}\n{fenced(safe(source, MAX_SOURCE), 'python')}"
    where = f"{getattr(value, '__module__', None) or ''}.{getattr(value, '__qualname__', '?')}".lstrip(".")
    documented = (inspect.getdoc(value) or "").partition("\n")[0]
    return f"{_type_name(value)} {safe(where, 200)}; its source is not available. {safe(documented, 200)}".strip()


def _table(value: Any) -> str:
    columns = list(value.columns)
    dtypes = getattr(value, "dtypes", None)
    kinds = list(dtypes) if dtypes is not None else [""] * len(columns)
    rows = ", ".join(
        f"{safe(str(c), 60)} ({safe(str(k), 40)})"
        for c, k, _ in zip(columns, kinds, range(_MAX_COLUMNS), strict=False)
    )
    more = f", … {len(columns) - _MAX_COLUMNS} more" if len(columns) > _MAX_COLUMNS else ""
    return f"{_type_name(value)} of shape {tuple(value.shape)}, columns: {rows}{more}"


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a repr of the user's may raise anything
        return f"<its repr raises {type(error).__name__}>"


def _type_name(value: Any) -> str:
    kind = type(value)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"


def describe_cell(label: str, text: str) -> str:
    """Return a cell's text, or why it is not sent: a cell that holds a key never is.

    Parameters
    ----------
    label : str
        Such as ``cell [5]``.
    text : str
    """
    refusal = why_not_sent(text)
    if refusal:
        return f"{label} is left out: {refusal}."
    return f"{label}:\n{fenced(cut(clean(text), MAX_CELL), 'python')}"


def why_not_sent(text: str) -> str:
    """Return why `text` must not be sent, such as ``line 2 looks like a GitHub token``; empty where it may be."""
    found = find_secrets(text)
    if not found:
        return ""
    kind = found[0].kind
    article = "an" if kind[0].lower() in "aeiou" else "a"
    return f"line {found[0].line} holds what looks like {article} {kind}"


def describe_error(error: BaseException, name_of: Callable[[str], str] = str) -> str:
    """Return an exception with the frames that matter and what caused it.

    Parameters
    ----------
    error : BaseException
    name_of : callable
        Returns what a frame's file is called; IPython knows cells by their files.

    Returns
    -------
    str
        Oldest cause first, without terminal colours, secrets, frames of IPython itself, and the lines of cells that
        hold a key.
    """
    chain = [error]
    while len(chain) < _MAX_CAUSES:
        last = chain[-1]
        cause = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if cause is None or cause in chain:
            break
        chain.append(cause)
    parts = [_one_error(e, name_of) for e in reversed(chain)]
    return fenced("\n\nThen, while that was handled:\n\n".join(parts))


def _one_error(error: BaseException, name_of: Callable[[str], str]) -> str:
    frames = [
        f"{_place(frame.filename, name_of)}, line {frame.lineno}, in {frame.name}\n    {_line(frame, name_of)}"
        for frame in _frames(error)
    ]
    if len(frames) > _MAX_FRAMES:
        left = len(frames) - _MAX_FRAMES
        frames = [*frames[:4], f"… {left} frames left out …", *frames[4 - _MAX_FRAMES :]]
    lines = [safe("\n".join(frames), MAX_SOURCE)] if frames else []
    if isinstance(error, SyntaxError) and isinstance(error.text, str):
        shown = "" if _holds_key(error.filename or "", name_of) else error.text.rstrip()
        lines.append(safe(f"line {error.lineno}: {shown}", MAX_TEXT))
    return "\n".join([*lines, f"{_type_name(error)}: {safe(_message(error), MAX_MESSAGE)}"])


def _place(filename: str, name_of: Callable[[str], str]) -> str:
    """Return a frame's file without the folders that say where somebody keeps things."""
    name = name_of(filename)
    for folder in ("site-packages/", "dist-packages/"):
        if folder in name:
            return name.rpartition(folder)[2]
    home = str(Path.home())
    return "~" + name.removeprefix(home) if len(home) > 1 and name.startswith(home) else name


def _line(frame: traceback.FrameSummary, name_of: Callable[[str], str]) -> str:
    if _holds_key(frame.filename, name_of):
        return "(its cell holds a key, and is not sent)"
    return (frame.line or "").strip()


def _holds_key(filename: str, name_of: Callable[[str], str]) -> bool:
    """Whether this is a cell that is not sent; in files, secrets are taken out line by line."""
    return name_of(filename) != filename and bool(find_secrets("".join(linecache.getlines(filename))))


def _frames(error: BaseException) -> Iterable[traceback.FrameSummary]:
    found = traceback.extract_tb(error.__traceback__)
    return [f for f in found if not any(part in f.filename for part in _OWN_FRAMES)]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # noqa: BLE001 - an exception's own text may raise anything
        return f"<its message raises {type(failure).__name__}>"


def lookup(namespace: Mapping[str, Any], name: str) -> Any:
    """Return what a dotted name means.

    Raises
    ------
    KeyError
        When there is no variable of its first part.
    AttributeError
        When a further part is not there. A property may raise anything else.
    """
    first, *rest = name.split(".")
    value = namespace[first]
    for part in rest:
        value = getattr(value, part)
    return value
