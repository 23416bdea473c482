"""CUDA source with its highlighting, as HTML that copies cleanly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmkernel.display.clean import cap
from llmkernel.display.markup import Markup, escape

MAX_CHARACTERS = 60_000
MAX_HTML = 110_000

# Every alternative takes each character once: a reply chooses the text, so nothing here may look back or ahead
# without a bound (Pygments' C++ lexer needs minutes for a page of blank lines).
_TOKEN = re.compile(
    r"""(?P<header>//![^\n]*)
    |(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)
    |(?P<directive>(?<![^\n])[ \t]*\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n]){1,8}')
    |(?P<number>(?:0[xXbB][0-9a-fA-F']+|\.?\d[\d'.]*(?:[eE][+-]?\d+)?)\w*)
    |(?P<word>[^\W\d]\w*)
    |(?P<rest>[ \t\n]+|[^\w"'/\#]+|.)""",
    re.VERBOSE,
)
_CLASSES = {
    "header": "h",
    "comment": "c",
    "directive": "p",
    "string": "s",
    "number": "n",
    "word": "",
    "rest": "",
}
_KEYWORDS = frozenset(
    """alignas alignof asm auto break case catch class concept const const_cast consteval constexpr constinit continue
    decltype default delete do dynamic_cast else enum explicit export extern false final for friend goto if inline
    mutable namespace new noexcept nullptr operator override private protected public register reinterpret_cast
    requires return sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename union using virtual volatile while __global__ __device__ __host__ __shared__ __constant__
    __managed__ __restrict__ __launch_bounds__ __cluster_dims__ __grid_constant__ __forceinline__ __noinline__
    __align__""".split()  # noqa: SIM905 - read as text
)
_TYPES = frozenset(
    """void bool char short int long signed unsigned float double half half2 __half __half2 __nv_bfloat16
    __nv_bfloat162 dim3 cudaStream_t threadIdx blockIdx blockDim gridDim warpSize uint char2 char4 uchar4 short2 int2
    int3 int4 uint2 uint3 uint4 float2 float3 float4 double2 longlong2 CUtensorMap""".split()  # noqa: SIM905 - read as text
)


def highlight(source: str, *, where: str = "", first_line: int = 1) -> Markup:
    """Return `source` as a ``<pre>``, one ``<span class="l">`` a line.

    Line numbers are drawn by the style sheet, so that a copied selection holds source only.

    Parameters
    ----------
    source : str
        CUDA C++ from anywhere; capped at 60 000 characters.
    where : str
        Place of the full text, named where it is cut.
    first_line : int
        Number of the first line.
    """
    text = cap(source, MAX_CHARACTERS, where).rstrip("\n")
    start = f' style="counter-reset:l {first_line - 1}"' if first_line != 1 else ""
    opening = f'<pre class="src num" tabindex="0" aria-label="CUDA source"><code{start}>'
    body = highlight_lines(text)
    if sum(map(len, body)) > MAX_HTML:
        body = _plain_lines(text, where)
    lines = "\n".join(f'<span class="l">{line}</span>' for line in body)
    return Markup(f"{opening}{lines}</code></pre>")


def _plain_lines(text: str, where: str) -> list[Markup]:
    """Return lines without colours, as many as fit; of a line that is too long its beginning."""
    lines: list[Markup] = []
    room = MAX_HTML
    for line in text.split("\n"):
        piece = escape(line)
        if len(piece) > room:
            # An escaped character takes six at most.
            return [
                *lines,
                escape(line[: room // 6]),
                escape(f"… cut{'; full text in ' + where if where else ''}"),
            ]
        lines.append(piece)
        room -= len(piece)
    return lines


def highlight_lines(text: str) -> list[Markup]:
    """Return one piece of HTML a line; a token that spans lines is closed and opened again."""
    lines: list[list[str]] = [[]]
    for kind, value in _tokens(text):
        pieces = value.split("\n")
        for index, piece in enumerate(pieces):
            if index:
                lines.append([])
            if piece:
                lines[-1].append(f'<span class="{kind}">{escape(piece)}</span>' if kind else escape(piece))
    return [Markup("".join(line)) for line in lines]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield class and text; neighbours of one class are joined."""
    kind, held = "", ""
    for match in _TOKEN.finditer(text):
        value = match.group()
        found = _CLASSES[match.lastgroup or "rest"] or _word_class(text, match)
        if found == kind or not value.strip():
            held += value
            continue
        if held:
            yield kind, held
        kind, held = found, value
    if held:
        yield kind, held


def _word_class(text: str, match: re.Match[str]) -> str:
    word = match.group()
    if match.lastgroup != "word":
        return ""
    if word in _KEYWORDS:
        return "k"
    if word in _TYPES or word.endswith("_t"):
        return "t"
    return "f" if text[match.end() : match.end() + 1] == "(" else ""
