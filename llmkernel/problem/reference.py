"""The reference: a Python callable of the notebook that defines the right answer."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from llmkernel.errors import ReferenceProblem
from llmkernel.problem.arrays import is_array, kind_of


@dataclass(frozen=True)
class Reference:
    """A callable whose array and number arguments are the inputs of a problem.

    Attributes
    ----------
    function : callable
        What the user wrote: a function, lambda, closure, method or `torch.nn.Module` instance.
    name : str
        A valid identifier.
    parameters : tuple of str
        Names of the inputs, in order. A module's parameters and buffers follow those of ``forward``.
    fixed : dict
        Parameters that keep one value: those left at their default, and values that no kernel can take (None, text).
    module_state : tuple of str
        Qualified names of a module's parameters and buffers, in the order of the inputs that carry them.
    source : str
        Source text, empty where Python cannot find it.
    """

    function: Callable[..., Any]
    name: str
    parameters: tuple[str, ...]
    fixed: dict[str, Any] = field(default_factory=dict)
    module_state: tuple[str, ...] = ()
    source: str = ""

    @property
    def is_module(self) -> bool:
        """Whether the reference is a `torch.nn.Module` instance."""
        return is_module(self.function)

    def call(self, inputs: Sequence[Any]) -> Any:
        """Call the reference with one value for each of `parameters`."""
        count = len(self.parameters) - len(self.module_state)
        named = dict(zip(self.parameters[:count], inputs[:count], strict=True))
        if self.is_module:
            import torch

            state = dict(zip(self.module_state, inputs[count:], strict=True))
            with torch.no_grad():
                return torch.func.functional_call(self.function, state, (), {**named, **self.fixed})
        return call_by_name(self.function, {**named, **self.fixed})

    def inputs_of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the inputs, in order, of a call written as the reference is called.

        Raises
        ------
        llmkernel.errors.ReferenceProblem
            When the call does not fit, or gives a fixed parameter another value.
        """
        try:
            bound = call_signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise ReferenceProblem(
                f"{self.name}: {error}.",
                rule=f"the kernel is called as its reference: {self.name}{call_signature(self.function)}",
                next_step="Pass the same arguments as you would to the reference.",
            ) from None
        bound.apply_defaults()
        arguments = _flat_arguments(bound)
        for key, value in self.fixed.items():
            if key in arguments and not _same(arguments[key], value):
                raise ReferenceProblem(
                    f"{self.name}: {key} was fixed at {value!r} when the kernel was verified.",
                    rule="a parameter that was left at its default is built into the kernel",
                    received=repr(arguments[key])[:80],
                    next_step=f"Generate another kernel with {key} among its inputs.",
                )
        count = len(self.parameters) - len(self.module_state)
        values = [arguments[p] for p in self.parameters[:count]]
        return values + module_values(self.function, self.module_state)


def is_module(value: object) -> bool:
    """Whether a value is a `torch.nn.Module` instance; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def module_values(module: Any, names: Sequence[str]) -> list[Any]:
    """Return a module's current parameters and buffers by qualified name, detached."""
    if not names:
        return []
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return [state[n].detach() for n in names]


def call_by_name(function: Callable[..., Any], named: dict[str, Any]) -> Any:
    """Call `function` with values for its parameters, respecting positional-only ones and ``*args``."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    rest = dict(named)
    for p in call_signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            numbered = sorted(
                (k for k in rest if k.startswith(f"{p.name}_")), key=lambda k: int(k.rsplit("_", 1)[1])
            )
            args.extend(rest.pop(k) for k in numbered)
        elif p.kind is p.VAR_KEYWORD or p.name not in rest:
            continue
        elif p.kind is p.KEYWORD_ONLY:
            kwargs[p.name] = rest.pop(p.name)
        else:
            args.append(rest.pop(p.name))
    return function(*args, **kwargs)


def _flat_arguments(bound: inspect.BoundArguments) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            flat.update({f"{name}_{i}": v for i, v in enumerate(value)})
        elif kind is inspect.Parameter.VAR_KEYWORD:
            flat.update(value)
        else:
            flat[name] = value
    return flat


def _same(a: Any, b: Any) -> bool:
    try:
        return a is b or bool(a == b)
    except (TypeError, ValueError, RuntimeError):
        return False


def call_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return how a reference is called; of a module, how its ``forward`` is."""
    target = function.forward if is_module(function) else function  # type: ignore[attr-defined]
    nin = getattr(function, "nin", None)
    if isinstance(nin, int):
        # A ufunc: its keywords (out, where, dtype…) exclude one another and are no inputs.
        names = [f"x{i}" for i in range(nin)] if nin > 1 else ["x"]
        return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names])
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        # Built-in callables without a signature: positional inputs only.
        return inspect.Signature([inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)])


def source_of(function: Any) -> str:
    """Return the dedented source of a callable, or an empty string where Python cannot find it."""
    target = type(function) if is_module(function) else inspect.unwrap(function)
    target = getattr(target, "func", target)  # functools.partial
    try:
        return textwrap.dedent(inspect.getsource(target)).strip() + "\n"
    except (OSError, TypeError, IndentationError, SyntaxError):
        return ""


def _check_callable(function: Any) -> None:
    if not callable(function):
        raise ReferenceProblem(
            "The reference cannot be called.",
            rule="a reference is a function, lambda, method or torch.nn.Module instance",
            received=type(function).__name__,
            next_step="Define a function that computes the right answer and name it.",
        )
    if inspect.isclass(function):
        raise ReferenceProblem(
            f"{function.__name__} is a class, not an instance.",
            rule="a reference is a function, lambda, method or torch.nn.Module instance",
            received=f"class {function.__name__}",
            next_step=f"Create an instance first: reference = {function.__name__}(…).",
        )
    for is_kind, word in (
        (inspect.iscoroutinefunction, "a coroutine function"),
        (inspect.isgeneratorfunction, "a generator function"),
        (inspect.isasyncgenfunction, "an async generator function"),
    ):
        if is_kind(function):
            raise ReferenceProblem(
                f"The reference is {word}.",
                rule="a reference returns its arrays when it is called",
                received=word,
                next_step="Wrap it in an ordinary function that returns the arrays.",
            )


def reference_name(function: Any) -> str:
    """Return a name for a callable that is a valid identifier."""
    name = getattr(function, "__name__", "") or type(function).__name__
    return name if name.isidentifier() and name != "<lambda>" else "kernel"


def make_reference(
    function: Any, values: Sequence[Any], *, name: str | None = None
) -> tuple[Reference, list[Any]]:
    """Build a reference from positional values, as `llmkernel.evaluate` receives them.

    Returns
    -------
    reference : Reference
    inputs : list
        The values that are inputs, in order, followed by a module's state.
    """
    _check_callable(function)
    try:
        bound = call_signature(function).bind(*values)
    except TypeError as error:
        raise ReferenceProblem(
            f"The reference cannot be called with these inputs: {error}.",
            rule=f"it is called as {reference_name(function)}{call_signature(function)}",
            received=f"{len(values)} inputs",
            next_step="Pass one input for each parameter, in order.",
        ) from None
    return _build(function, _flat_arguments(bound), name)


def reference_from_names(
    function: Any, named: dict[str, Any], *, name: str | None = None
) -> tuple[Reference, list[Any]]:
    """Build a reference from named values; parameters with defaults may be left out.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        Names the first parameter that has neither a value nor a default.
    """
    _check_callable(function)
    arguments: dict[str, Any] = {}
    for p in call_signature(function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            arguments.update({k: v for k, v in named.items() if k.startswith(f"{p.name}_")})
        elif p.name in named:
            arguments[p.name] = named[p.name]
        elif p.default is p.empty:
            raise ReferenceProblem(
                f"There is no input called {p.name!r}.",
                rule="inputs are variables with the names of the reference's parameters",
                received="found: " + (", ".join(sorted(named)) or "none"),
                next_step=f"Define {p.name}, or say which variable to use: --inputs {p.name}=EXPRESSION.",
            )
        else:
            arguments[p.name] = _Default(p.default)
    return _build(function, arguments, name)


@dataclass(frozen=True)
class _Default:
    value: Any


def _build(function: Any, arguments: dict[str, Any], name: str | None) -> tuple[Reference, list[Any]]:
    inputs: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    for key, value in arguments.items():
        if isinstance(value, _Default):
            fixed[key] = value.value
        elif isinstance(value, list | tuple) and any(is_array(v) for v in value):
            raise ReferenceProblem(
                f"{key} is a {type(value).__name__} of arrays.",
                rule="each input of a kernel is one array or one number",
                received=f"{type(value).__name__} of {len(value)}",
                next_step="Give each array its own parameter, or stack them into one.",
            )
        elif kind_of(value) == "other":
            fixed[key] = value
        else:
            inputs[key] = value
    state: tuple[str, ...] = ()
    if is_module(function):
        state = tuple(n for n, _ in (*function.named_parameters(), *function.named_buffers()))
        for qualified, value in zip(state, module_values(function, state), strict=True):
            inputs[_unique(qualified.replace(".", "_"), inputs)] = value
    if not any(is_array(v) for v in inputs.values()):
        raise ReferenceProblem(
            "None of the inputs is an array.",
            rule="a kernel needs at least one NumPy, CuPy or torch array",
            received=", ".join(f"{k}: {type(v).__name__}" for k, v in arguments.items()) or "no inputs",
            next_step="Create example arrays with the names of the reference's parameters.",
        )
    made = Reference(
        function=function,
        name=name or reference_name(function),
        parameters=tuple(inputs),
        fixed=fixed,
        module_state=state,
        source=source_of(function),
    )
    return made, list(inputs.values())


def _unique(name: str, taken: dict[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name


def parameter_names(function: Any) -> list[tuple[str, bool]]:
    """Return (name, has_default) of the parameters that a notebook variable may fill."""
    _check_callable(function)
    return [
        (p.name, p.default is not p.empty)
        for p in call_signature(function).parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
