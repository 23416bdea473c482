"""Rules for inline assembly and attributes, which reach beneath the language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmkernel.candidate.cxx_declarations import skip_balanced
from llmkernel.candidate.lexer import CxxToken
from llmkernel.candidate.rules import Finding, Source, rule, words

ASSEMBLY = frozenset(("asm", "__asm__", "__asm"))
_ASSEMBLER_DIRECTIVE = re.compile(
    r"(?:^|[\s;{}\"])\.(?:incbin|include|section|pushsection|popsection|previous|subsection|macro|altmacro|file|org)\b"
)
_HOST_INSTRUCTION = re.compile(r"\b(?:syscall|sysenter|svc)\b|\bint\s+\$?0x80\b")
_ESCAPE = re.compile(r"\\(?![nrt\"\\'\n])")
_ATTRIBUTES = words(
    """
    aligned packed unused always_inline noinline may_alias const pure maybe_unused fallthrough likely
    unlikely nodiscard device host global shared constant managed launch_bounds align no_unique_address
    noreturn deprecated vector_size ext_vector_type
    """
)


@rule("file-scope-asm", "assembly stands only inside functions", "Move it into a `__device__` function.")
def file_scope_asm(source: Source) -> Iterator[Finding]:
    """Assembly outside function bodies, and assembler names of declarations."""
    for declaration in source.declarations:
        for token in declaration.tokens:
            if token.text in ASSEMBLY:
                yield Finding(token.line, f"`{token.text}` stands outside a function.")


@rule(
    "assembly",
    "assembly is PTX instructions; it reads no files and places no sections",
    "Write PTX instructions only.",
)
def assembly(source: Source) -> Iterator[Finding]:
    """Assembler directives and host instructions in strings."""
    tokens = source.tokens
    for i, token in enumerate(tokens):
        if token.text == "incbin":
            yield Finding(token.line, "`.incbin` reads a file.")
        if token.kind == "string":
            match = _ASSEMBLER_DIRECTIVE.search(token.text)
            if match:
                yield Finding(token.line, f"`{match.group().strip()[-20:]}` is an assembler directive.")
        if token.text not in ASSEMBLY:
            continue
        joined = spoken_at(tokens, i)
        spoken = joined.replace("\\n", "\n").replace("\\t", "\t")
        if _ASSEMBLER_DIRECTIVE.search(spoken):
            yield Finding(token.line, "The assembly holds an assembler directive.")
        if _HOST_INSTRUCTION.search(spoken):
            yield Finding(token.line, "The assembly holds an instruction of the host.")
        if _ESCAPE.search(joined):
            yield Finding(token.line, "The assembly spells characters by their codes.")


def spoken_at(tokens: list[CxxToken], at: int) -> str:
    """Return the strings of the assembly that begins at `at`, joined: ``".inc" "bin"`` is one."""
    start = next((j for j in range(at + 1, min(at + 5, len(tokens))) if tokens[j].text == "("), None)
    if start is None:
        return ""
    pieces = [t.text for t in tokens[start : skip_balanced(tokens, start)] if t.kind == "string"]
    return "".join(re.sub(r'^[^"]*"|"$', "", p) for p in pieces)


@rule("attribute", "attributes may not run code at load time or move symbols", "Remove the attribute.")
def attribute(source: Source) -> Iterator[Finding]:
    """Attributes outside the list, in every spelling."""
    tokens = source.tokens
    for i, token in enumerate(tokens):
        is_gnu = token.text in ("__attribute__", "__attribute", "__declspec")
        is_standard = token.text == "[" and i + 1 < len(tokens) and tokens[i + 1].text == "["
        if not is_gnu and not (is_standard and (i == 0 or tokens[i - 1].text not in ("]", ")", "["))):
            continue
        inside = tokens[i + 1 : skip_balanced(tokens, i + is_gnu)]
        if is_standard and not {"::", "using"} & {t.text for t in inside}:
            continue
        depth = 0
        for j, inner in enumerate(inside):
            depth += (inner.text in ("(", "[")) - (inner.text in (")", "]"))
            is_namespace = j + 1 < len(inside) and inside[j + 1].text in ("::", ":")
            is_outer = depth <= (2 if token.text != "__declspec" else 1) - is_standard
            is_named = inner.kind == "name" and inner.text != "using" and not is_namespace
            if is_named and is_outer and inner.text.strip("_") not in _ATTRIBUTES:
                yield Finding(inner.line, f"The attribute `{inner.text}` is not available.")
