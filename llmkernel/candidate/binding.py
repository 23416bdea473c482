"""From the arguments of one call to dtypes, dimensions and scalars, or a refusal by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.expressions import Expression, Fact, expression_is_known
from llmkernel.candidate.layout import contiguous_strides, is_contiguous
from llmkernel.candidate.statements import LaunchHeader, Let, Require, expressions
from llmkernel.candidate.tensor_maps import is_tma_ok
from llmkernel.errors import BindingError, HeaderError, PreconditionError
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec, ScalarSpec, Signature

GUARANTEED_ALIGNMENT = 256
Scalar = bool | int | float | complex


@dataclass(frozen=True)
class Binding:
    """What the names of a header mean for one call.

    Attributes
    ----------
    types : dict
        Type variable to dtype name.
    dims : dict
        Symbolic dimension to size.
    scalars : dict
        Scalar to value, rounded to its dtype.
    arrays : dict
        Input to `ArrayArgument`; outputs too, with the shape that the header gives them.
    environment : dict
        Everything that an expression may ask for, except what the device is and what the header's own lines define;
        `tma_ok` as the arrays have it, whatever the device.
    """

    types: dict[str, str]
    dims: dict[str, int]
    scalars: dict[str, Scalar]
    arrays: dict[str, ArrayArgument]
    environment: dict[str, int | bool] = field(default_factory=dict)

    def dtype(self, name: str) -> str:
        """Return the dtype name that a header's dtype or type variable stands for."""
        return self.types.get(name, name)


def header_facts(header: LaunchHeader) -> frozenset[Fact]:
    """Return every fact that some expression of the header asks for."""
    found: set[Fact] = set()
    for spec in header.signature.arrays():
        for dim in spec.dims:
            found |= dim.facts
    for expression in expressions(header.statements):
        found |= expression.facts
    return frozenset(found)


def bind(header: LaunchHeader, facts: frozenset[Fact], arguments: Sequence[CallArgument]) -> Binding:
    """Bind the arguments of one call, in the order of the header's inputs.

    Raises
    ------
    llmkernel.errors.BindingError
        Naming the argument and the reason.
    llmkernel.errors.PreconditionError
        For a `require` that depends on the arguments alone and does not hold.
    """
    signature = header.signature
    if len(arguments) != len(signature.inputs):
        raise BindingError(
            f"`{signature.name}` takes {len(signature.inputs)} arguments, got {len(arguments)}.",
            reason="count",
            rule=str(signature),
            received=f"{len(arguments)} arguments",
            next_step="Pass the arguments in the order of the signature.",
        )
    types: dict[str, str] = {v: c[0] for v, c in signature.type_variables if len(c) == 1}
    scalars: dict[str, Scalar] = {}
    arrays: dict[str, ArrayArgument] = {}
    pairs = list(zip(signature.inputs, arguments, strict=True))
    for spec, argument in pairs:
        if isinstance(spec, ArraySpec):
            arrays[spec.name] = _array(spec, argument, signature, types)
    for spec, argument in pairs:
        if isinstance(spec, ScalarSpec):
            scalars[spec.name] = _scalar(spec, argument, types)
    environment: dict[str, int | bool] = {n: v for n, v in scalars.items() if isinstance(v, int)}
    environment |= {f.key: sizeof(f.subject, types) for f in facts if f.kind == "sizeof"}
    dims = _dimensions(signature, arrays, environment)
    environment |= dims
    for output in signature.outputs:
        shape = evaluate_shape(output, environment)
        arrays[output.name] = ArrayArgument(
            types.get(output.dtype, output.dtype), shape, None, GUARANTEED_ALIGNMENT
        )
    for name, array in arrays.items():
        environment |= array_facts(name, array, facts)
    binding = Binding(types, dims, scalars, arrays, environment)
    _check_requirements(header, environment)
    return binding


def sizeof(subject: str, types: dict[str, str]) -> int:
    """Return the bytes of one element of a type variable, dtype or C++ type."""
    from llmkernel.candidate.header_scope import CXX_DTYPES

    name = types.get(subject, subject)
    return DTYPES[CXX_DTYPES.get(name, name)].itemsize


def array_facts(name: str, array: ArrayArgument, facts: frozenset[Fact]) -> dict[str, int | bool]:
    """Return the environment entries that `facts` asks of one array."""
    result: dict[str, int | bool] = {}
    for fact in facts:
        if fact.subject != name or fact.kind == "sizeof":
            continue
        if fact.kind == "address":
            result[fact.key] = array.address
        elif fact.kind == "tma_ok":
            result[fact.key] = is_tma_ok(array)
        else:
            result[fact.key] = (array.strides or contiguous_strides(array.shape))[fact.axis]
    return result


def evaluate_shape(spec: ArraySpec, environment: dict[str, int | bool]) -> tuple[int, ...]:
    """Return the shape of an output or scratch buffer.

    Raises
    ------
    llmkernel.errors.BindingError
        When a size is negative.
    """
    shape = tuple(int(d.evaluate(environment)) for d in spec.dims)
    if any(n < 0 for n in shape):
        raise BindingError(
            f"`{spec.name}` would have a negative size.",
            argument=spec.name,
            reason="shape",
            rule=f"the header declares `{spec}`",
            received=f"shape {shape}",
            next_step="Add a `require` that excludes such arguments.",
        )
    return shape


def _array(
    spec: ArraySpec, argument: CallArgument, signature: Signature, types: dict[str, str]
) -> ArrayArgument:
    def refuse(what: str, reason: str, received: str, next_step: str) -> NoReturn:
        raise BindingError(
            f"`{spec.name}`: {what}",
            argument=spec.name,
            reason=reason,
            rule=f"the header declares `{spec}`" + _where(spec.dtype, signature),
            received=received,
            next_step=next_step,
        )

    if not isinstance(argument, ArrayArgument):
        refuse("an array is needed, got a scalar.", "rank", repr(argument.value), "Pass an array.")
    choices = dict(signature.type_variables).get(spec.dtype, (spec.dtype,))
    text = f"{argument.dtype} {argument.shape}"
    bound = types.get(spec.dtype)
    if argument.dtype not in choices:
        wanted = choices[0] if len(choices) == 1 else "one of " + ", ".join(choices)
        refuse(
            f"{wanted} is needed, got {argument.dtype}.",
            "dtype",
            text,
            f"Convert `{spec.name}` to {choices[0]}.",
        )
    if bound is not None and argument.dtype != bound:
        what = f"{spec.dtype} is {bound} by an argument before it, got {argument.dtype}."
        refuse(what, "dtype", text, f"Pass arrays of one dtype for {spec.dtype}.")
    if spec.dtype in dict(signature.type_variables):
        types[spec.dtype] = argument.dtype
    if len(argument.shape) != len(spec.dims):
        what = f"{len(spec.dims)} axes are needed, got {len(argument.shape)}."
        refuse(what, "rank", text, "Reshape the array.")
    if not spec.is_strided and not is_contiguous(argument):
        what = (
            f"it is a view with strides {argument.strides} elements; the kernel declares a contiguous array."
        )
        refuse(
            what,
            "layout",
            f"{text}, strides {argument.strides}",
            "Pass a contiguous copy (`np.ascontiguousarray(x)`, `x.contiguous()`), or declare the input `strided`.",
        )
    is_overlapping = any(
        n > 1 and s == 0 for n, s in zip(argument.shape, argument.strides or (), strict=False)
    )
    if spec.is_inout and is_overlapping:
        what = "it is a broadcast view, whose elements share memory; the kernel writes to it."
        refuse(what, "layout", f"{text}, strides {argument.strides}", "Pass a copy.")
    return argument


def _where(dtype: str, signature: Signature) -> str:
    choices = dict(signature.type_variables).get(dtype)
    return f" where {dtype} in {{{', '.join(choices)}}}" if choices else ""


def _scalar(spec: ScalarSpec, argument: CallArgument, types: dict[str, str]) -> Scalar:
    dtype = types.get(spec.dtype, spec.dtype)
    if not isinstance(argument, ScalarValue):
        raise BindingError(
            f"`{spec.name}`: a scalar is needed, got an array.",
            argument=spec.name,
            reason="rank",
            rule=f"the header declares `{spec}`",
            received=f"{argument.dtype} {argument.shape}",
            next_step="Pass a number, such as `x.item()`.",
        )
    given = argument.value
    if isinstance(given, np.generic):
        # NumPy's scalars become Python's; those of ml_dtypes have no other way than float().
        item = given.item()
        given = float(item) if isinstance(item, np.generic) else item
    value = convert_scalar(given, dtype)
    if value is None:
        raise BindingError(
            f"`{spec.name}`: {argument.value!r} does not fit in {dtype}.",
            argument=spec.name,
            reason="value",
            rule=f"the header declares `{spec}`; values are never truncated",
            received=repr(argument.value),
            next_step=f"Pass a value that {dtype} can hold, or declare a wider dtype.",
        )
    return value


def convert_scalar(value: Scalar, dtype: str) -> Scalar | None:
    """Return `value` as `dtype` holds it, or None when it does not fit.

    Integers must be exact everywhere; floating-point values are rounded but may not overflow.
    """
    kind = DTYPES[dtype].kind
    if kind == "b":
        return (
            bool(value) if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)) else None
        )
    if kind in "iu":
        if not isinstance(value, int):
            return None
        bits = 8 * DTYPES[dtype].itemsize
        low, high = (0, 2**bits) if kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return int(value) if low <= value < high else None
    if isinstance(value, complex) and kind == "f":
        return None
    try:
        number = complex(value)
    except OverflowError:
        return None
    if isinstance(value, int) and int(number.real) != value:
        return None
    part = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    real = _round(number.real, part, is_exact=isinstance(value, int))
    imag = _round(number.imag, part, is_exact=False)
    if real is None or imag is None:
        return None
    return real if kind == "f" else complex(real, imag)


def _round(value: float, dtype: str, *, is_exact: bool) -> float | None:
    """Return the nearest number of a floating-point dtype; None when it overflows, or must be exact and is not."""
    if not math.isfinite(value):
        return value
    with np.errstate(over="ignore"):
        rounded = float(np.asarray(value).astype(DTYPES[dtype].numpy))
    if not math.isfinite(rounded) or (is_exact and rounded != value):
        return None
    return rounded


def _dimensions(
    signature: Signature, arrays: dict[str, ArrayArgument], environment: dict[str, int | bool]
) -> dict[str, int]:
    """Unify every dimension expression with the sizes of the arguments."""
    specs = [s for s in signature.inputs if isinstance(s, ArraySpec)]
    sizes = [(s, axis, d, arrays[s.name].shape[axis]) for s in specs for axis, d in enumerate(s.dims)]
    known: dict[str, int | bool] = dict(environment)
    found: dict[str, int] = {}
    for _, _, dim, size in sizes:
        if dim.is_name and dim.text not in known:
            known[dim.text] = found[dim.text] = size
    pending = True
    while pending:
        pending = False
        for spec, axis, dim, size in sizes:
            unknown = [n for n in dim.names if n not in known]
            if len(unknown) == 1:
                value = _solve(dim, unknown[0], size, known)
                if value is None:
                    _refuse_shape(spec, axis, dim, arrays[spec.name], known)
                known[unknown[0]] = found[unknown[0]] = value
                pending = True
    for spec, axis, dim, size in sizes:
        if dim.evaluate(known) != size:
            _refuse_shape(spec, axis, dim, arrays[spec.name], known)
    return found


def _solve(dim: Expression, name: str, size: int, known: dict[str, int | bool]) -> int | None:
    """Return the value of the one unknown of a linear expression, or None."""

    def at(value: int) -> int:
        return int(dim.evaluate({**known, name: value}))

    try:
        base, slope = at(0), at(1) - at(0)
        if slope == 0 or (size - base) % slope:
            return None
        value = (size - base) // slope
        return value if value >= 0 and at(value) == size and at(2) - at(1) == slope else None
    except HeaderError:
        return None


def _refuse_shape(
    spec: ArraySpec, axis: int, dim: Expression, array: ArrayArgument, known: dict[str, int | bool]
) -> NoReturn:
    values = ", ".join(f"{n} = {int(known[n])}" for n in sorted(dim.names) if n in known)
    expected = f" ({dim.evaluate(known)})" if set(dim.names) <= set(known) else ""
    raise BindingError(
        f"`{spec.name}`: axis {axis} has size {array.shape[axis]}, `{dim}`{expected} is needed.",
        argument=spec.name,
        reason="shape",
        rule=f"the header declares `{spec}`" + (f" and {values}" if values else ""),
        received=f"{array.dtype} {array.shape}",
        next_step="Pass arrays whose shapes agree.",
    )


def _check_requirements(header: LaunchHeader, environment: dict[str, int | bool]) -> None:
    """Check every top-level `require` that needs nothing but the arguments."""
    known = dict(environment)
    for statement in header.statements:
        if isinstance(statement, Let) and expression_is_known(statement.value, known):
            known[statement.name] = statement.value.evaluate(known)
        elif isinstance(statement, Require) and expression_is_known(statement.condition, known):
            check_requirement(statement, known)


def check_requirement(statement: Require, environment: dict[str, int | bool]) -> None:
    """Raise a PreconditionError unless the condition holds."""
    condition = statement.condition
    if condition.evaluate(environment):
        return
    keys = sorted(condition.names | {f.key for f in condition.facts})
    raise PreconditionError(
        f"The kernel requires `{condition}`.",
        reason="value",
        rule=f"line {statement.line} of the launch header: `require {condition}`",
        received=", ".join(f"{k} = {int(environment[k])}" for k in keys) or str(condition),
        next_step="Pass arguments for which it holds, or ask for a kernel without this limit.",
    )
