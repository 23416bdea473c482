"""Finds the kernel that a launch names, and what its parameters are once template arguments are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmkernel.candidate.cxx_types import substitute
from llmkernel.candidate.expressions import did_you_mean, located
from llmkernel.candidate.parameters import KernelDeclaration, TemplateParameter
from llmkernel.candidate.statements import CxxArgument, Launch, TemplateArgument
from llmkernel.errors import HeaderError
from llmkernel.problem.dtypes import DTYPES

_INT32_MAX = 2**31 - 1


def find_kernel(launch: Launch, kernels: Sequence[KernelDeclaration]) -> KernelDeclaration:
    """Return the declaration of the kernel that `launch` names; the namespace may be left out.

    Raises
    ------
    llmkernel.errors.HeaderError
        With the nearest name.
    """
    exact = [k for k in kernels if k.name == launch.kernel]
    found = exact or [k for k in kernels if k.name.endswith("::" + launch.kernel)]
    if len(found) == 1:
        return found[0]
    names = [k.name for k in kernels]
    if found:
        what = f"`{launch.kernel}` names several kernels: {', '.join(k.name for k in found)}."
    else:
        near = did_you_mean(launch.kernel, names)
        what = f"There is no kernel `{launch.kernel}`{near or '.'}"
    raise HeaderError(
        what,
        line=launch.line,
        column=launch.column,
        rule="every launch names a `__global__` function of the file",
        received=located("kernels in the file: " + (", ".join(names) or "none"), launch.line, launch.column),
        next_step="Use one of these names, or add the kernel; function-like macros are not expanded.",
    )


def template_texts(
    arguments: Sequence[TemplateArgument],
    parameters: Sequence[TemplateParameter],
    types: Mapping[str, str],
    values: Mapping[str, int | bool],
) -> tuple[str, ...]:
    """Return the C++ text of every template argument.

    Parameters
    ----------
    types : mapping
        Type variable to dtype name.
    values : mapping
        Environment in which expressions are evaluated.
    """
    cxx = {variable: DTYPES[dtype].cxx[0] for variable, dtype in types.items()}
    texts = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, CxxArgument):
            texts.append(substitute(argument.text, cxx))
            continue
        value = argument.evaluate(values)
        is_bool = i < len(parameters) and parameters[i].type == "bool"
        if isinstance(value, bool) or (is_bool and value in (0, 1)):
            texts.append(str(bool(value)).lower())
        else:
            texts.append(f"{value}LL" if abs(value) > _INT32_MAX else str(value))
    return tuple(texts)


def name_expression(kernel: KernelDeclaration, texts: Sequence[str]) -> str:
    """Return the C++ expression that names one instance of a kernel."""
    if not kernel.template_parameters:
        return kernel.name
    return f"{kernel.name}<{', '.join(texts)}>"


def template_mapping(kernel: KernelDeclaration, texts: Sequence[str]) -> dict[str, str]:
    """Return template parameter to argument text, defaults filled in."""
    mapping: dict[str, str] = {}
    for i, parameter in enumerate(kernel.template_parameters):
        text = texts[i] if i < len(texts) else parameter.default
        if parameter.name and text is not None and not parameter.is_pack:
            mapping[parameter.name] = substitute(text, mapping) if i >= len(texts) else text
    return mapping
