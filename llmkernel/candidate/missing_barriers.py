"""Shared memory that is written and read at different elements with no barrier between: a suspicion, never a refusal.

Every kernel is followed statement by statement, called functions in place, loops twice, so that what one iteration reads
and the next overwrites is seen. Two accesses conflict where threads may touch the same element, one of them writes, and
no barrier stands between. What a lane reads and then shuffles away, an element that is the thread's own, and buffers that
take turns are told apart. Accesses through pointers that are not followed are left out, so the absence of a suspicion
says little; racecheck and the `cpu` device's thread orders look at what really happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

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
    Unknown,
    Variable,
    assigned,
    assignments,
    bare_name,
    steps_of,
    terms_of,
)
from llmkernel.candidate.cxx_terms import Term

_BARRIERS = re.compile(
    r"__syncthreads\w*|__syncwarp|__barrier_sync\w*|sync|arrive_and_wait|wait|barrier_\w+|wait_\w+|\w*_wait"
)
_SHUFFLES = re.compile(r"__(?:shfl|ballot|any|all|match|reduce)\w*_sync|shfl\w*|reduce|ballot")
_ATOMICS = re.compile(r"atomic\w+")
_THREAD_NAMES = frozenset(("threadIdx", "thread_rank", "thread_index"))
_ONE_THREAD = re.compile(r"\W*(?:threadIdx\.x|\w+\.thread_rank\(\))\W*")
_MAX_INLINED = 4
_MAX_LOOPS = 4
_MAX_STEPS = 20_000


@dataclass(frozen=True)
class Suspicion:
    """Two accesses that no barrier separates.

    Attributes
    ----------
    kernel : str
    array : str
    what : str
        ``written, then read`` or the like.
    first_line, second_line : int
        1-based.
    """

    kernel: str
    array: str
    what: str
    first_line: int
    second_line: int

    def __str__(self) -> str:
        first, then = self.what.split(", then ")
        return (
            f"`{self.array}` in `{self.kernel}` is {first} on line {self.first_line} and {then} on line "
            f"{self.second_line}, perhaps by another thread, with no barrier between."
        )


@dataclass(frozen=True)
class _Access:
    kind: str
    index: tuple[str, ...]
    is_own: bool
    guards: tuple[str, ...]
    line: int
    # Which statement, so that what one statement does by itself is not held against it.
    step: int
    passes: tuple[tuple[int, int], ...]
    changing: frozenset[str]


@dataclass
class _Frame:
    """Names of one function while it is followed."""

    function: Function
    arrays: dict[str, str] = field(default_factory=dict)
    scalars: set[str] = field(default_factory=set)
    meanings: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    reassigned: frozenset[str] = frozenset()


def missing_barriers(source: str) -> tuple[Suspicion, ...]:
    """Return the suspicions about every kernel of a `.cu` file, in the order of their lines."""
    bodies = bodies_of(source)
    found: dict[tuple[str, int, int], Suspicion] = {}
    for kernel in bodies.kernels:
        for each in _Follower(bodies, kernel).suspicions():
            found.setdefault((each.array, each.first_line, each.second_line), each)
    return tuple(sorted(found.values(), key=lambda s: (s.second_line, s.first_line)))


class _Follower:
    def __init__(self, bodies: Bodies, kernel: Function) -> None:
        self.bodies = bodies
        self.kernel = kernel
        self.pending: dict[str, list[_Access]] = {}
        self.found: list[tuple[str, _Access, _Access]] = []
        self.lost: set[str] = set()
        self.guards: tuple[str, ...] = ()
        self.passes: tuple[tuple[int, int], ...] = ()
        self.changing: frozenset[str] = frozenset()
        self.step_count = 0
        self.step_identity = 0
        self.loops = 0
        self.depth = 0
        self.frame = _Frame(kernel)

    def suspicions(self) -> Iterator[Suspicion]:
        frame = _Frame(self.kernel)
        for variable in self.bodies.variables:
            if variable.is_shared:
                self.share(frame, variable, variable.name)
        self.enter(self.kernel, frame)
        for array, first, second in self.found:
            if array not in self.lost:
                words = {"read": "read", "write": "written", "atomic": "changed by an atomic"}
                what = f"{words[first.kind]}, then {words[second.kind]}"
                yield Suspicion(self.kernel.name, array, what, first.line, second.line)

    # ---- statements -------------------------------------------------------------------------------------------

    def enter(self, function: Function, frame: _Frame) -> None:
        outer, self.frame = self.frame, frame
        frame.reassigned = _reassigned(function)
        self.depth += 1
        self.steps(function.body)
        self.depth -= 1
        self.frame = outer

    def steps(self, steps: tuple[Step, ...]) -> bool:
        """Follow statements; return whether they end the function or the turn of a loop."""
        for step in steps:
            self.step_count += 1
            if self.step_count > _MAX_STEPS:
                return True
            self.step_identity = id(step)
            if isinstance(step, Branch):
                if self.branch(step):
                    return True
            elif isinstance(step, Loop):
                self.loop(step)
            elif isinstance(step, Unknown):
                self.barrier()
            else:
                for variable in step.variables if isinstance(step, Declare) else ():
                    self.declare(variable)
                for term in () if isinstance(step, Declare) else terms_of(step):
                    self.term(term)
                if isinstance(step, Jump):
                    return True
        return False

    def branch(self, step: Branch) -> bool:
        self.term(step.condition)
        condition = self.spell(step.condition)
        before = {k: list(v) for k, v in self.pending.items()}
        guards = self.guards
        sides = []
        for guard, body in ((condition, step.then), (f"!{condition}", step.otherwise)):
            self.pending = {k: list(v) for k, v in before.items()}
            self.guards = (*guards, guard)
            has_ended = self.steps(body)
            self.guards = guards
            sides.append((has_ended, self.pending))
        self.pending = {}
        for has_ended, pending in sides:
            if not has_ended:
                for array, accesses in pending.items():
                    mine = self.pending.setdefault(array, [])
                    mine += [a for a in accesses if a not in mine]
        return all(has_ended for has_ended, _ in sides)

    def loop(self, step: Loop) -> None:
        self.steps(step.start)
        self.loops += 1
        number, passes, changing = self.loops, self.passes, self.changing
        meanings = dict(self.frame.meanings)
        header = f"{step.condition and self.spell(step.condition)};{step.step and self.spell(step.step)}"
        for start in step.start:
            for variable in start.variables if isinstance(start, Declare) else ():
                if variable.value is not None:
                    value = self.spell(variable.value)
                    self.frame.meanings[variable.name] = f"{{{variable.name}={value};{header}}}"
        self.changing = changing | assigned((*step.body, *((Compute(step.step),) if step.step else ())))
        for turn in range(2 if len(passes) < _MAX_LOOPS else 1):
            self.passes = (*passes, (number, turn))
            self.step_identity = id(step)
            if step.condition is not None:
                self.term(step.condition)
            self.steps(step.body)
            self.step_identity = id(step)
            if step.step is not None:
                self.term(step.step)
        self.passes, self.changing = passes, changing
        self.frame.meanings = meanings

    def declare(self, variable: Variable) -> None:
        frame = self.frame
        name = variable.name
        if variable.is_shared:
            prefix = "" if frame.function is self.kernel else f"{frame.function.name}."
            self.share(frame, variable, prefix + name)
            return
        frame.arrays.pop(name, None)
        value = variable.value
        if value is None:
            frame.meanings.pop(name, None)
            return
        if variable.pointer_depth or variable.type == "auto":
            array = self.pointed(value)
            if array is not None:
                frame.arrays[name] = f"{array}" if self.is_plain(value) else f"{name} (into {array})"
                if name in frame.reassigned:
                    self.lost.add(frame.arrays[name])
                return
        self.term(value)
        if name not in frame.reassigned:
            frame.meanings[name] = f"({self.spell(value)})"
        if self.depends(value):
            frame.own.add(name)

    @staticmethod
    def share(frame: _Frame, variable: Variable, identity: str) -> None:
        frame.arrays[variable.name] = identity
        if not variable.extents and not variable.pointer_depth:
            frame.scalars.add(variable.name)

    # ---- terms ------------------------------------------------------------------------------------------------

    def term(self, term: Term) -> None:
        if term.kind == "assign":
            target, value = term.parts
            self.term(value)
            self.target(target, is_read=term.text != "=")
            if target.kind == "name" and self.depends(value):
                self.frame.own.add(target.text)
        elif term.kind == "postfix" or (term.kind == "unary" and term.text in ("++", "--")):
            self.target(term.parts[0], is_read=True)
        elif term.kind == "call":
            self.call(term)
        elif self.place(term) is not None:
            self.touch("read", term)
        elif term.kind == "name" and term.text in self.frame.arrays:
            self.lost.add(self.frame.arrays[term.text])
        elif term.kind == "unary" and term.text == "&" and self.place(term.parts[0]) is not None:
            self.lose(term.parts[0])
        else:
            for part in term.parts:
                self.term(part)

    def target(self, target: Term, *, is_read: bool) -> None:
        if self.place(target) is None:
            for part in target.parts:
                self.term(part)
            return
        if is_read:
            self.touch("read", target)
        self.touch("write", target)

    def call(self, term: Term) -> None:
        called, *arguments = term.parts
        name = bare_name(called.text)
        if called.kind == "member":
            self.term(called.parts[0])
        if _ATOMICS.fullmatch(name) and arguments:
            first = arguments[0]
            target = first.parts[0] if first.kind == "unary" and first.text == "&" else None
            if target is not None and self.place(target) is not None:
                self.touch("atomic", target)
            elif first.kind == "name" and first.text in self.frame.arrays:
                self.touch("atomic", Term("unary", "*", (first,), first.line))
            else:
                self.term(first)
            for argument in arguments[1:]:
                self.term(argument)
            return
        function = self.bodies.functions.get(name) if called.kind == "name" else None
        if function is not None and self.depth < _MAX_INLINED and not function.is_overloaded:
            self.inline(function, arguments)
            return
        for argument in arguments:
            self.term(argument)
        if any(_BARRIERS.fullmatch(n) for n in (name, *(function.calls() if function else ()))):
            self.barrier()
        elif _SHUFFLES.fullmatch(name):
            self.shuffle()

    def inline(self, function: Function, arguments: list[Term]) -> None:
        frame = _Frame(function)
        for name, identity in self.frame.arrays.items():
            if any(v.name == name and v.is_shared for v in self.bodies.variables):
                frame.arrays[name] = identity
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            array = self.pointed(argument)
            if array is not None:
                frame.arrays[parameter.name] = array if self.is_plain(argument) else self.spell(argument)
                continue
            self.term(argument)
            frame.meanings[parameter.name] = f"({self.spell(argument)})"
            if self.depends(argument):
                frame.own.add(parameter.name)
        self.enter(function, frame)

    # ---- accesses ---------------------------------------------------------------------------------------------

    def place(self, term: Term) -> tuple[str, tuple[Term, ...]] | None:
        """Return the shared array and the indices that a term names."""
        if term.kind == "member":
            inner = self.place(term.parts[0])
            return None if inner is None else (f"{inner[0]}.{term.text}", inner[1])
        if term.kind == "index":
            base, index = term.parts
            if base.kind == "name" and base.text in self.frame.arrays:
                return self.frame.arrays[base.text], (index,)
            inner = self.place(base)
            return None if inner is None else (inner[0], (*inner[1], index))
        if term.kind == "unary" and term.text == "*":
            base = term.parts[0]
            zero = Term("number", "0", (), base.line)
            if base.kind == "name" and base.text in self.frame.arrays:
                return self.frame.arrays[base.text], (zero,)
            if base.kind == "binary" and base.text == "+" and base.parts[0].text in self.frame.arrays:
                return self.frame.arrays[base.parts[0].text], (base.parts[1],)
            return None
        if term.kind == "name" and term.text in self.frame.scalars and term.text in self.frame.arrays:
            return self.frame.arrays[term.text], ()
        return None

    def pointed(self, term: Term) -> str | None:
        """Return the one shared array that a pointer's value is made of."""
        if term.kind in ("call", "opaque", "conditional") or self._is_value(term):
            return None
        arrays = {self.frame.arrays[n] for n in term.names() if n in self.frame.arrays}
        return arrays.pop() if len(arrays) == 1 else None

    def _is_value(self, term: Term) -> bool:
        """Whether a term reads an element: `tile[i]`, unless an outer extent of several is meant."""
        if term.kind == "index":
            base, levels = term, 0
            while base.kind == "index":
                base, levels = base.parts[0], levels + 1
            return not (base.kind == "name" and levels < self.extents(base.text))
        return term.kind == "member" or (
            term.kind == "name" and term.text in self.frame.scalars and term.text in self.frame.arrays
        )

    def extents(self, name: str) -> int:
        for step in self.frame.function.body:
            for variable in step.variables if isinstance(step, Declare) else ():
                if variable.name == name:
                    return len(variable.extents)
        return 1

    @staticmethod
    def is_plain(term: Term) -> bool:
        while term.kind == "cast":
            term = term.parts[0]
        return term.kind == "name"

    def lose(self, term: Term) -> None:
        found = self.place(term)
        if found is not None:
            self.lost.add(found[0])

    def touch(self, kind: str, term: Term) -> None:
        found = self.place(term)
        if found is None:
            return
        array, indices = found
        for index in indices:
            self.term(index)
        access = _Access(
            kind,
            tuple(self.spell(i) for i in indices),
            any(self.depends(i) for i in indices),
            self.guards,
            term.line,
            self.step_identity,
            self.passes,
            frozenset(n for i in indices for n in i.names()) & self.changing,
        )
        mine = self.pending.setdefault(array, [])
        self.found += [(array, other, access) for other in mine if _conflict(other, access)]
        if access not in mine:
            mine.append(access)

    def barrier(self) -> None:
        self.pending = {}

    def shuffle(self) -> None:
        """Lanes that shuffle inside one guard have read what they read there."""
        for array, accesses in self.pending.items():
            self.pending[array] = [
                a for a in accesses if not a.guards or a.guards != self.guards[: len(a.guards)]
            ]

    # ---- meanings ---------------------------------------------------------------------------------------------

    def spell(self, term: Term) -> str:
        """Return the term's text with names that never change replaced by what they stand for."""
        if term.kind == "name":
            return self.frame.meanings.get(term.text, term.text)
        if not term.parts:
            return term.text
        return str(replace(term, parts=tuple(Term("name", self.spell(p), (), p.line) for p in term.parts)))

    def depends(self, term: Term) -> bool:
        """Whether the term's value is a matter of which thread asks."""
        names = term.names() | {t.text for t in term.walk() if t.kind == "member"}
        return bool(names & (_THREAD_NAMES | self.frame.own))


def _reassigned(function: Function) -> frozenset[str]:
    """Return the names that are assigned to after their declaration."""
    return frozenset(
        target.text
        for step in steps_of(function.body)
        for term in terms_of(step)
        for target in assignments(term)
    )


def _conflict(first: _Access, second: _Access) -> bool:
    kinds = {first.kind, second.kind}
    if len(kinds) == 1 or not kinds - {"read"}:
        return False
    across = any(a[0] == b[0] and a[1] != b[1] for a, b in zip(first.passes, second.passes, strict=False))
    if first.step == second.step and not across:
        return False
    if first.index == second.index and first.is_own:
        return False
    if any(
        a != b and a.isdecimal() and b.isdecimal() for a, b in zip(first.index, second.index, strict=False)
    ):
        return False
    if across and first.changing and first.changing & second.changing:
        # Buffers that take turns: each iteration has its own.
        return False
    shared = [g for g in first.guards if g in second.guards]
    return not any(_is_one_thread(g) for g in shared)


def _is_one_thread(guard: str) -> bool:
    """Whether a condition lets a single thread through: `threadIdx.x == 0`, alone or among others."""
    for part in re.split(r"&&", guard):
        left, operator, right = part.partition("==")
        bare = part.strip("() ")
        if operator and (_ONE_THREAD.fullmatch(left) or _ONE_THREAD.fullmatch(right)):
            return True
        if bare.startswith("!") and _ONE_THREAD.fullmatch(bare[1:]):
            return True
    return False
