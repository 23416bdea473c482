"""From the text of a reply to the source of one candidate."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from llmkernel.errors import ReplyError

_FENCE = re.compile(
    r"^(?P<prefix>[ \t]*(?:>[ \t]?)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$"
)
# Nobody nests fences so deep; what does is text.
_MAX_DEPTH = 16
_KERNEL = re.compile(r"\b__global__\b")
_DECLARATION = re.compile(r"\b__global__\s")
_HEADER = re.compile(r"^[ \t]*//!", re.MULTILINE)
_FIRST_LINE = re.compile(
    r"[ \t]*(?://|/\*|#[ \t]*\w"
    r"|(?:template|extern|__global__|static|namespace|__device__|using|struct|constexpr)\b)"
)
_LAST_LINE = re.compile(r"[};]|\*/|^[ \t]*//|^[ \t]*#")
_RULE = (
    "a reply holds one candidate: a fenced block with a launch header (`//!`) and its kernels (`__global__`)"
)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes
    ----------
    tag : str
        First word after the fence, in lower case; empty without one.
    text : str
        Without the fence and its indentation; blocks nested inside are not part of it.
    line : int
        1-based line of the opening fence in the reply.
    is_closed : bool
    """

    tag: str
    text: str
    line: int
    is_closed: bool = True

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel stands in it."""
        return bool(_KERNEL.search(self.text))

    @property
    def is_candidate(self) -> bool:
        """Whether both a kernel and a launch header stand in it."""
        return self.has_kernel and bool(_HEADER.search(self.text))


@dataclass(frozen=True)
class Extracted:
    r"""What was taken from a reply.

    Attributes
    ----------
    source : str
        The candidate, with ``\n`` line ends.
    blocks : tuple of Block
        Every block that was seen.
    chosen : int or None
        Index in `blocks`; None when the source stood in the text without a fence.
    note : str
        One sentence for the report; empty when there is nothing to say.
    is_unclosed : bool
        The fence of the chosen block is not closed: the reply may have been cut.
    """

    source: str
    blocks: tuple[Block, ...]
    chosen: int | None
    note: str = ""
    is_unclosed: bool = False


@dataclass
class _Open:
    character: str
    length: int
    indent: int
    is_quoted: bool
    tag: str
    line: int
    lines: list[str] = field(default_factory=list)
    has_kernel: bool = False

    def add(self, line: str) -> None:
        self.has_kernel = self.has_kernel or bool(_KERNEL.search(line))
        if self.is_quoted:
            line = re.sub(r"^[ \t]*(?:>[ \t]?)+", "", line, count=1)
        else:
            blank = len(line) - len(line.lstrip(" \t"))
            line = line[min(self.indent, blank) :]
        self.lines.append(line)

    def block(self, *, is_closed: bool) -> Block:
        return Block(self.tag, "\n".join(self.lines).strip("\n") + "\n", self.line, is_closed)


def find_blocks(text: str) -> tuple[Block, ...]:
    """Return every fenced block of a reply, in the order of the opening fences."""
    return tuple(_blocks(_lines(text)))


def extract_source(text: str) -> Extracted:
    """Take the candidate out of a reply.

    Parameters
    ----------
    text : str
        The whole reply.

    Raises
    ------
    llmkernel.errors.ReplyError
        When there is no candidate, or more than one.
    """
    lines, blocks = _lines(text), find_blocks(text)
    with_kernel = [i for i, b in enumerate(blocks) if b.has_kernel]
    found = [i for i in with_kernel if blocks[i].is_candidate] or with_kernel
    if found:
        return _choose(blocks, found)
    source = _bare_source(lines)
    if source:
        return Extracted(source, blocks, None, "The source stood in the text without a fence.")
    raise ReplyError(
        "The reply holds no CUDA source.",
        rule=_RULE,
        received=_seen(text, blocks),
        next_step="Reply with one ```cuda block that begins with the launch header.",
    )


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _choose(blocks: tuple[Block, ...], found: list[int]) -> Extracted:
    distinct = {re.sub(r"\s+", " ", blocks[i].text).strip() for i in found}
    if len(distinct) > 1:
        places = ", ".join(f"line {blocks[i].line}" for i in found[:8]) + (" …" if len(found) > 8 else "")
        raise ReplyError(
            f"The reply holds {len(distinct)} different candidates.",
            rule=_RULE,
            received=f"blocks at {places}",
            next_step="Reply with exactly one of them.",
        )
    chosen = found[-1]
    block = blocks[chosen]
    notes = []
    if len(blocks) > 1:
        notes.append(f"Took block {chosen + 1} of {len(blocks)}: it holds the kernels.")
    if not block.is_closed:
        notes.append("Its fence is not closed.")
    return Extracted(block.text, blocks, chosen, " ".join(notes), not block.is_closed)


def _blocks(lines: list[str]) -> list[Block]:
    """Return every fenced block in the order of the opening fences."""
    stack: list[_Open] = []
    finished: list[Block] = []
    for number, line in enumerate(lines, 1):
        match = _FENCE.match(line)
        info = match["info"].strip() if match else ""
        if match is None or (match["fence"][0] == "`" and "`" in info):
            if stack:
                stack[-1].add(line)
            continue
        character, length = match["fence"][0], len(match["fence"])
        if stack and not info and stack[-1].character == character and length >= stack[-1].length:
            finished.append(stack.pop().block(is_closed=True))
            continue
        if stack and not info and any(o.character == character and length >= o.length for o in stack):
            # An outer fence closes: what is open inside it was never closed.
            while not (stack[-1].character == character and length >= stack[-1].length):
                finished.append(stack.pop().block(is_closed=False))
            finished.append(stack.pop().block(is_closed=True))
            continue
        if stack and info and stack[-1].has_kernel:
            # Source holds no fences: the block before this one was not closed.
            finished.append(stack.pop().block(is_closed=False))
        if len(stack) == _MAX_DEPTH:
            stack[-1].add(line)
            continue
        prefix = match["prefix"]
        words = re.findall(r"[\w+#-]+", info)
        tag = words[0].lower() if words else ""
        stack.append(_Open(character, length, len(prefix), ">" in prefix, tag, number))
    while stack:
        finished.append(stack.pop().block(is_closed=False))
    return sorted(finished, key=lambda b: b.line)


def _bare_source(lines: list[str]) -> str:
    """Return the source that stands in the text without a fence, or an empty string."""
    kernels = [i for i, line in enumerate(lines) if _declares_kernel(line)]
    if not kernels:
        return ""
    headers = [i for i, line in enumerate(lines) if _HEADER.match(line)]
    starts = [i for i, line in enumerate(lines) if _FIRST_LINE.match(line)]
    first = min((i for i in (*headers, *starts) if i <= kernels[0]), default=kernels[0])
    last = max((i for i, line in enumerate(lines) if i >= kernels[-1] and "}" in line), default=-1)
    if last < 0 or not any("{" in line for line in lines[kernels[-1] : last + 1]):
        return ""
    while last + 1 < len(lines) and _LAST_LINE.match(lines[last + 1]):
        last += 1
    return "\n".join(lines[first : last + 1]).strip("\n") + "\n"


def _declares_kernel(line: str) -> bool:
    """Whether a kernel is declared in a line of text: not quoted between backticks, and with a parenthesis behind it."""
    for number, part in enumerate(line.split("`")):
        found = _DECLARATION.search(part, min(number, 1))
        if found and "(" in part[found.end() :]:
            return True
    return False


def _seen(text: str, blocks: tuple[Block, ...]) -> str:
    if not text.strip():
        return "an empty reply"
    if not blocks:
        return f"{len(text)} characters of text without a fenced block"
    seen = ", ".join(f"{b.tag or 'untagged'} ({b.text.count(chr(10))} lines)" for b in blocks[:8])
    return f"{len(blocks)} fenced block(s) without `__global__`: {seen}"
