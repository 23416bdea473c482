"""What a magic's words mean in the notebook's namespace: references, baselines and example inputs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

from llmkernel.errors import ReferenceProblem, UsageError
from llmkernel.magics.parsing import shown, suggestion

Namespace = Mapping[str, Any]

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

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
            f"{owner}.{name} cannot be read.", received=shown(f"{type(error).__name__}: {error}")
        ) from error


def parameters_of(reference: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """Return the reference's parameters in call order; None where it does not tell (compiled functions)."""
    found: dict[str, inspect.Parameter] | None = None
    for target in (reference, getattr(reference, "forward", None)):
        try:
            parameters = dict(inspect.signature(target).parameters)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        # A torch module's __call__ takes *args and hands them to forward, which has the names.
        if any(p.kind not in _VARIADIC for p in parameters.values()):
            return parameters
        found = parameters if found is None else found
    return found


def collect_inputs(
    namespace: Namespace, reference: Callable[..., Any], name: str, words: str | None
) -> dict[str, Any]:
    """Return one example call's arguments by parameter name, in call order.

    Parameters
    ----------
    namespace : mapping
        The notebook's variables.
    reference : callable
    name : str
        The reference's name, for messages.
    words : str or None
        What stands between the parentheses of an example call; None to take the variables that are called
        like the reference's parameters.

    Raises
    ------
    llmkernel.errors.UsageError
        When `words` is not a call's arguments.
    llmkernel.errors.ReferenceProblem
        When a parameter has no value, or the reference does not take these arguments.
    """
    parameters = parameters_of(reference)
    if words is not None:
        call = _parse_call(words)
        positional = [_value(namespace, node) for node in call.args]
        named = {str(keyword.arg): _value(namespace, keyword.value) for keyword in call.keywords}
        if parameters is not None:
            return _bind(parameters, name, positional, named)
        # As `llmkernel.problem.reference` numbers the parameters of a ufunc, and of any other such callable.
        prefix = "x" if hasattr(reference, "nin") else "inputs_"
        return {f"{prefix}{i}": value for i, value in enumerate(positional)} | named
    if parameters is None:
        raise ReferenceProblem(
            f"{name} does not say what its parameters are called.",
            next_step='Name the example inputs: --inputs "x, y".',
        )
    found = dict(_from_variables(namespace, parameters, name))
    if not found:
        raise ReferenceProblem(
            f"There is no example input for {name}.",
            rule=_call_form(name, parameters),
            next_step='Name the example inputs: --inputs "x, y".',
        )
    return found


def _from_variables(
    namespace: Namespace, parameters: Mapping[str, inspect.Parameter], name: str
) -> Iterator[tuple[str, Any]]:
    for parameter in parameters.values():
        if parameter.kind in _VARIADIC:
            continue
        value = namespace.get(parameter.name, parameter.empty)
        if parameter.default is parameter.empty:
            is_taken = value is not parameter.empty
        else:
            # `axis=-1` keeps its default beside an `axis` that is a function or a string.
            is_taken = is_array(value) or isinstance(value, Number)
        if is_taken:
            yield parameter.name, value
        elif parameter.default is parameter.empty:
            raise ReferenceProblem(
                f"{name} takes {parameter.name}, and there is no variable of that name.",
                rule="An example input is the variable called like the parameter, or stands in --inputs.",
                next_step=f'Define {parameter.name}, or write --inputs "{parameter.name}=…".',
            )


def _bind(
    parameters: Mapping[str, inspect.Parameter], name: str, positional: list[Any], named: dict[str, Any]
) -> dict[str, Any]:
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*positional, **named)
    except TypeError as error:
        raise ReferenceProblem(
            f"{name} does not take these inputs: {error}.", rule=_call_form(name, parameters)
        ) from None
    flat: dict[str, Any] = {}
    for key, value in bound.arguments.items():
        if parameters[key].kind is inspect.Parameter.VAR_POSITIONAL:
            flat |= {f"{key}_{i}": item for i, item in enumerate(value)}
        elif parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
            flat |= value
        else:
            flat[key] = value
    return flat


def _call_form(name: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    return f"{name}({', '.join(map(str, parameters.values()))})"


def _parse_call(words: str) -> ast.Call:
    problem = UsageError(
        "--inputs is not a list of arguments.",
        rule='It is what stands between the parentheses of an example call: "x, w=weights[:64], eps=1e-6".',
        received=shown(words),
    )
    try:
        call = ast.parse(f"f({words}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        raise problem from None
    # `x)(y` would parse too, as a call of a call.
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise problem
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        raise problem
    return call


def _value(namespace: Namespace, node: ast.expr) -> Any:
    code = compile(ast.Expression(node), "<--inputs>", "eval")
    try:
        # The user's own words in the user's own session, as if they stood in a cell.
        return eval(code, dict(namespace))  # noqa: S307
    except Exception as error:
        raise ReferenceProblem(
            f"--inputs: {_source(node)} cannot be evaluated.",
            received=shown(f"{type(error).__name__}: {error}"),
        ) from error


def _source(node: ast.expr) -> str:
    return ast.unparse(node)
