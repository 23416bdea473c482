"""The first statement of a launch header: name, inputs, outputs and type variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from llmkernel.candidate.expressions import FUNCTIONS, Expression, did_you_mean
from llmkernel.candidate.header_lines import EXAMPLE, Cursor, LogicalLine, Token
from llmkernel.candidate.header_scope import BUILTINS, CXX_DTYPES, DEVICE_FACTS, Scope
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec, ScalarSpec, Signature

_RULE = f"a signature reads `{EXAMPLE.removeprefix('//! ')}`"
_ARRAY_RULE = "an array reads `name: dtype[dimensions]`"
_Spec = ArraySpec | ScalarSpec


def parse_signature(line: LogicalLine, scope: Scope) -> Signature:
    """Parse the signature and put its names into `scope`."""
    cursor = Cursor(line)
    name = cursor.name("the name of the callable", _RULE)
    types = dict(_type_variables(line, scope))
    scope.type_variables.update(types)
    cursor.expect("(", _RULE)
    inputs: list[_Spec] = []
    while not cursor.at(")"):
        inputs.append(parse_array(cursor, scope, "input"))
        if not cursor.take(","):
            break
    cursor.expect(")", _RULE)
    outputs: list[ArraySpec] = []
    if cursor.take("->"):
        outputs = _outputs(cursor, scope)
    if not cursor.at("where"):
        cursor.end(_RULE)
    result = Signature(name.text, tuple(inputs), tuple(outputs), tuple(types.items()))
    _check(result, cursor, scope, name)
    return result


def _outputs(cursor: Cursor, scope: Scope) -> list[ArraySpec]:
    is_tuple = cursor.take("(")
    outputs: list[ArraySpec] = []
    while not (is_tuple and cursor.at(")")):
        spec = parse_array(cursor, scope, "output")
        assert isinstance(spec, ArraySpec)
        outputs.append(spec)
        if not cursor.take(","):
            break
    if is_tuple:
        cursor.expect(")", "several outputs stand in parentheses")
    return outputs


def parse_array(cursor: Cursor, scope: Scope, role: str) -> _Spec:
    """Parse one array or scalar and declare it in `scope`.

    Parameters
    ----------
    role : str
        ``input``, ``output`` or ``scratch``.
    """
    is_inout = role == "input" and cursor.take("inout")
    is_strided = cursor.take("strided")
    name = cursor.name("the name of an array" if role != "input" else "the name of an argument", _ARRAY_RULE)
    # An int scalar may stand in the shape of an array before it.
    scope.check_new(name, cursor, may_be_dimension=role == "input")
    cursor.expect(":", _ARRAY_RULE)
    is_strided = cursor.take("strided") or is_strided
    dtype = _dtype(cursor, scope)
    has_brackets = cursor.at("[")
    dims = _dims(cursor, scope, role) if has_brackets else ()
    if role == "input" and not has_brackets and not is_inout and not is_strided:
        if cursor.at("="):
            cursor.fail(
                "A scalar has no default.",
                "every call passes every argument",
                next_step="Remove the default.",
            )
        scalar = ScalarSpec(name.text, dtype.text)
        if name.text in scope.dims and not scope.is_integer(scalar):
            cursor.fail(f"`{name.text}` is a dimension and must be an integer.", _ARRAY_RULE, dtype)
        scope.dims.discard(name.text)
        scope.scalars[name.text] = scalar
        return scalar
    scope.check_new(name, cursor)
    if is_strided and role != "input":
        cursor.fail(f"`{name.text}` cannot be strided.", "outputs and scratch are contiguous", name)
    if is_strided and not dims:
        cursor.fail(f"`{name.text}` is strided but has no axis.", "a 0-d array has no strides", name)
    spec = ArraySpec(name.text, dtype.text, dims, is_inout, is_strided)
    if cursor.at("="):
        equals = cursor.next()
        zero = cursor.next()
        if role == "input":
            cursor.fail("An input has no initial value.", "`= 0` belongs to outputs and scratch", equals)
        if zero.text != "0":
            cursor.fail("The only initial value is 0.", "`= 0` fills with zeros before every call", zero)
        spec = replace(spec, is_zeroed=True)
    scope.arrays[spec.name] = spec
    scope.roles[spec.name] = "inout" if is_inout else role
    return spec


def _dtype(cursor: Cursor, scope: Scope) -> Token:
    token = cursor.name("a dtype", _ARRAY_RULE)
    known = [*scope.type_variables, *DTYPES]
    if token.text not in known:
        if token.text in CXX_DTYPES:
            near = f"; NumPy's name is `{CXX_DTYPES[token.text]}`."
        else:
            near = did_you_mean(token.text, known) or "."
        cursor.fail(
            f"`{token.text}` is not a dtype{near}",
            "dtypes are " + ", ".join(DTYPES),
            token,
            f"Use one of these, or add `where {token.text} in {{float32, float16}}`.",
        )
    return token


def _dims(cursor: Cursor, scope: Scope, role: str) -> tuple[Expression, ...]:
    cursor.expect("[", _ARRAY_RULE)
    dims = []
    while not cursor.at("]"):
        start, end = cursor.slice_until(",")
        if role != "scratch":
            _declare_dimensions(cursor, scope, start, end)
        expression = scope.expression(cursor, start, end, "a dimension")
        if any(f.kind != "sizeof" for f in expression.facts):
            cursor.index = start
            cursor.fail("A dimension cannot depend on addresses or strides.", "dimensions are sizes")
        if role != "scratch" and not expression.names.isdisjoint(DEVICE_FACTS):
            cursor.index = start
            cursor.fail(
                "The shape of an argument or result cannot depend on the device.",
                "only scratch depends on num_sms and max_shared_bytes",
            )
        dims.append(expression)
        if not cursor.take(","):
            break
    cursor.expect("]", _ARRAY_RULE)
    return tuple(dims)


def _declare_dimensions(cursor: Cursor, scope: Scope, start: int, end: int) -> None:
    """Declare the names in tokens `start` to `end`: in a signature, a new name is a new dimension."""
    words = {"and", "or", "not", *BUILTINS, *FUNCTIONS, *DTYPES}
    known = {*scope.scalars, *scope.arrays, *scope.type_variables}
    for token in cursor.line.tokens[start:end]:
        if token.kind == "name" and token.text not in words | known | scope.dims:
            scope.check_new(token, cursor)
            scope.dims.add(token.text)


def _type_variables(line: LogicalLine, scope: Scope) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the variables of `where`, which is read first because the dtypes before it need them."""
    rule = "type variables read `where T in {float32, float16}`"
    index = next((i for i, t in enumerate(line.tokens) if t.text == "where"), None)
    if index is None:
        return
    cursor = Cursor(line, index + 1)
    seen: set[str] = set()
    while True:
        name = cursor.name("a type variable", rule)
        scope.check_new(name, cursor)
        if name.text in seen:
            cursor.fail(f"`{name.text}` is declared twice.", rule, name, "Write one set of dtypes.")
        seen.add(name.text)
        cursor.expect("in", rule)
        cursor.expect("{", rule)
        dtypes: list[str] = []
        while not cursor.at("}"):
            token = _dtype(cursor, scope)
            if token.text in dtypes:
                cursor.fail(f"`{token.text}` stands twice in the set.", rule, token, "Remove one.")
            dtypes.append(token.text)
            if not cursor.take(","):
                break
        if not dtypes:
            cursor.fail_expected("a dtype", rule)
        cursor.expect("}", rule)
        yield name.text, tuple(dtypes)
        if not cursor.take(",", "and", "where"):
            break
        cursor.take("where")
    cursor.end(rule)


def _check(signature: Signature, cursor: Cursor, scope: Scope, name: Token) -> None:
    """Check that a call determines everything."""
    if not signature.outputs and not any(a.is_inout for a in signature.arrays()):
        cursor.fail(
            f"`{signature.name}` has no result.",
            "a signature has outputs after `->`, or an `inout` array",
            name,
            "Add `-> y: dtype[dimensions]`.",
        )
    arrays = [s for s in signature.inputs if isinstance(s, ArraySpec)]
    bound_types = {a.dtype for a in arrays}
    for variable, choices in signature.type_variables:
        if len(choices) > 1 and variable not in bound_types:
            cursor.fail(
                f"`{variable}` is not the dtype of any input array, so a call does not determine it.",
                "every type variable is the dtype of an input array",
                _named(cursor, variable),
                "Name one dtype.",
            )
    missing = scope.dims - determined_names(signature)
    if missing:
        first = min(missing)
        cursor.fail(
            f"No input determines the dimension `{first}`.",
            "a dimension is an int scalar or stands in an input's shape, as the one unknown there",
            _named(cursor, first),
            f"Add the scalar `{first}: int64` to the inputs, or write the size in terms of known dimensions.",
        )


def determined_names(signature: Signature) -> set[str]:
    """Return the dimensions that the inputs determine, taking one unknown of an expression at a time."""
    known = {s.name for s in signature.inputs if isinstance(s, ScalarSpec)}
    dims = [d for s in signature.inputs if isinstance(s, ArraySpec) for d in s.dims]
    known |= {d.text for d in dims if d.is_name}
    while True:
        found = {n for d in dims if len(d.names - known) == 1 for n in d.names - known}
        if not found:
            return known
        known |= found


def _named(cursor: Cursor, name: str) -> Token:
    return next(t for t in cursor.line.tokens if t.text == name)
