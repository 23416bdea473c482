"""Cuts a `.cu` file into declarations, with namespaces, template parameters and the aliases known so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from llmkernel.candidate.lexer import CxxToken, expand_macros, tokenize

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = frozenset(_PAIRS.values())


@dataclass
class Declaration:
    """One declaration outside function bodies.

    Attributes
    ----------
    tokens : list of CxxToken
        Up to the body or the semicolon, without `template <…>`.
    template : list of list of CxxToken
        Template parameters.
    namespaces : tuple of str
    aliases : dict
        Name to the tokens of the type it stands for.
    has_body : bool
    is_specialization : bool
        ``template <>`` or an explicit instantiation.
    is_c_linkage : bool
        After ``extern "C"``, or inside its block.
    is_conditional : bool
        Between `#if` and `#endif`.
    body : list of CxxToken
        Of a function, braces included.
    """

    tokens: list[CxxToken]
    template: list[list[CxxToken]] = field(default_factory=list)
    namespaces: tuple[str, ...] = ()
    aliases: dict[str, list[str]] = field(default_factory=dict)
    has_body: bool = False
    is_specialization: bool = False
    is_c_linkage: bool = False
    is_conditional: bool = False
    body: list[CxxToken] = field(default_factory=list)


def skip_balanced(tokens: list[CxxToken], start: int) -> int:
    """Return the index after the bracket that closes the one at `start`; the end when none does."""
    depth = 0
    for i in range(start, len(tokens)):
        if tokens[i].kind != "symbol":
            continue
        if tokens[i].text in _PAIRS:
            depth += 1
        elif tokens[i].text in _CLOSERS:
            depth -= 1
            if depth <= 0:
                return i + 1
    return len(tokens)


def match_angle(tokens: list[CxxToken], start: int) -> int:
    """Return the index after the `>` that closes the `<` at `start`."""
    depth, i = 0, start
    while i < len(tokens):
        text = tokens[i].text
        if text in _PAIRS:
            i = skip_balanced(tokens, i)
            continue
        if text in (";", ")", "]", "}"):
            return i
        depth += (text == "<") + 3 * (text == "<<<") - (text == ">") - 3 * (text == ">>>")
        i += 1
        if depth <= 0:
            return i
    return i


def split_commas(tokens: list[CxxToken]) -> list[list[CxxToken]]:
    """Split at commas outside every kind of bracket."""
    parts: list[list[CxxToken]] = [[]]
    i, is_default = 0, False
    while i < len(tokens):
        text = tokens[i].text
        end = i + 1
        if tokens[i].kind == "symbol":
            if text == ",":
                parts.append([])
                i, is_default = end, False
                continue
            if text == "=":
                is_default = True
            elif text in _PAIRS:
                end = skip_balanced(tokens, i)
            elif text == "<" and not is_default:
                end = match_angle(tokens, i)
        parts[-1].extend(tokens[i:end])
        i = end
    return parts if parts != [[]] else []


def declarations(source: str) -> Iterator[Declaration]:
    """Yield the declarations of a file in order."""
    yield from _Reader(*_conditional_lines(expand_macros(tokenize(source)))).read()


def _conditional_lines(tokens: list[CxxToken]) -> tuple[list[CxxToken], set[int]]:
    """Return the code without `#if 0` parts, and the lines on which a condition decides what is compiled."""
    kept: list[CxxToken] = []
    conditional: set[int] = set()
    # One entry an open `#if`: whether its present part is dropped, and whether it is `#if 0` or `#if 1`.
    stack: list[tuple[bool, str]] = []
    for token in tokens:
        if token.kind != "directive":
            if not any(is_dropped for is_dropped, _ in stack):
                kept.append(token)
                if stack:
                    conditional.add(token.line)
            continue
        words = token.text.lstrip("# \t").split(None, 1) or [""]
        if words[0] in ("if", "ifdef", "ifndef"):
            literal = words[1].strip() if words[0] == "if" and len(words) > 1 else ""
            stack.append((literal == "0", literal))
        elif words[0] in ("else", "elif", "elifdef", "elifndef") and stack:
            literal = stack[-1][1]
            stack[-1] = (literal == "1", literal)
        elif words[0] == "endif" and stack:
            stack.pop()
    return kept, conditional


class _Reader:
    def __init__(self, tokens: list[CxxToken], conditional: set[int]) -> None:
        self.tokens = tokens
        self.conditional = conditional
        self.index = 0
        # One entry an open brace: the names of the namespace that it opened, or None for `extern "C"`.
        self.scopes: list[tuple[str, ...] | None] = []
        self.aliases: dict[str, list[str]] = {}

    def text(self, ahead: int = 0) -> str:
        i = self.index + ahead
        return self.tokens[i].text if i < len(self.tokens) else ""

    def read(self) -> Iterator[Declaration]:
        while self.index < len(self.tokens):
            text = self.text()
            if text == "}":
                self.index += 1
                if self.scopes:
                    self.scopes.pop()
            elif text == ";":
                self.index += 1
            elif text == "namespace" or (text == "inline" and self.text(1) == "namespace"):
                self.namespace()
            elif text == "extern" and self.text(1).startswith('"') and self.text(2) == "{":
                self.index += 3
                self.scopes.append(None)
            else:
                declaration = self.declaration()
                self.record_alias(declaration)
                yield declaration

    def namespace(self) -> None:
        self.index += 1 + (self.text() == "inline")
        names: list[str] = []
        while self.index < len(self.tokens) and self.text() not in ("{", ";"):
            if self.tokens[self.index].kind == "name" and self.text() != "inline":
                names.append(self.text())
            self.index += 1
        if self.text() == "{":
            self.scopes.append(tuple(names))
        self.index += 1

    def declaration(self) -> Declaration:
        template: list[list[CxxToken]] = []
        is_specialization = False
        while self.text() == "template":
            if self.text(1) != "<":
                # An explicit instantiation.
                is_specialization = True
                self.index += 1
                break
            end = match_angle(self.tokens, self.index + 1)
            inner = self.tokens[self.index + 2 : max(end - 1, self.index + 2)]
            template = [p for p in split_commas(inner) if p]
            is_specialization = not template
            self.index = max(end, self.index + 2)
        start = self.index
        has_body = is_function = False
        head_end: int | None = None
        body: list[CxxToken] = []
        while self.index < len(self.tokens):
            text = self.text()
            if text == ";":
                head_end = self.index if head_end is None else head_end
                self.index += 1
                break
            if text == "}":
                break
            if text == "{":
                head_end = self.index if head_end is None else head_end
                opening, self.index = self.index, skip_balanced(self.tokens, self.index)
                has_body = True
                body = body or self.tokens[opening : self.index] if is_function else body
                if self.text() == "catch" or not is_function:
                    continue
                break
            if text in _PAIRS:
                is_function = is_function or text == "("
                self.index = skip_balanced(self.tokens, self.index)
                continue
            if text == "=":
                is_function = False
            self.index += 1
        if self.index == start:
            self.index += 1
        tokens = self.tokens[start : self.index if head_end is None else head_end]
        names = tuple(n for scope in self.scopes for n in scope or ())
        is_c_linkage = None in self.scopes or [t.kind for t in tokens[:2]] == ["name", "string"]
        is_conditional = bool(tokens) and tokens[0].line in self.conditional
        return Declaration(
            tokens,
            template,
            names,
            self.aliases,
            has_body,
            is_specialization,
            is_c_linkage,
            is_conditional,
            body,
        )

    def record_alias(self, declaration: Declaration) -> None:
        texts = [t.text for t in declaration.tokens]
        if declaration.template or len(texts) < 3:
            return
        name, target = "", []
        if texts[0] == "using" and texts[2] == "=":
            name, target = texts[1], texts[3:]
        elif texts[0] == "typedef" and "(" not in texts and "{" not in texts:
            name, target = texts[-1], texts[1:-1]
        if name and target:
            # Later declarations see the alias; those before it keep their own dictionary.
            self.aliases = {**self.aliases, name: target}
