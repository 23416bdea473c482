"""Which names a launch header may use where, and what they mean."""

from __future__ import annotations

import keyword

from llmkernel.candidate.expressions import FUNCTIONS, Expression, did_you_mean, parse_expression
from llmkernel.candidate.header_lines import Cursor, Token
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec, ScalarSpec

DEVICE_FACTS = ("num_sms", "max_shared_bytes")
BUILTINS = (*DEVICE_FACTS, "repeat_index")
WORDS = ("inout", "strided", "true", "false", "tensor_map", "cooperative")
CXX_DTYPES = {cxx: d.name for d in DTYPES.values() for cxx in d.cxx}


class Scope:
    """Names known at one point of a header.

    Attributes
    ----------
    arrays : dict
        Name to `ArraySpec` for inputs, outputs and scratch.
    roles : dict
        Name of an array to ``input``, ``inout``, ``output`` or ``scratch``.
    scalars : dict
        Name to `ScalarSpec`.
    dims : set of str
        Symbolic dimensions of inputs and outputs.
    lets : dict
        Name to the line that defines it.
    type_variables : dict
        Name to dtypes.
    repeat_depth : int
    """

    def __init__(self) -> None:
        self.arrays: dict[str, ArraySpec] = {}
        self.roles: dict[str, str] = {}
        self.scalars: dict[str, ScalarSpec] = {}
        self.dims: set[str] = set()
        self.lets: dict[str, int] = {}
        self.type_variables: dict[str, tuple[str, ...]] = {}
        self.repeat_depth = 0

    def copy(self) -> Scope:
        """Return a scope for a block: what it defines is not seen outside."""
        other = Scope()
        other.__dict__.update(
            {k: v.copy() if isinstance(v, dict | set) else v for k, v in self.__dict__.items()},
        )
        return other

    def check_new(self, token: Token, cursor: Cursor, *, may_be_dimension: bool = False) -> None:
        """Fail unless `token` may name something new."""
        name = token.text
        taken = None
        if keyword.iskeyword(name):
            taken = "is a word of Python's, in which the generated callable lives"
        elif name in FUNCTIONS or name in BUILTINS or name in WORDS:
            taken = "is a word of the launch header"
        elif name in DTYPES:
            taken = "is a dtype"
        elif name in self.arrays or name in self.scalars:
            taken = "is already an argument"
        elif name in self.lets:
            taken = f"is already defined on line {self.lets[name]}"
        elif name in self.dims and not may_be_dimension:
            taken = "is already a dimension"
        elif name in self.type_variables:
            taken = "is already a type variable"
        if taken:
            cursor.fail(f"`{name}` {taken}.", "every name means one thing", token, "Choose another name.")

    def is_integer(self, scalar: ScalarSpec) -> bool:
        """Whether a scalar may stand in expressions: an integer or bool for every choice of its type."""
        choices = self.type_variables.get(scalar.dtype, (scalar.dtype,))
        return all(c in DTYPES and DTYPES[c].kind in "iub" for c in choices)

    def numbers(self) -> set[str]:
        """Return every name that may stand in an expression here."""
        names = self.dims | set(self.lets) | {n for n, s in self.scalars.items() if self.is_integer(s)}
        return names | set(DEVICE_FACTS) | ({"repeat_index"} if self.repeat_depth else set())

    def expression(self, cursor: Cursor, start: int, end: int, what: str) -> Expression:
        """Parse tokens `start` to `end` and check every name in them."""
        if start >= end:
            cursor.index = start
            cursor.fail_expected(what, "an expression stands here")
        base = cursor.offset(start)
        line = cursor.line
        result = parse_expression(cursor.text(start, end), locate=lambda offset: line.locate(base + offset))
        self._check_names(result, cursor, start, end)
        return result

    def _check_names(self, result: Expression, cursor: Cursor, start: int, end: int) -> None:
        known = self.numbers()
        rule = "an expression uses dimensions, integer scalars, `let` names, num_sms and max_shared_bytes"
        for name in sorted(result.names - known):
            token = _token_of(name, cursor, start, end)
            if name in self.arrays:
                what = f"`{name}` is an array; an expression cannot read it"
            elif name in self.scalars:
                what = f"`{name}` is no integer but {self.scalars[name].dtype}; only integers stand in expressions"
            elif name == "repeat_index":
                what = "`repeat_index` stands only inside `repeat`"
            elif name in self.type_variables or name in DTYPES:
                what = f"`{name}` is a type; write `sizeof({name})` for its size"
            else:
                what = f"Unknown name `{name}`{did_you_mean(name, known) or '.'}".removesuffix(".")
            next_step = "Define it with `let`." if what.startswith("Unknown") else None
            cursor.fail(what if what.endswith("?") else what + ".", rule, token, next_step)
        for fact in sorted(result.facts):
            token = _token_of(fact.subject, cursor, start, end)
            if fact.kind == "sizeof":
                types = {*self.type_variables, *DTYPES}
                if fact.subject not in types and fact.subject not in CXX_DTYPES:
                    near = did_you_mean(fact.subject, types) or "."
                    cursor.fail(
                        f"`{fact.subject}` is not a type{near}",
                        "sizeof takes a type variable or a dtype",
                        token,
                    )
            elif fact.subject not in self.arrays:
                near = did_you_mean(fact.subject, self.arrays) or "."
                cursor.fail(
                    f"`{fact.subject}` is not an array{near}", f"`{fact.key}` asks about an array", token
                )
            elif fact.kind == "stride":
                self._check_stride(self.arrays[fact.subject], fact.axis, cursor, token)

    def _check_stride(self, spec: ArraySpec, axis: int, cursor: Cursor, token: Token) -> None:
        if not spec.is_strided:
            cursor.fail(
                f"`{spec.name}` is contiguous: it has no strides of its own.",
                "strides are asked of inputs declared `strided`",
                token,
                f"Declare `{spec.name}: strided {spec.dtype}[…]`, or write the product of the dimensions.",
            )
        if axis >= len(spec.dims):
            cursor.fail(
                f"`{spec.name}` has {len(spec.dims)} axes; there is no axis {axis}.",
                "axes are counted from 0",
                token,
                f"Use an axis below {len(spec.dims)}.",
            )


def _token_of(name: str, cursor: Cursor, start: int, end: int) -> Token:
    tokens = cursor.line.tokens[start:end]
    return next((t for t in tokens if t.text == name), tokens[0])
