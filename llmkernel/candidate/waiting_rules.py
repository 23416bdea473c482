"""The rule against blocks that wait for other blocks, which may never start."""

from __future__ import annotations

from collections.abc import Iterator

from llmkernel.candidate.cxx_bodies import bodies_of
from llmkernel.candidate.cxx_steps import (
    Bodies,
    Branch,
    Compute,
    Declare,
    Function,
    Jump,
    Loop,
    Step,
    assigned,
    assignments,
    bare_name,
    steps_of,
    terms_of,
)
from llmkernel.candidate.cxx_terms import Term
from llmkernel.candidate.header import parse_header
from llmkernel.candidate.rules import Finding, Source, rule, words
from llmkernel.errors import LLMKernelError

# Atomics that leave memory as it was when their operand is 0: a way to read past the cache.
_READING_ATOMICS = words("atomicAdd atomicSub atomicOr atomicXor atomicMax")
_LOADS = words("load __ldcg __ldcv __ldca __ldlu ld_acquire load_acquire __nv_atomic_load")
_IDLE = words("__nanosleep __threadfence __threadfence_block __threadfence_system __syncwarp clock clock64")


@rule(
    "spin-wait",
    "blocks need not run at the same time, so a block that waits for another may wait for ever",
    "Launch the kernel `cooperative`, split it into launches that follow one another, or let each block take its number "
    "from an atomic counter and wait for lower numbers only.",
)
def spin_wait(source: Source) -> Iterator[Finding]:
    """Loops that wait until memory changes, in kernels that are not launched `cooperative`."""
    waits = words("while for do")
    if not any(t.text in waits for t in source.tokens):
        return
    bodies = bodies_of(source.text)
    cooperative = _cooperative(source.text)
    for function in bodies.functions.values():
        if function.is_kernel and function.name in cooperative:
            continue
        if not function.is_kernel and cooperative >= {k.name for k in bodies.kernels}:
            continue
        shared = _shared(bodies, function)
        tickets = _from_atomics(function)
        for step in steps_of(function.body):
            if isinstance(step, Loop):
                waited = _waited(step, shared)
                if waited is not None and not waited.names() & tickets:
                    yield Finding(
                        step.line or waited.line,
                        f"`{function.name}` waits in a loop until `{waited}` changes, which only another block can do.",
                    )


def _cooperative(text: str) -> set[str]:
    """Return the kernels that the header launches only `cooperative`."""
    try:
        launches = parse_header(text).launches
    except LLMKernelError:
        return set()
    loose = {bare_name(str(x.kernel)) for x in launches if not x.is_cooperative}
    return {bare_name(str(x.kernel)) for x in launches} - loose


def _shared(bodies: Bodies, function: Function) -> set[str]:
    """Return names of arrays that only a block, or a thread, can reach."""
    own = {v.name for v in bodies.variables if v.is_shared}
    for step in steps_of(function.body):
        for variable in step.variables if isinstance(step, Declare) else ():
            if variable.is_shared or (variable.extents and not variable.is_lasting):
                own.add(variable.name)
    return own


def _from_atomics(function: Function) -> set[str]:
    """Return the names whose values come out of atomics: tickets, in the order in which blocks start."""
    found: set[str] = set()
    for _ in range(3):
        for step in steps_of(function.body):
            pairs: list[tuple[str, Term]] = []
            if isinstance(step, Declare):
                pairs += [(v.name, v.value) for v in step.variables if v.value is not None]
            for term in terms_of(step):
                pairs += [(_base(t.parts[0]), t.parts[1]) for t in term.walk() if t.kind == "assign"]
            for name, value in pairs:
                counts = any(_is_counting(t) for t in value.walk())
                if counts or value.names() & found:
                    found.add(name)
    return found


def _is_counting(term: Term) -> bool:
    return (
        term.kind == "call"
        and bare_name(term.parts[0].text) in ("atomicAdd", "atomicInc")
        and not _reads(term)
    )


def _base(term: Term) -> str:
    while term.parts:
        term = term.parts[0]
    return term.text


def _waited(loop: Loop, shared: set[str]) -> Term | None:
    """Return what a loop waits for; None where it does anything else."""
    if loop.step is not None and any(True for _ in assignments(loop.step)):
        return None
    conditions = [loop.condition] if loop.condition is not None else []
    loaded: dict[str, Term] = {}
    for step in loop.body:
        conditions += _leaving(step)
        for name, value in _assigned(step):
            read = _read(value, shared)
            if read is None:
                if any(name in c.names() for c in conditions):
                    return None
                continue
            loaded[name] = read
        if not _is_idle(step, shared):
            return None
    for condition in conditions:
        read = _read(condition, shared)
        if read is None:
            read = next((loaded[name] for name in sorted(condition.names() & loaded.keys())), None)
        if read is not None:
            # A loop that goes on to another address follows a list; one that changes memory takes a lock.
            goes_on = read.names() & assigned(loop.body)
            return None if goes_on or _makes_progress(condition) else read
    return None


def _leaving(step: Step) -> list[Term]:
    """Return the conditions under which a step leaves the loop."""
    if isinstance(step, Branch) and any(
        isinstance(s, Jump) and s.word != "continue" for s in steps_of(step.then)
    ):
        return [step.condition]
    return []


def _assigned(step: Step) -> list[tuple[str, Term]]:
    if isinstance(step, Declare):
        return [(v.name, v.value) for v in step.variables if v.value is not None]
    if isinstance(step, Compute) and step.term.kind == "assign" and step.term.parts[0].kind == "name":
        return [(step.term.parts[0].text, step.term.parts[1])]
    if (
        isinstance(step, Compute)
        and step.term.kind in ("postfix", "unary")
        and step.term.parts[0].kind == "name"
    ):
        return [(step.term.parts[0].text, step.term.parts[0])]
    return []


def _is_idle(step: Step, shared: set[str]) -> bool:
    """Whether a step changes nothing that anyone else can see."""
    if isinstance(step, Branch):
        return all(isinstance(s, Jump) or _is_idle(s, shared) for s in (*step.then, *step.otherwise))
    if isinstance(step, Jump):
        return True
    if _assigned(step) or isinstance(step, Declare):
        return not any(_makes_progress(t) for t in terms_of(step))
    if isinstance(step, Compute) and step.term.kind == "call":
        return bare_name(step.term.parts[0].text) in _IDLE or _reads(step.term)
    return False


def _read(term: Term, shared: set[str]) -> Term | None:
    """Return the access to global memory that a term holds."""
    for each in term.walk():
        is_place = each.kind == "index" or (each.kind == "unary" and each.text == "*")
        if is_place and not (_base(each) in shared or each.names() & shared):
            return each
        if _reads(each) and not each.names() & shared:
            return each
    return None


def _reads(term: Term) -> bool:
    """Whether a term is a call that only reads memory."""
    if term.kind != "call":
        return False
    name = bare_name(term.parts[0].text)
    if name in _LOADS:
        return True
    operands = [p.text.rstrip("uUlL") for p in term.parts[2:]]
    is_zero = bool(operands) and all(o in ("0", "0.0f", "0.f") for o in operands)
    return is_zero and (name in _READING_ATOMICS or name == "atomicCAS")


def _makes_progress(term: Term) -> bool:
    """Whether a term tries to change memory: taking a lock, exchanging a value."""
    return any(
        t.kind == "call" and bare_name(t.parts[0].text).startswith("atomic") and not _reads(t)
        for t in term.walk()
    )
