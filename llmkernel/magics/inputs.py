"""Example inputs: one call of the reference, out of the notebook's variables or as ``--inputs`` writes it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

from llmkernel.errors import ReferenceProblem, UsageError
from llmkernel.magics.namespace import Namespace, is_array
from llmkernel.magics.parsing import shown

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


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
            f"{name} does not take these inputs: {error}.",
            rule=_call_form(name, parameters),
            next_step="Write --inputs as the arguments of one call.",
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
        next_step='Quote the whole list, and close every bracket: --inputs "x, w[:64]".',
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
            next_step="Evaluate it in a cell of its own and correct it.",
        ) from error


def _source(node: ast.expr) -> str:
    return ast.unparse(node)
