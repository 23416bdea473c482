"""The signature line of a launch header as text that can be rewritten: axes, order, fixed scalars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_SIGNATURE = re.compile(
    r"^//!\s*(?P<name>\w+)\((?P<inputs>.*?)\)\s*->\s*(?P<outputs>.*?)(?:\s+where\s+(?P<where>.*))?\s*$",
    re.MULTILINE,
)
_TYPES = re.compile(r"(\w+)\s+in\s+\{([^}]*)\}")


@dataclass(frozen=True)
class Term:
    """One input or output of a signature line.

    Attributes
    ----------
    name, dtype : str
    dims : tuple of str or None
        Text of each axis, empty for a 0-d array, None for a scalar.
    suffix : str
        What follows the brackets, such as `` = 0``.
    """

    name: str
    dtype: str
    dims: tuple[str, ...] | None
    suffix: str = ""

    def __str__(self) -> str:
        axes = "" if self.dims is None else "[" + ", ".join(self.dims) + "]"
        return f"{self.name}: {self.dtype}{axes}{self.suffix}"


@dataclass(frozen=True)
class SignatureLine:
    """A signature line, taken apart.

    Attributes
    ----------
    name : str
    inputs, outputs : tuple of Term
    types : dict
        Type variable to the dtypes that it ranges over.
    """

    name: str
    inputs: tuple[Term, ...]
    outputs: tuple[Term, ...]
    types: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        outputs = ", ".join(map(str, self.outputs))
        text = f"//! {self.name}({', '.join(map(str, self.inputs))}) -> "
        text += outputs if len(self.outputs) == 1 else f"({outputs})"
        if self.types:
            text += "    where " + ", ".join(f"{t} in {{{', '.join(d)}}}" for t, d in self.types.items())
        return text


def read_signature(source: str) -> SignatureLine:
    """Take the signature line of a `.cu` file apart; ValueError when there is none."""
    match = _SIGNATURE.search(source)
    if match is None:
        raise ValueError("the source has no signature line")
    outputs = match["outputs"].strip()
    if outputs.startswith("("):
        outputs = outputs[1:-1]
    types = {
        t: tuple(d.strip() for d in dtypes.split(",")) for t, dtypes in _TYPES.findall(match["where"] or "")
    }
    inputs = _terms(match["inputs"])
    return SignatureLine(match["name"], inputs, tuple(_as_array(t) for t in _terms(outputs)), types)


def _terms(text: str) -> tuple[Term, ...]:
    # Commas inside brackets separate axes, the others separate terms.
    parts = re.split(r",\s*(?![^\[]*\])", text.strip())
    return tuple(_term(p) for p in parts if p)


def _term(text: str) -> Term:
    match = re.fullmatch(r"(\w+):\s*(\w+)(?:\[(.*?)\])?(.*)", text.strip())
    if match is None:
        raise ValueError(f"not an input or output of a signature: {text!r}")
    dims = None if match[3] is None else tuple(d.strip() for d in match[3].split(",") if d.strip())
    return Term(match[1], match[2], dims, match[4])


def _as_array(term: Term) -> Term:
    return replace(term, dims=term.dims or ())


def rewrite_signature(source: str, line: SignatureLine, lets: Sequence[str] = ()) -> str:
    """Put another signature line, followed by ``let`` lines, in the place of the present one."""
    match = _SIGNATURE.search(source)
    assert match is not None
    text = "\n".join([str(line), *(f"//! let {let}" for let in lets)])
    return source[: match.start()] + text + source[match.end() :]


def spread_axes(source: str, dimension: str, count: int) -> str:
    """Let `dimension` stand for `count` axes (0 or more) in every array that has it.

    The kernels keep working with the product of these axes, which a ``let`` names.
    """
    if count == 1:
        return source
    names = tuple(f"{dimension}{i}" for i in range(count))
    line = read_signature(source)

    def spread(term: Term) -> Term:
        if term.dims is None or dimension not in term.dims:
            return term
        at = term.dims.index(dimension)
        return replace(term, dims=(*term.dims[:at], *names, *term.dims[at + 1 :]))

    line = replace(line, inputs=tuple(map(spread, line.inputs)), outputs=tuple(map(spread, line.outputs)))
    return rewrite_signature(source, line, [f"{dimension} = {' * '.join(names) or '1'}"])


def reorder_inputs(source: str, order: Sequence[int]) -> str:
    """Give the inputs in another order; ``order[i]`` is the present place of the new input `i`."""
    line = read_signature(source)
    return rewrite_signature(source, replace(line, inputs=tuple(line.inputs[i] for i in order)))


def rename(source: str, name: str) -> str:
    """Give the callable another name."""
    return re.sub(r"(?m)^(//!\s*)\w+(?=\()", rf"\g<1>{name}", source, count=1)


def fix_scalar(source: str, name: str, value: float) -> str:
    """Replace a scalar input by the constant that the user's reference holds.

    An integer becomes a ``let`` of the header, a float a number in the launches: kernels stay as they are.
    """
    line = read_signature(source)
    kept = replace(line, inputs=tuple(t for t in line.inputs if t.name != name))
    if isinstance(value, int):
        whole = re.compile(rf"\b{name}\b")
        outputs = tuple(
            replace(t, dims=tuple(whole.sub(str(value), d) for d in t.dims or ())) for t in line.outputs
        )
        let = f"{name} = {value}  # a constant of the reference"
        return rewrite_signature(source, replace(kept, outputs=outputs), [let])
    lines = rewrite_signature(source, kept).splitlines(keepends=True)
    for at, text in enumerate(lines):
        if text.startswith("//!") and "<<<" in text:
            lines[at] = re.sub(rf"(?<=[(,])(\s*){name}(?=\s*[,)])", rf"\g<1>{value!r}", text)
    after = next(at for at, text in enumerate(lines) if text.startswith("//!")) + 1
    lines.insert(after, f"//! # {name} = {value!r} is a constant of the reference\n")
    return "".join(lines)
