"""Statements of a function body, as rules follow them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from llmkernel.candidate.cxx_terms import Term


@dataclass(frozen=True)
class Variable:
    """One declared name.

    Attributes
    ----------
    name : str
    type : str
        Without qualifiers and pointers.
    pointer_depth : int
    extents : tuple of Term
        Of an array, outermost first.
    value : Term or None
    is_shared, is_volatile, is_const : bool
    is_lasting : bool
        `static`, or at file scope.
    line : int
    """

    name: str
    type: str
    pointer_depth: int = 0
    extents: tuple[Term, ...] = ()
    value: Term | None = None
    is_shared: bool = False
    is_volatile: bool = False
    is_const: bool = False
    is_lasting: bool = False
    line: int = 0


@dataclass(frozen=True)
class Declare:
    """Declarations of one statement."""

    variables: tuple[Variable, ...]
    line: int = 0


@dataclass(frozen=True)
class Compute:
    """A term that stands alone."""

    term: Term
    line: int = 0


@dataclass(frozen=True)
class Branch:
    """`if`, with both sides; `is_constant` for `if constexpr`."""

    condition: Term
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Loop:
    """`for`, `while` and `do`; parts that a loop lacks are empty."""

    start: tuple[Step, ...]
    condition: Term | None
    step: Term | None
    body: tuple[Step, ...]
    is_do: bool = False
    line: int = 0


@dataclass(frozen=True)
class Jump:
    """`return`, `break`, `continue` or `goto`."""

    word: str
    value: Term | None = None
    line: int = 0


@dataclass(frozen=True)
class Unknown:
    """A statement that is not followed: `switch`, assembly, what cannot be read."""

    text: str
    line: int = 0


Step = Declare | Compute | Branch | Loop | Jump | Unknown


@dataclass(frozen=True)
class Function:
    """One function with a body.

    Attributes
    ----------
    name : str
        Without namespaces.
    parameters : tuple of Variable
    body : tuple of Step
    is_kernel : bool
    types : frozenset of str
        Names that stand for types in it.
    line : int
    is_overloaded : bool
        Several functions have this name; `body` is that of all, one after the other.
    """

    name: str
    parameters: tuple[Variable, ...]
    body: tuple[Step, ...]
    is_kernel: bool
    types: frozenset[str] = frozenset()
    line: int = 0
    is_overloaded: bool = False

    def calls(self) -> frozenset[str]:
        """Return the names that the body calls, members by their own name."""
        called = (
            t.parts[0] for s in steps_of(self.body) for x in terms_of(s) for t in x.walk() if t.kind == "call"
        )
        return frozenset(bare_name(c.text) for c in called)


@dataclass(frozen=True)
class Bodies:
    """What a file defines: functions by name, and variables at file scope."""

    functions: dict[str, Function] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()

    @property
    def kernels(self) -> list[Function]:
        """The `__global__` functions."""
        return [f for f in self.functions.values() if f.is_kernel]


def terms_of(step: Step) -> Iterator[Term]:
    """Yield the terms that stand in a step itself, not in the steps inside it."""
    if isinstance(step, Declare):
        for variable in step.variables:
            if variable.value is not None:
                yield variable.value
    elif isinstance(step, Compute):
        yield step.term
    elif isinstance(step, Branch):
        yield step.condition
    elif isinstance(step, Loop):
        if step.condition is not None:
            yield step.condition
        if step.step is not None:
            yield step.step
    elif isinstance(step, Jump) and step.value is not None:
        yield step.value


def steps_of(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Yield every step, outer ones first."""
    for step in steps:
        yield step
        if isinstance(step, Branch):
            yield from steps_of(step.then)
            yield from steps_of(step.otherwise)
        elif isinstance(step, Loop):
            yield from steps_of(step.start)
            yield from steps_of(step.body)


def assigned(steps: tuple[Step, ...]) -> frozenset[str]:
    """Return the names that the steps assign to."""
    out: set[str] = set()
    for step in steps_of(steps):
        for term in terms_of(step):
            out |= {target.text for target in assignments(term)}
        if isinstance(step, Declare):
            out |= {v.name for v in step.variables}
    return frozenset(out)


def assignments(term: Term) -> Iterator[Term]:
    """Yield the names that a term assigns to, also through `&name` in a call."""
    for each in term.walk():
        if each.kind in ("assign", "postfix") or (each.kind == "unary" and each.text in ("++", "--")):
            target = each.parts[0]
            if target.kind == "name":
                yield target
        elif each.kind == "call":
            for part in each.parts[1:]:
                if part.kind == "unary" and part.text == "&" and part.parts[0].kind == "name":
                    yield part.parts[0]


def bare_name(text: str) -> str:
    """Return a name without namespaces and template arguments."""
    return re.sub(r"<.*", "", text, flags=re.DOTALL).rpartition("::")[2]
