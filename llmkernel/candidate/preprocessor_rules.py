"""Rules for preprocessor lines: what may be included, defined and asked of the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmkernel.candidate.rules import Finding, Source, rule, words

ALLOWED_INCLUDES = words(
    """
    cuda_fp16.h cuda_bf16.h cuda_fp8.h cuda_fp6.h cuda_fp4.h mma.h cooperative_groups.h cuda_pipeline.h
    cuda_awbarrier_primitives.h cuda_pipeline_primitives.h cuComplex.h math_constants.h vector_types.h
    vector_functions.h cuda.h cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h
    device_functions.h sm_60_atomic_functions.h sm_61_intrinsics.h llmkernel.cuh

    assert.h ctype.h float.h inttypes.h limits.h math.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    time.h cassert cctype cfloat cinttypes climits cmath cstdbool cstddef cstdint cstdio cstdlib cstring ctime
    algorithm array bit concepts functional initializer_list limits numeric tuple type_traits utility
    """
)
ALLOWED_FOLDERS = ("cooperative_groups/", "cuda/", "cub/", "nv/")
_HOST_INCLUDES = ("torch/", "ATen/", "c10/", "pybind11/", "Python.h", "thrust/", "cub/cub.", "cub/device/")
_PRAGMAS = re.compile(r"(?:unroll|nounroll|once|nv_diag_\w+|nv_diagnostic|diag_suppress|diag_default)\b")
_INCLUDE = re.compile(r'#\s*(include|include_next|import)\b\s*(?:<([^>]*)>|"([^"]*)")?')
_CUDA_WORD = re.compile(r"__\w+__|__(?:sync|shfl|nv|half)\w*")
# The marks are those of "Trojan Source" (CVE-2021-42574).
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_DIRECTIVES = words(
    "include define undef if ifdef ifndef elif elifdef elifndef else endif pragma error warning"
)
_WORDS = words(
    """
    alignas alignof asm auto bool break case char class const constexpr continue default delete do
    double else enum explicit extern false float for friend goto if inline int long mutable namespace
    new operator private protected public register return short signed sizeof static struct switch
    template this true typedef typename union unsigned using virtual void volatile while half nan isnan
    isinf
    """
)


@rule(
    "include",
    "a candidate includes only headers of the device compilers and `llmkernel.cuh`",
    "Allowed: cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h, cuda_pipeline.h, cuda/…, "
    "cub/block/…, cub/warp/…, math.h, stdint.h, float.h, limits.h and their C++ forms, type_traits, llmkernel.cuh.",
)
def include(source: Source) -> Iterator[Finding]:
    """Includes outside the list."""
    for directive in source.directives:
        match = _INCLUDE.match(directive.text)
        if match is None:
            continue
        name = match[2] or match[3] or ""
        if match[1] != "include" or not name:
            yield Finding(directive.line, f"`{directive.text[:80]}` does not name a header.")
        elif name.startswith(_HOST_INCLUDES):
            yield Finding(directive.line, f"`{name}` belongs to host code.")
        elif name in ALLOWED_INCLUDES or (name.startswith(ALLOWED_FOLDERS) and ".." not in name):
            continue
        else:
            yield Finding(directive.line, f"`{name}` is not on the list of headers.")


@rule("directive", "other preprocessor lines read files or hide where code stands", "Remove the line.")
def directive(source: Source) -> Iterator[Finding]:
    """`#embed`, `#line` and the like."""
    for each in source.directives:
        match = re.match(r"#\s*(\w*)", each.text)
        word = match[1] if match else ""
        if word and word not in _DIRECTIVES and word not in ("include_next", "import"):
            yield Finding(each.line, f"`#{word}` is not available.")
    for token in source.tokens:
        if token.text in ("__has_embed", "__has_include", "__has_include_next"):
            yield Finding(token.line, f"`{token.text}` is not available.")
    for each in source.directives:
        if "__has_include" in each.text or "__has_embed" in each.text:
            yield Finding(each.line, "`__has_include` is not available.")


@rule(
    "pragma",
    "a candidate does not change how it is compiled",
    "Only `#pragma unroll` and `#pragma once` are available.",
)
def pragma(source: Source) -> Iterator[Finding]:
    """Pragmas outside the list, in both spellings."""
    for each in source.directives:
        match = re.match(r"#\s*pragma\b\s*(.*)", each.text, re.DOTALL)
        if match and not _PRAGMAS.match(match[1]):
            yield Finding(each.line, f"`#pragma {match[1][:60]}` is not available.")
    tokens = source.tokens
    for i, token in enumerate(tokens):
        if token.text not in ("_Pragma", "__pragma"):
            continue
        text = tokens[i + 2].text if i + 2 < len(tokens) else ""
        if not _PRAGMAS.match(text.strip('"').strip()):
            yield Finding(token.line, f"`{token.text}({text[:60]})` is not available.")


@rule(
    "redefinition",
    "words of the language and of CUDA keep their meaning",
    "Use `using` or another name.",
)
def redefinition(source: Source) -> Iterator[Finding]:
    """`#define float double` and the like."""
    for each in source.directives:
        match = re.match(r"#\s*(define|undef)\s+(\w+)", each.text)
        if match and (match[2] in _WORDS or _CUDA_WORD.fullmatch(match[2])):
            yield Finding(each.line, f"`{match[2]}` is a word of the language.")


@rule(
    "control-character",
    "what is shown is what is compiled, so comments too hold no characters that cannot be seen or stored",
    "Remove the character.",
)
def control_character(source: Source) -> Iterator[Finding]:
    """Control characters, lone surrogates, and marks that turn the direction of the text."""
    for match in _UNSEEN.finditer(source.text):
        line = source.text.count("\n", 0, match.start()) + 1
        yield Finding(line, f"The character {match.group()!r} cannot stand in a candidate.")


@rule("stray-character", "names are written in letters, digits and underscores", "Remove the character.")
def stray_character(source: Source) -> Iterator[Finding]:
    """Characters that C++ code does not hold; they could spell a name in another way."""
    for token in source.tokens:
        if token.kind == "symbol" and (token.text in "\\@`$" or not token.text.isascii()):
            yield Finding(token.line, f"The character {token.text!r} cannot stand in code.")
        if token.kind == "name" and not token.text.isascii():
            yield Finding(token.line, f"The name {token.text!r} has letters outside ASCII.")
