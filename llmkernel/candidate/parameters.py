"""What the kernels of a candidate declare: names, template parameters and parameter lists."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from llmkernel.candidate.cxx_declarations import (
    Declaration,
    declarations,
    match_angle,
    skip_balanced,
    split_commas,
)
from llmkernel.candidate.cxx_types import is_type_word, join_tokens
from llmkernel.candidate.expressions import located
from llmkernel.candidate.lexer import CxxToken
from llmkernel.errors import HeaderError

_CALL_ATTRIBUTES = frozenset(
    (
        "__launch_bounds__",
        "__cluster_dims__",
        "__block_size__",
        "__attribute__",
        "__maxnreg__",
        "__declspec",
        "alignas",
        "decltype",
        "noexcept",
        "requires",
    )
)
_QUALIFIERS = frozenset(
    (
        "const",
        "volatile",
        "__restrict__",
        "__restrict",
        "restrict",
        "__grid_constant__",
        "typename",
        "struct",
        "class",
        "enum",
        "register",
    )
)
_MAX_ALIAS_DEPTH = 16


@dataclass(frozen=True)
class TemplateParameter:
    """One template parameter.

    Attributes
    ----------
    name : str
    type : str
        ``typename``, or the type of a value such as ``int``.
    default : str or None
    is_pack : bool
    """

    name: str
    type: str
    default: str | None = None
    is_pack: bool = False

    @property
    def is_type(self) -> bool:
        """Whether it takes a type rather than a value."""
        return self.type == "typename"


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel, aliases resolved.

    Attributes
    ----------
    name : str
        Empty when unnamed.
    base : str
        Type without qualifiers, pointers and references.
    pointer_depth : int
    is_const : bool
        Of what is pointed at, or of the value.
    default : str or None
    line, column : int
    """

    name: str
    base: str
    pointer_depth: int = 0
    is_const: bool = False
    is_restrict: bool = False
    is_reference: bool = False
    is_grid_constant: bool = False
    default: str | None = None
    line: int = 0
    column: int = 0

    @property
    def type(self) -> str:
        """The type in C++."""
        return (
            ("const " if self.is_const else "")
            + self.base
            + "*" * self.pointer_depth
            + "&" * self.is_reference
        )

    def __str__(self) -> str:
        return f"{self.type} {self.name}".strip()


@dataclass(frozen=True)
class KernelDeclaration:
    """One `__global__` function.

    Attributes
    ----------
    name : str
        With its namespaces.
    template_parameters : tuple of TemplateParameter
    parameters : tuple of KernelParameter
    line, column : int
        Place of the name.
    max_threads : int or None
        First value of ``__launch_bounds__`` when it is a literal.
    cluster : tuple of int or None
        ``__cluster_dims__`` when made of literals.
    is_definition : bool
    """

    name: str
    template_parameters: tuple[TemplateParameter, ...]
    parameters: tuple[KernelParameter, ...]
    line: int = 0
    column: int = 0
    max_threads: int | None = None
    cluster: tuple[int, ...] | None = None
    is_definition: bool = True

    def __str__(self) -> str:
        template = ", ".join(f"{p.type} {p.name}".strip() for p in self.template_parameters)
        prefix = f"template <{template}> " if template else ""
        return f"{prefix}__global__ void {self.name}({', '.join(str(p) for p in self.parameters)})"


def parse_kernels(source: str) -> tuple[KernelDeclaration, ...]:
    """Read the parameter lists of every kernel in a `.cu` file.

    Forward declarations are merged with their definition.

    Raises
    ------
    llmkernel.errors.HeaderError
        When a kernel is defined twice or its parameter list cannot be read.
    """
    found: dict[str, KernelDeclaration] = {}
    for declaration in declarations(source):
        kernel = _kernel(declaration)
        if kernel is None:
            continue
        other = found.get(kernel.name)
        if other is None:
            found[kernel.name] = kernel
        else:
            found[kernel.name] = _merge(other, kernel, is_conditional=declaration.is_conditional)
    return tuple(found.values())


def _merge(first: KernelDeclaration, second: KernelDeclaration, *, is_conditional: bool) -> KernelDeclaration:
    def shape(kernel: KernelDeclaration) -> tuple[object, ...]:
        types = tuple(
            (p.base, p.pointer_depth, p.is_const if p.pointer_depth else False) for p in kernel.parameters
        )
        return (types, len(kernel.template_parameters))

    # The compiler sees only one of the definitions that `#if` and `#else` choose from.
    is_twice = first.is_definition and second.is_definition and not is_conditional
    if shape(first) != shape(second) or is_twice:
        raise HeaderError(
            f"The kernel `{second.name}` is declared twice.",
            line=second.line,
            column=second.column,
            rule="every kernel has one definition; a launch header does not tell overloads apart",
            received=located(f"the other is on line {first.line}", second.line, second.column),
            next_step="Rename one of them.",
        )
    definition, forward = (first, second) if first.is_definition else (second, first)
    defaults = tuple(
        replace(a, default=a.default or b.default)
        for a, b in zip(definition.template_parameters, forward.template_parameters, strict=True)
    )
    return replace(
        definition,
        template_parameters=defaults,
        max_threads=definition.max_threads or forward.max_threads,
        cluster=definition.cluster or forward.cluster,
    )


@dataclass
class _Head:
    """What stands around the parameter list of one kernel.

    `opening` is the index of the list's parenthesis: of the last one after a name that is no attribute, because what
    stands before may be attributes behind function-like macros.
    """

    opening: int = -1
    max_threads: int | None = None
    cluster: tuple[int, ...] | None = None

    def read(self, tokens: list[CxxToken]) -> None:
        i = 0
        while i < len(tokens):
            text, end = tokens[i].text, i + 1
            follower = tokens[end].text if end < len(tokens) else ""
            if text in _CALL_ATTRIBUTES and follower == "(":
                end = skip_balanced(tokens, end)
                values = _literals(tokens[i + 2 : end - 1])
                if text == "__launch_bounds__" and values:
                    self.max_threads = values[0]
                elif text == "__cluster_dims__" and values:
                    self.cluster = values
            elif text in ("(", "["):
                end = skip_balanced(tokens, i)
                if text == "(" and i and tokens[i - 1].kind == "name":
                    self.opening = i
            i = end


def _kernel(declaration: Declaration) -> KernelDeclaration | None:
    tokens = declaration.tokens
    if not any(t.text == "__global__" for t in tokens) or declaration.is_specialization:
        return None
    head = _Head()
    head.read(tokens)
    if head.opening < 0:
        return None
    start = name_at = head.opening - 1
    while start >= 2 and tokens[start - 1].text == "::" and tokens[start - 2].kind == "name":
        start -= 2
    local = "".join(t.text for t in tokens[start : name_at + 1])
    inside = tokens[head.opening + 1 : skip_balanced(tokens, head.opening) - 1]
    parameters = [_parameter(part, declaration) for part in split_commas(inside) if part]
    if len(parameters) == 1 and parameters[0].type == "void":
        parameters = []
    return KernelDeclaration(
        "::".join((*declaration.namespaces, local)),
        tuple(_template_parameter(p) for p in declaration.template),
        tuple(parameters),
        tokens[name_at].line,
        tokens[name_at].column,
        head.max_threads,
        head.cluster,
        declaration.has_body,
    )


def _literals(tokens: list[CxxToken]) -> tuple[int, ...] | None:
    values: list[int] = []
    for part in split_commas(tokens):
        if len(part) != 1 or not part[0].text.isdecimal() or len(part[0].text) > 9:
            return tuple(values) or None
        values.append(int(part[0].text))
    return tuple(values) or None


def _template_parameter(tokens: list[CxxToken]) -> TemplateParameter:
    default = None
    texts = [t.text for t in tokens]
    if "=" in texts:
        i = texts.index("=")
        default, tokens, texts = join_tokens(texts[i + 1 :]), tokens[:i], texts[:i]
    is_pack = "..." in texts
    tokens = [t for t in tokens if t.text != "..."]
    texts = [t.text for t in tokens]
    if texts and texts[0] in ("typename", "class") and "::" not in texts:
        return TemplateParameter(texts[1] if len(texts) > 1 else "", "typename", default, is_pack)
    if len(tokens) > 1 and tokens[-1].kind == "name" and not is_type_word(texts[-1]):
        return TemplateParameter(texts[-1], join_tokens(texts[:-1]), default, is_pack)
    return TemplateParameter("", join_tokens(texts), default, is_pack)


@dataclass
class _Declarator:
    """Sorts the tokens of one parameter into qualifiers, name and type."""

    type_tokens: list[CxxToken] = field(default_factory=list)
    name: str = ""
    depth: int = 0
    is_const: bool = False
    is_restrict: bool = False
    is_reference: bool = False
    is_grid_constant: bool = False

    def read(self, tokens: list[CxxToken]) -> None:
        i = 0
        while i < len(tokens):
            text, end = tokens[i].text, i + 1
            if text == "[":
                # `float x[]` is a pointer, `[[attribute]]` is nothing.
                end = skip_balanced(tokens, i)
                self.depth += i + 1 >= len(tokens) or tokens[i + 1].text != "["
            elif text == "<":
                end = max(match_angle(tokens, i), end)
                self.type_tokens.extend(tokens[i:end])
            elif text == "const":
                self.is_const = self.is_const or self.depth == 0
            elif text in _QUALIFIERS:
                self.is_restrict = self.is_restrict or "restrict" in text
                self.is_grid_constant = self.is_grid_constant or text == "__grid_constant__"
            else:
                self.word(tokens[i])
            i = end
        kept = self.type_tokens
        is_named = len(kept) > 1 and kept[-1].kind == "name" and kept[-2].text != "::"
        if not self.name and is_named and not is_type_word(kept[-1].text):
            self.name = kept.pop().text

    def word(self, token: CxxToken) -> None:
        if token.text == "*":
            self.depth += 1
        elif token.text in ("&", "&&"):
            self.is_reference = True
        elif token.text == "...":
            pass
        elif (self.depth or self.is_reference) and token.kind == "name":
            self.name = token.text
        else:
            self.type_tokens.append(token)


def _parameter(tokens: list[CxxToken], declaration: Declaration) -> KernelParameter:
    first = tokens[0]
    texts = [t.text for t in tokens]
    default = None
    if "=" in texts:
        i = texts.index("=")
        default, tokens = join_tokens(texts[i + 1 :]), tokens[:i]
    if any(t.text == "(" for t in tokens):
        text = join_tokens([t.text for t in tokens])
        return KernelParameter("", text, default=default, line=first.line, column=first.column)
    found = _Declarator()
    found.read(tokens)
    base, alias_depth, alias_const = _resolve([t.text for t in found.type_tokens], declaration.aliases)
    return KernelParameter(
        found.name,
        base,
        found.depth + alias_depth,
        # `const P` of a pointer alias P makes the pointer const, not what it points at.
        alias_const or (found.is_const and not alias_depth),
        found.is_restrict,
        found.is_reference,
        found.is_grid_constant,
        default,
        first.line,
        first.column,
    )


def _resolve(texts: list[str], aliases: dict[str, list[str]]) -> tuple[str, int, bool]:
    """Return base type, pointer depth and constness after following aliases."""
    depth, is_const = 0, False
    for _ in range(_MAX_ALIAS_DEPTH):
        name = "".join(texts)
        if name not in aliases:
            break
        texts = list(aliases[name])
        depth += texts.count("*")
        if "const" in texts and ("*" not in texts or texts.index("const") < texts.index("*")):
            is_const = True
        texts = [t for t in texts if t not in _QUALIFIERS and t not in ("*", "&")]
    return join_tokens(texts), depth, is_const
