"""The notebook's namespace: which names are references and arrays, and what a dotted name means."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from llmkernel.errors import ReferenceProblem, UsageError
from llmkernel.magics.parsing import shown, suggestion

Namespace = Mapping[str, Any]

# What IPython itself puts into every namespace.
_SHELL_NAMES = {"In", "Out", "exit", "get_ipython", "open", "quit"}


def user_names(namespace: Namespace, accepts: Callable[[Any], bool]) -> list[str]:
    """Return the user's own names whose values `accepts` likes, sorted."""
    return sorted(
        name
        for name, value in namespace.items()
        if not name.startswith("_") and name not in _SHELL_NAMES and accepts(value)
    )


def is_reference(value: object) -> bool:
    """Whether `value` can be called with arrays: a callable that is no class."""
    return callable(value) and not inspect.isclass(value)


def is_array(value: object) -> bool:
    """Whether `value` is a NumPy, CuPy or torch array, told without importing any of them."""
    # The type is asked, not the value: a property of the user's own must not run for a completion.
    return not inspect.isclass(value) and hasattr(type(value), "shape") and hasattr(type(value), "dtype")


def is_kernel(value: object) -> bool:
    """Whether `value` is a kernel of ours, verified or not, told without importing what makes them."""
    return _is_a(value, "GeneratedKernel") or _is_a(value, "UnverifiedKernel")


def _is_a(value: object, name: str) -> bool:
    return any(c.__module__.startswith("llmkernel.") and c.__name__ == name for c in type(value).__mro__)


def resolve_callable(namespace: Namespace, words: str, role: str) -> Callable[..., Any]:
    """Find a callable by name.

    Parameters
    ----------
    namespace : mapping
        The notebook's variables.
    words : str
        A name, or names joined by dots.
    role : str
        What it is for, as the message shall say: ``reference`` or ``baseline``.

    Raises
    ------
    llmkernel.errors.UsageError
        When `words` is no dotted name.
    llmkernel.errors.ReferenceProblem
        When there is nothing of that name, or it cannot be called with arrays.
    """
    parts = words.split(".")
    if not all(part.isidentifier() for part in parts):
        raise UsageError(
            f"The {role} is not a name.",
            rule="It is a callable of the notebook by name: softmax, np.linalg.norm or model.forward.",
            received=shown(words),
            next_step=f"Give it a name first: {role} = {words if words.startswith('lambda') else '…'}",
        )
    if parts[0] not in namespace:
        raise ReferenceProblem(
            f"There is no {role} called {parts[0]}.",
            received=shown(words),
            next_step=f"{suggestion(parts[0], user_names(namespace, is_reference))}"
            "Run the cell that defines it, then this one again.",
        )
    value = namespace[parts[0]]
    for i, part in enumerate(parts[1:], start=1):
        value = _attribute(value, ".".join(parts[:i]), part, role)
    if _is_a(value, "UnverifiedKernel"):
        raise ReferenceProblem(
            f"The {role} {words} is an unverified kernel.",
            rule=f"A {role} is known to be right; nothing says that of a kernel without a reference.",
            received=repr(value)[:200],
            next_step="Name the function that it stands for.",
        )
    if is_reference(value):
        callable_value: Callable[..., Any] = value
        return callable_value
    is_class = inspect.isclass(value)
    raise ReferenceProblem(
        f"The {role} {words} is {'a class' if is_class else 'not callable'}.",
        rule=f"A {role} is a function, a method or a module that computes the right answer from arrays.",
        received=f"class {value.__name__}" if is_class else type(value).__name__,
        next_step=f"Make an object of it and name that: model = {words}(…)"
        if is_class
        else "Name a function.",
    )


def _attribute(value: Any, owner: str, name: str, role: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        raise ReferenceProblem(
            f"There is no {role} {owner}.{name}: {owner} has no {name}.",
            received=type(value).__name__,
            next_step=f"{suggestion(name, dir(value))}dir({owner}) lists its names.",
        ) from None
    except Exception as error:
        raise ReferenceProblem(
            f"{owner}.{name} cannot be read.",
            received=shown(f"{type(error).__name__}: {error}"),
            next_step="Read it in a cell of its own and correct what it raises.",
        ) from error
