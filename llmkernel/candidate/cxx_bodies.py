"""Function bodies of a `.cu` file as statements, for rules that follow what a thread does."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from llmkernel.candidate.cxx_declarations import (
    Declaration,
    declarations,
    match_angle,
    skip_balanced,
    split_commas,
)
from llmkernel.candidate.cxx_steps import (
    Bodies,
    Branch,
    Compute,
    Declare,
    Function,
    Jump,
    Loop,
    Step,
    Unknown,
    Variable,
)
from llmkernel.candidate.cxx_terms import Term, parse_initial, parse_term
from llmkernel.candidate.cxx_types import is_type_word, join_tokens
from llmkernel.candidate.lexer import CxxToken

_QUALIFIERS = frozenset(
    (
        "const",
        "constexpr",
        "static",
        "volatile",
        "extern",
        "register",
        "inline",
        "__shared__",
        "__device__",
        "__constant__",
        "__managed__",
        "__restrict__",
        "__restrict",
        "typename",
        "struct",
        "mutable",
    )
)
_ALIGNING = frozenset(("__align__", "alignas", "__attribute__", "__declspec"))
_JUMPS = frozenset(("return", "break", "continue", "goto"))
_STARTS = frozenset(
    ("if", "for", "while", "do", "switch", "else", "case", "default", "asm", "using", "typedef")
)


def parse_bodies(source: str) -> Bodies:
    """Read the function bodies of a `.cu` file; any text has some, perhaps none."""
    functions: dict[str, Function] = {}
    variables: list[Variable] = []
    for declaration in declarations(source):
        types = frozenset(declaration.aliases) | {
            p[-1].text for p in declaration.template if _is_type_name(p)
        }
        if declaration.body:
            function = _function(declaration, types)
            if function is not None:
                twin = functions.get(function.name)
                functions[function.name] = function if twin is None else _joined(twin, function)
        elif {t.text for t in declaration.tokens} & {"__shared__", "__device__", "__constant__", "constexpr"}:
            found = _declared(declaration.tokens, types)
            variables += [] if found is None else found.variables
    return Bodies(functions, tuple(variables))


@lru_cache(maxsize=32)
def bodies_of(source: str) -> Bodies:
    """Return `parse_bodies` of a source that several rules ask about."""
    return parse_bodies(source)


def _is_type_name(parameter: list[CxxToken]) -> bool:
    return parameter[0].text in ("typename", "class") and len(parameter) > 1


def _joined(first: Function, second: Function) -> Function:
    """Return overloads as one: they are not told apart, and hold the statements of both."""
    return replace(first, body=(*first.body, *second.body), is_overloaded=True)


def _function(declaration: Declaration, types: frozenset[str]) -> Function | None:
    tokens = declaration.tokens
    opening = -1
    i = 0
    while i < len(tokens):
        if tokens[i].text in ("(", "["):
            if tokens[i].text == "(" and i and tokens[i - 1].kind == "name":
                is_attribute = tokens[i - 1].text.startswith("__") or tokens[i - 1].text in _ALIGNING
                opening = opening if is_attribute else i
            i = skip_balanced(tokens, i)
        else:
            i += 1
    if opening < 0 or tokens[0].text in ("struct", "class", "union", "enum", "namespace"):
        return None
    inside = tokens[opening + 1 : skip_balanced(tokens, opening) - 1]
    parameters: list[Variable] = []
    for part in split_commas(inside):
        found = _declared(part, types) if part else None
        parameters.append(found.variables[0] if found and found.variables else Variable("", ""))
    body = _Reader(declaration.body[1:-1], types).steps()
    is_kernel = any(t.text == "__global__" for t in tokens[:opening])
    name = tokens[opening - 1]
    return Function(name.text, tuple(parameters), body, is_kernel, types, name.line)


class _Reader:
    def __init__(self, tokens: list[CxxToken], types: frozenset[str]) -> None:
        self.tokens = tokens
        self.types = types
        self.index = 0

    def text(self, ahead: int = 0) -> str:
        i = self.index + ahead
        return self.tokens[i].text if i < len(self.tokens) else ""

    def steps(self) -> tuple[Step, ...]:
        out: list[Step] = []
        while self.index < len(self.tokens):
            before = self.index
            out += self.step()
            if self.index == before:
                self.index += 1
        return tuple(out)

    def step(self) -> tuple[Step, ...]:
        text = self.text()
        line = self.tokens[self.index].line
        if text == ";":
            self.index += 1
            return ()
        if text == "{":
            end = skip_balanced(self.tokens, self.index)
            inner = _Reader(self.tokens[self.index + 1 : end - 1], self.types)
            self.index = end
            return inner.steps()
        if text == "if":
            return self.branch(line)
        if text in ("for", "while"):
            return self.loop(text, line)
        if text == "do":
            return self.do_loop(line)
        if text == "switch":
            self.index = skip_balanced(self.tokens, self.index + 1)
            if self.text() == "{":
                self.index = skip_balanced(self.tokens, self.index)
            return (Unknown("switch", line),)
        tokens = self.until_semicolon()
        if text in ("using", "typedef"):
            self.note_type(tokens)
            return ()
        if text in _JUMPS:
            value = parse_term(tokens[1:], self.types) if text == "return" and len(tokens) > 1 else None
            return (Jump(text, value, line),)
        if text in ("asm", "__asm__", "case", "default"):
            return (Unknown(text, line),)
        return self.plain(tokens, line)

    def plain(self, tokens: list[CxxToken], line: int) -> tuple[Step, ...]:
        if not tokens:
            return ()
        found = _declared(tokens, self.types)
        if found is not None:
            return (found,)
        term = parse_term(tokens, self.types)
        return (Unknown(term.text, line) if term.kind == "opaque" else Compute(term, line),)

    def note_type(self, tokens: list[CxxToken]) -> None:
        name = tokens[1].text if tokens[0].text == "using" and len(tokens) > 2 else tokens[-1].text
        self.types |= {name}

    def until_semicolon(self) -> list[CxxToken]:
        start = self.index
        while self.index < len(self.tokens) and self.text() != ";":
            if self.text() in ("(", "[", "{"):
                self.index = skip_balanced(self.tokens, self.index)
            else:
                self.index += 1
        tokens = self.tokens[start : self.index]
        self.index += 1
        return tokens

    def parenthesis(self) -> list[CxxToken]:
        if self.text() != "(":
            return []
        end = skip_balanced(self.tokens, self.index)
        inside = self.tokens[self.index + 1 : end - 1]
        self.index = end
        return inside

    def part(self) -> tuple[Step, ...]:
        return self.step() if self.index < len(self.tokens) else ()

    def branch(self, line: int) -> tuple[Step, ...]:
        self.index += 1
        if self.text() == "constexpr":
            self.index += 1
        inside = self.parenthesis()
        start: tuple[Step, ...] = ()
        parts = _split(inside, ";")
        if len(parts) == 2:
            start = self.plain(parts[0], line)
        condition = parse_term(parts[-1], self.types)
        then = self.part()
        otherwise: tuple[Step, ...] = ()
        if self.text() == "else":
            self.index += 1
            otherwise = self.part()
        return (*start, Branch(condition, then, otherwise, line))

    def loop(self, word: str, line: int) -> tuple[Step, ...]:
        self.index += 1
        inside = self.parenthesis()
        if word == "while":
            return (Loop((), parse_term(inside, self.types), None, self.part(), line=line),)
        parts = _split(inside, ";")
        if len(parts) != 3:
            body = self.part()
            return (Loop((), None, None, (*body, Unknown("range", line)), line=line),)
        start = self.plain(parts[0], line)
        condition = parse_term(parts[1], self.types) if parts[1] else None
        step = parse_term(parts[2], self.types) if parts[2] else None
        return (Loop(start, condition, step, self.part(), line=line),)

    def do_loop(self, line: int) -> tuple[Step, ...]:
        self.index += 1
        body = self.part()
        if self.text() == "while":
            self.index += 1
        condition = parse_term(self.parenthesis(), self.types)
        return (Loop((), condition, None, body, is_do=True, line=line),)


def _split(tokens: list[CxxToken], separator: str) -> list[list[CxxToken]]:
    parts: list[list[CxxToken]] = [[]]
    i = 0
    while i < len(tokens):
        end = skip_balanced(tokens, i) if tokens[i].text in ("(", "[", "{") else i + 1
        if tokens[i].text == separator:
            parts.append([])
        else:
            parts[-1] += tokens[i:end]
        i = end
    return parts


def _declared(tokens: list[CxxToken], types: frozenset[str]) -> Declare | None:
    """Read `tokens` as a declaration; None where they are none."""
    words: set[str] = set()
    base: list[str] = []
    i = 0
    while i < len(tokens):
        text = tokens[i].text
        if text in _QUALIFIERS:
            words.add(text)
            i += 1
        elif text in _ALIGNING or text == "__launch_bounds__":
            i = skip_balanced(tokens, i + 1)
        elif text == "[" and i == 0 and len(tokens) > 1 and tokens[1].text == "[":
            i = skip_balanced(tokens, i)
        else:
            break
    start = i
    while i < len(tokens) and is_type_word(tokens[i].text):
        i += 1
    if i == start:
        i = _type_name_end(tokens, i)
    if i == start or i >= len(tokens) or tokens[start].text in _STARTS | _JUMPS:
        return None
    base = [t.text for t in tokens[start:i]]
    while i < len(tokens) and tokens[i].text in ("const", "volatile"):
        words.add(tokens[i].text)
        i += 1
    variables: list[Variable] = []
    while i < len(tokens):
        found = _declarator(tokens, i, join_tokens(base), words, types)
        if found is None:
            return None
        variables.append(found[0])
        i = found[1]
        if i < len(tokens) and tokens[i].text != ",":
            return None
        i += 1
    return Declare(tuple(variables), tokens[0].line) if variables else None


def _type_name_end(tokens: list[CxxToken], i: int) -> int:
    """Return the index after `a::b<c>` where one begins at `i`."""
    while i < len(tokens) and tokens[i].kind == "name":
        i += 1
        if i < len(tokens) and tokens[i].text == "<":
            end = match_angle(tokens, i)
            if tokens[end - 1].text not in (">", ">>>"):
                return i
            i = end
        if i < len(tokens) and tokens[i].text == "::":
            i += 1
            continue
        break
    return i


def _declarator(
    tokens: list[CxxToken], i: int, base: str, words: set[str], types: frozenset[str]
) -> tuple[Variable, int] | None:
    """Read one declarator and say where it ends; None where there is none."""
    depth = 0
    while i < len(tokens) and (tokens[i].text in ("*", "&", "&&") or tokens[i].text in _QUALIFIERS):
        depth += tokens[i].text == "*"
        i += 1
    if i >= len(tokens) or tokens[i].kind != "name":
        return None
    name = tokens[i]
    i += 1
    extents: list[Term] = []
    while i < len(tokens) and tokens[i].text == "[":
        end = skip_balanced(tokens, i)
        extents.append(parse_term(tokens[i + 1 : end - 1], types))
        i = end
    value: Term | None = None
    text = tokens[i].text if i < len(tokens) else ""
    if text == "=":
        value, i = parse_initial(tokens, i + 1, types)
    elif text in ("(", "{"):
        end = skip_balanced(tokens, i)
        value = parse_term(tokens[i + 1 : end - 1], types)
        i = end
    return Variable(
        name.text,
        base,
        depth,
        tuple(extents),
        value,
        is_shared="__shared__" in words,
        is_volatile="volatile" in words,
        is_const=bool({"const", "constexpr"} & words),
        is_lasting=bool({"static", "__device__", "__managed__"} & words),
        line=name.line,
    ), i
