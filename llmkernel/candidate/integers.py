"""Integer values of C++ as one thread computes them: width, sign, promotion, overflow."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from llmkernel.candidate.cxx_types import dtype_of

_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)([uUlLzZ]*)")
_INTEGER = re.compile(r"(u?)int(8|16|32|64)")


@dataclass(frozen=True)
class Integer:
    """A known integer.

    Attributes
    ----------
    value : int
    bits : int
        8 to 64.
    is_signed : bool
    is_size : bool
        Made of sizes and thread numbers, not of literals alone.
    """

    value: int
    bits: int = 32
    is_signed: bool = True
    is_size: bool = False

    @property
    def type(self) -> tuple[int, bool]:
        """Width in bits and sign."""
        return self.bits, self.is_signed


def integer_type(cxx: str) -> tuple[int, bool] | None:
    """Return width and sign of a C++ type; None for anything but an integer."""
    dtype = dtype_of(cxx)
    if dtype == "bool":
        return 32, True
    match = _INTEGER.fullmatch(dtype or "")
    return (int(match[2]), not match[1]) if match else None


def fits(value: int, kind: tuple[int, bool]) -> bool:
    """Whether a value is one of the type's."""
    bits, is_signed = kind
    return -(1 << bits - 1) <= value < 1 << bits - 1 if is_signed else 0 <= value < 1 << bits


def converted(number: Integer, kind: tuple[int, bool]) -> Integer:
    """Return a value after a conversion, which wraps."""
    bits, is_signed = kind
    value = number.value % (1 << bits)
    if is_signed and value >= 1 << bits - 1:
        value -= 1 << bits
    return Integer(value, bits, is_signed, number.is_size)


def literal(text: str) -> Integer | None:
    """Return an integer literal's value; None for other numbers."""
    match = _LITERAL.fullmatch(text.replace("'", ""))
    if match is None:
        return None
    digits, suffix = match[1], match[2].lower()
    value = (
        int(digits, 8)
        if re.fullmatch(r"0[0-7]+", digits)
        else int(digits, 0)
        if digits != "0" * len(digits)
        else 0
    )
    is_unsigned = "u" in suffix
    bits = 64 if "l" in suffix or "z" in suffix else 32
    for kind in ((32, True), (32, False), (64, True), (64, False)):
        is_allowed = kind[0] >= bits and (kind[1] != is_unsigned or (not kind[1] and digits[:1] == "0"))
        if is_allowed and fits(value, kind):
            return Integer(value, *kind)
    return None


def common_type(a: Integer, b: Integer) -> tuple[int, bool]:
    """Return the type in which an operator computes two operands."""
    (first, first_signed), (second, second_signed) = (promoted(n.type) for n in (a, b))
    if first_signed == second_signed:
        return max(first, second), first_signed
    unsigned, signed = (second, first) if first_signed else (first, second)
    return (unsigned, False) if unsigned >= signed else (signed, True)


def promoted(kind: tuple[int, bool]) -> tuple[int, bool]:
    """Return the type after integral promotion."""
    return kind if kind[0] >= 32 else (32, True)


def _quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def operate(operator: str, a: Integer, b: Integer) -> tuple[Integer | None, bool]:
    """Apply a binary operator.

    Returns
    -------
    result : Integer or None
        None where it has no value.
    has_overflown : bool
        The exact result does not fit a signed type: undefined in C++.
    """
    is_size = a.is_size or b.is_size
    if operator in ("<<", ">>"):
        kind = promoted(a.type)
        if not 0 <= b.value < kind[0]:
            return None, False
        exact = a.value << b.value if operator == "<<" else a.value >> b.value
    else:
        kind = common_type(a, b)
        left, right = converted(a, kind).value, converted(b, kind).value
        if operator in _COMPARISONS:
            return Integer(int(_COMPARISONS[operator](left, right)), is_size=is_size), False
        if operator not in _ARITHMETIC or (operator in "/%" and right == 0):
            return None, False
        exact = _ARITHMETIC[operator](left, right)
    if kind[1] and not fits(exact, kind):
        return None, True
    return converted(Integer(exact, 64, True, is_size), kind), False
