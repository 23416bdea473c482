"""Terms of CUDA C++: what stands between operators and brackets inside a function body.

Rules that follow values and accesses need structure, not a compiler: what is not understood becomes an ``opaque`` term,
of which a rule then claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmkernel.candidate.cxx_declarations import match_angle, skip_balanced
from llmkernel.candidate.cxx_types import dtype_of, is_type_word, join_tokens
from llmkernel.candidate.lexer import CxxToken

_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_ASSIGNABLE = frozenset(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
_UNARY = frozenset(("!", "~", "-", "+", "*", "&", "++", "--"))
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast"))
_TYPE_NOISE = frozenset(
    ("const", "volatile", "typename", "__restrict__", "__restrict", "*", "&", "::", "struct")
)
_MAX_DEPTH = 100


@dataclass(frozen=True)
class Term:
    """One term and its parts.

    Attributes
    ----------
    kind : str
        ``name``, ``number``, ``text``, ``unary``, ``postfix``, ``binary``, ``assign``, ``conditional``, ``call``,
        ``index``, ``member``, ``cast`` or ``opaque``.
    text : str
        The name, the number, the operator, the member's name or the type of a cast.
    parts : tuple of Term
        Operands; of a call, what is called and its arguments.
    line : int
        1-based.
    """

    kind: str
    text: str
    parts: tuple[Term, ...] = ()
    line: int = 0

    def __str__(self) -> str:
        parts = [str(p) for p in self.parts]
        forms = {
            "unary": lambda: self.text + parts[0],
            "postfix": lambda: parts[0] + self.text,
            "binary": lambda: f"({parts[0]} {self.text} {parts[1]})",
            "assign": lambda: f"{parts[0]} {self.text} {parts[1]}",
            "conditional": lambda: f"({parts[0]} ? {parts[1]} : {parts[2]})",
            "call": lambda: f"{parts[0]}({', '.join(parts[1:])})",
            "index": lambda: f"{parts[0]}[{parts[1]}]",
            "member": lambda: f"{parts[0]}.{self.text}",
            "cast": lambda: f"({self.text}){parts[0]}",
        }
        return forms[self.kind]() if self.kind in forms else self.text

    def walk(self) -> Iterator[Term]:
        """Yield this term and all terms in it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def names(self) -> frozenset[str]:
        """Return every name in the term."""
        return frozenset(t.text for t in self.walk() if t.kind == "name")


def is_type(tokens: Sequence[CxxToken], types: frozenset[str]) -> bool:
    """Whether tokens spell a type, as far as built-in words and `types` tell."""
    texts = [t.text for t in tokens if t.text not in _TYPE_NOISE]
    if not texts or any(t.kind == "number" for t in tokens):
        return False
    return all(is_type_word(t) for t in texts) or (
        len(texts) == 1 and (texts[0] in types or dtype_of(texts[0]) is not None)
    )


def parse_term(tokens: list[CxxToken], types: frozenset[str] = frozenset()) -> Term:
    """Parse a whole term; what cannot be parsed is ``opaque``.

    Parameters
    ----------
    tokens : list of CxxToken
    types : frozenset of str
        Names that are known to be types.
    """
    parser = _Parser(tokens, types)
    try:
        term = parser.comma()
    except (_Unreadable, RecursionError):
        term = None
    if term is None or parser.index < len(tokens):
        text = join_tokens([t.text for t in tokens])
        return Term("opaque", text, (), tokens[0].line if tokens else 0)
    return term


def parse_initial(
    tokens: list[CxxToken], start: int, types: frozenset[str] = frozenset()
) -> tuple[Term, int]:
    """Parse the value at `start` of a declaration, up to a comma; return it and the index after it."""
    parser = _Parser(tokens, types)
    parser.index = start
    try:
        return parser.assignment(), parser.index
    except (_Unreadable, RecursionError):
        line = tokens[start].line if start < len(tokens) else 0
        return Term("opaque", join_tokens([t.text for t in tokens[start:]]), (), line), len(tokens)


class _Unreadable(Exception):  # noqa: N818 - it never leaves this module
    """The tokens are no term that is known here."""


class _Parser:
    def __init__(self, tokens: list[CxxToken], types: frozenset[str]) -> None:
        self.tokens = tokens
        self.types = types
        self.index = 0
        self.depth = 0

    def text(self, ahead: int = 0) -> str:
        i = self.index + ahead
        return self.tokens[i].text if i < len(self.tokens) else ""

    @property
    def line(self) -> int:
        return self.tokens[min(self.index, len(self.tokens) - 1)].line if self.tokens else 0

    def operator(self) -> tuple[str, int]:
        """Return the operator here and how many tokens spell it: the lexer keeps `+=` and `<<` apart."""
        first, second, third = self.text(), self.text(1), self.text(2)
        if first in ("<", ">") and second == first:
            return (first * 2 + "=", 3) if third == "=" else (first * 2, 2)
        if first in ("<", ">") and second == first + "=":
            return first * 2 + "=", 2
        if first in _ASSIGNABLE and second == "=":
            return first + "=", 2
        return first, 1

    def comma(self) -> Term:
        term = self.assignment()
        while self.text() == ",":
            line = self.line
            self.index += 1
            term = Term("binary", ",", (term, self.assignment()), line)
        return term

    def assignment(self) -> Term:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Unreadable
        target = self.binary(1)
        line = self.line
        if self.text() == "?":
            self.index += 1
            first = self.assignment()
            self.expect(":")
            target = Term("conditional", "?", (target, first, self.assignment()), line)
        else:
            operator, length = self.operator()
            if operator == "=" or (operator[:-1] in _ASSIGNABLE and operator.endswith("=")):
                self.index += length
                target = Term("assign", operator, (target, self.assignment()), line)
        self.depth -= 1
        return target

    def binary(self, lowest: int) -> Term:
        left = self.unary()
        while True:
            operator, length = self.operator()
            level = _PRECEDENCE.get(operator, 0)
            if level < lowest:
                return left
            line = self.line
            self.index += length
            left = Term("binary", operator, (left, self.binary(level + 1)), line)

    def unary(self) -> Term:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Unreadable
        text, line = self.text(), self.line
        if text in _UNARY:
            self.index += 1
            term = Term("unary", text, (self.unary(),), line)
        elif text == "(" and (end := self.cast_end()):
            type_text = join_tokens([t.text for t in self.tokens[self.index + 1 : end - 1]])
            self.index = end
            term = Term("cast", type_text, (self.unary(),), line)
        elif text == "sizeof":
            term = self.opaque_call()
        else:
            term = self.postfix(self.primary())
        self.depth -= 1
        return term

    def cast_end(self) -> int:
        """Return the index after `(type)` where a cast begins here, else 0."""
        end = skip_balanced(self.tokens, self.index)
        inside = self.tokens[self.index + 1 : end - 1]
        follower = self.tokens[end] if end < len(self.tokens) else None
        if follower is None or not inside:
            return 0
        starts = follower.kind != "symbol" or follower.text in ("(", "!", "~", "-", "+", "*", "&", "::")
        if is_type(inside, self.types):
            return end if starts else 0
        is_pointer = inside[-1].text == "*" and all(
            t.kind == "name" or t.text in ("*", "::", "<", ">", ",") for t in inside
        )
        is_name = all(t.kind == "name" or t.text == "::" for t in inside)
        plain = follower.kind in ("name", "number")
        return end if (is_pointer and starts) or (is_name and plain) else 0

    def opaque_call(self) -> Term:
        start, line = self.index, self.line
        self.index += 1
        while self.text() == "...":
            self.index += 1
        if self.text() != "(":
            raise _Unreadable
        self.index = skip_balanced(self.tokens, self.index)
        return Term("opaque", join_tokens([t.text for t in self.tokens[start : self.index]]), (), line)

    def primary(self) -> Term:
        if self.index >= len(self.tokens):
            raise _Unreadable
        token = self.tokens[self.index]
        if token.text == "(":
            end = skip_balanced(self.tokens, self.index)
            inner = _Parser(self.tokens[self.index + 1 : end - 1], self.types)
            inner.depth = self.depth
            term = inner.comma()
            if inner.index < len(inner.tokens):
                raise _Unreadable
            self.index = end
            return term
        if token.kind == "number":
            self.index += 1
            return Term("number", token.text, (), token.line)
        if token.kind in ("string", "char"):
            self.index += 1
            return Term("text", token.text, (), token.line)
        if token.text == "::":
            self.index += 1
            return self.primary()
        if token.text == "[":
            return self.closure()
        if token.text == "{":
            self.index = skip_balanced(self.tokens, self.index)
            return Term("opaque", "{…}", (), token.line)
        if token.text == "typename":
            return self.functional_cast()
        if token.kind != "name":
            raise _Unreadable
        if token.text in _CASTS:
            end = match_angle(self.tokens, self.index + 1)
            type_text = join_tokens([t.text for t in self.tokens[self.index + 2 : end - 1]])
            self.index = end
            if self.text() != "(":
                raise _Unreadable
            return Term("cast", type_text, (self.primary(),), token.line)
        return self.name()

    def functional_cast(self) -> Term:
        self.index += 1
        named = self.name()
        if self.text() != "(":
            raise _Unreadable
        return Term("cast", named.text, (self.primary(),), named.line)

    def name(self) -> Term:
        start, line = self.index, self.line
        while is_type_word(self.text()):
            self.index += 1
        if self.index > start and self.text() in ("(", "{"):
            type_text = join_tokens([t.text for t in self.tokens[start : self.index]])
            return Term("cast", type_text, (self.primary(),), line)
        if self.index > start:
            raise _Unreadable
        parts = []
        while True:
            if self.text() == "template":
                self.index += 1
            if self.index >= len(self.tokens) or self.tokens[self.index].kind != "name":
                raise _Unreadable
            parts.append(self.text())
            self.index += 1
            if self.text() == "<" and (end := self.template_end()):
                parts[-1] += join_tokens([t.text for t in self.tokens[self.index : end]])
                self.index = end
            if self.text() != "::":
                break
            self.index += 1
        text = "::".join(parts)
        if self.text() == "(" and (text in self.types or dtype_of(text) is not None):
            return Term("cast", text, (self.primary(),), line)
        return Term("name", text, (), line)

    def template_end(self) -> int:
        """Return the index after template arguments that begin here, else 0."""
        end = match_angle(self.tokens, self.index)
        closer = self.tokens[end - 1].text if end - 1 > self.index else ""
        if closer not in (">", ">>>") or end >= len(self.tokens):
            return 0
        inside = self.tokens[self.index + 1 : end - 1]
        plain = all(
            t.kind in ("name", "number")
            or t.text in ("::", ",", "<", ">", "/", "*", "+", "-", "(", ")", "...", "&", "%")
            for t in inside
        )
        return end if plain and self.tokens[end].text in ("(", "::", "{") else 0

    def closure(self) -> Term:
        line = self.line
        self.index = skip_balanced(self.tokens, self.index)
        if self.text() == "(":
            self.index = skip_balanced(self.tokens, self.index)
        while self.index < len(self.tokens) and self.text() != "{":
            self.index += 1
        self.index = skip_balanced(self.tokens, self.index)
        return Term("opaque", "[…]{…}", (), line)

    def postfix(self, term: Term) -> Term:
        while True:
            text, line = self.text(), self.line
            if text == "[":
                end = skip_balanced(self.tokens, self.index)
                inner = parse_term(self.tokens[self.index + 1 : end - 1], self.types)
                self.index = end
                term = Term("index", "[]", (term, inner), line)
            elif text == "(":
                term = Term("call", "()", (term, *self.arguments()), line)
            elif text in (".", "->"):
                self.index += 1
                if self.text() == "template":
                    self.index += 1
                if self.index >= len(self.tokens) or self.tokens[self.index].kind != "name":
                    raise _Unreadable
                name = self.text()
                self.index += 1
                if self.text() == "<" and (end := self.template_end()):
                    self.index = end
                term = Term("member", name, (term,), line)
            elif text == "{" and term.kind == "name":
                self.index = skip_balanced(self.tokens, self.index)
                term = Term("opaque", term.text + "{…}", (), line)
            elif text in ("++", "--"):
                self.index += 1
                term = Term("postfix", text, (term,), line)
            else:
                return term

    def arguments(self) -> list[Term]:
        end = skip_balanced(self.tokens, self.index)
        inner = _Parser(self.tokens[self.index + 1 : end - 1], self.types)
        inner.depth = self.depth
        out = []
        while inner.index < len(inner.tokens):
            out.append(inner.assignment())
            if inner.index < len(inner.tokens):
                inner.expect(",")
        self.index = end
        return out

    def expect(self, text: str) -> None:
        if self.text() != text:
            raise _Unreadable
        self.index += 1
