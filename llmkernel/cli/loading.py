"""``module:name`` and ``path.py:name``: objects that a command line names."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from llmkernel.errors import UsageError


def load_object(words: str, option: str) -> Any:
    """Import what ``module:name`` or ``path.py:name`` stands for.

    Modules are looked for in the working directory first, as ``python -m`` does; importing runs them.

    Parameters
    ----------
    words : str
        The name may have dots: ``models:Block.forward``.
    option : str
        Named in errors.

    Raises
    ------
    llmkernel.errors.UsageError
        When it cannot be understood, imported or found.
    """
    where, colon, name = words.rpartition(":")
    if not colon or not where or not name:
        raise UsageError(
            f"{option} cannot be understood.",
            rule="it is written module:name or path.py:name",
            received=words,
            next_step=f"For example {option} references:softmax.",
        )
    value: Any = load_module(where, option)
    for part in name.split("."):
        if not hasattr(value, part):
            near = difflib.get_close_matches(part, [n for n in dir(value) if not n.startswith("_")], n=1)
            raise UsageError(
                f"{option}: {where} has no {part!r}.",
                received=words,
                next_step=f"Did you mean {near[0]}?" if near else "Check the name.",
            )
        value = getattr(value, part)
    if not callable(value):
        raise UsageError(
            f"{option} is not callable.",
            received=f"{words}, a {type(value).__name__}",
            next_step="Name a function.",
        )
    return value


def load_module(where: str, option: str) -> ModuleType:
    """Import a module by its name, or a file by its path.

    Raises
    ------
    llmkernel.errors.UsageError
        When it cannot be imported; `option` is named.
    """
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        return _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except Exception as error:  # whatever the user's module raises while it is imported
        raise UsageError(
            f"{option}: {where} cannot be imported.",
            received=f"{type(error).__name__}: {error}",
            next_step="Run it with Python alone to see the whole traceback.",
        ) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(path)
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # The evaluation may have to import the module again by its name, in a process of its own.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
