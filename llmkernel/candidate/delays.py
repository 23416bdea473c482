"""A candidate whose blocks and warps are held back in a chosen order, to show what a GPU's own order hides.

A GPU starts blocks nearly in the order of their numbers and lets the warps of a block run side by side: a block that reads
what another has yet to write, or a warp that overwrites what another has yet to read, ends well in nearly every run. Sleeps
at the start of each kernel and after each `__syncthreads` turn that order around; what a right kernel returns does not
depend on them.
"""

from __future__ import annotations

from llmkernel.candidate.cxx_bodies import bodies_of
from llmkernel.candidate.cxx_declarations import declarations
from llmkernel.candidate.cxx_steps import Declare, Function, steps_of, terms_of
from llmkernel.candidate.cxx_terms import Term

ORDERS = ("forward", "reverse")
# Steps between neighbours, in nanoseconds: longer than a small block's work, short enough for some hundred barriers.
_BLOCK_STEP = 1000
_WARP_STEP = 200
_MOST_STEPS = 63

_PROLOGUE = """\
__device__ __forceinline__ void llmkernel_hold_warp() {{
    const unsigned warps = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
    const unsigned warp = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
    __nanosleep({warp} * {warp_step}u);
}}
__device__ __forceinline__ void llmkernel_hold_block() {{
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned place = {block};
    __nanosleep((place < {most}u ? place : {most}u) * {block_step}u);
    llmkernel_hold_warp();
}}
__device__ __forceinline__ void llmkernel_meet() {{
    __syncthreads();
    llmkernel_hold_warp();
}}
#define __syncthreads() llmkernel_meet()
#line 1
"""


def delayed_source(source: str, order: str) -> str:
    """Return the source with sleeps that favour threads in an order; lines keep their numbers.

    Parameters
    ----------
    source : str
    order : str
        ``forward``: the first blocks and warps come first; ``reverse``: the last ones do.
    """
    is_forward = order == "forward"
    prologue = _PROLOGUE.format(
        warp="warp" if is_forward else "(warps - 1 - warp)",
        block="block" if is_forward else "blocks - 1 - block",
        warp_step=_WARP_STEP,
        block_step=_BLOCK_STEP,
        most=_MOST_STEPS,
    )
    lines = source.split("\n")
    places = [
        (d.body[0].line - 1, d.body[0].column)
        for d in declarations(source)
        if d.body and any(t.text == "__global__" for t in d.tokens)
    ]
    for line, column in sorted(set(places), reverse=True):
        text = lines[line]
        # A brace that a macro wrote stands elsewhere: such a kernel keeps its own order.
        if text[column - 1 : column] == "{":
            lines[line] = f"{text[:column]} llmkernel_hold_block(); {text[column:]}"
    return prologue + "\n".join(lines)


def shares_memory(source: str) -> bool:
    """Whether threads can see what other threads wrote: shared memory, or an array that a kernel reads and writes."""
    bodies = bodies_of(source)
    if any(v.is_shared or v.is_lasting for v in bodies.variables):
        return True
    return any(_shares(f) for f in bodies.functions.values())


def _shares(function: Function) -> bool:
    pointers = {p.name for p in function.parameters if p.pointer_depth}
    read: set[str] = set()
    written: set[str] = set()
    for step in steps_of(function.body):
        if isinstance(step, Declare) and any(v.is_shared for v in step.variables):
            return True
        for term in terms_of(step):
            targets = {id(t.parts[0]) for t in term.walk() if t.kind == "assign" and t.text == "="}
            changed = {id(t.parts[0]) for t in term.walk() if t.kind in ("assign", "postfix")}
            for each in term.walk():
                if each.kind == "call" and each.parts[0].text.startswith("atomic"):
                    return True
                if each.kind == "index" or (each.kind == "unary" and each.text == "*"):
                    array = _array(each)
                    written |= {array} if id(each) in changed else set()
                    read |= set() if id(each) in targets else {array}
    return bool(read & written & pointers)


def _array(term: Term) -> str:
    while term.kind in ("index", "unary", "cast", "binary"):
        term = term.parts[0]
    return term.text
