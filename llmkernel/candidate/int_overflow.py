"""Int arithmetic that overflows at given sizes: found by computing indices as single threads of a launch do.

A launch plan says what sizes and scalars a kernel receives. For the threads at the edges of the grid, the integers of the
kernel are computed statement by statement; what comes out of memory is unknown. An overflow on the way that such a thread
certainly takes is a fact, with the thread as its witness; one behind a condition that depends on data is a possibility.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmkernel.candidate.candidate import Candidate
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
    Variable,
    assigned,
    bare_name,
)
from llmkernel.candidate.cxx_terms import Term
from llmkernel.candidate.cxx_types import substitute
from llmkernel.candidate.integers import Integer, converted, fits, integer_type, literal, operate, promoted
from llmkernel.candidate.parameters import KernelDeclaration
from llmkernel.devices.plan import KernelLaunch, LaunchPlan, ScalarArgument

_INT = (32, True)
_MAX_STEPS = 4000
_MAX_DEPTH = 4
_MAX_LAUNCHES = 16
_BUILTIN = ("threadIdx", "blockIdx", "blockDim", "gridDim")

Value = Integer | None
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Overflow:
    """One overflow.

    Attributes
    ----------
    kernel : str
    line : int
        1-based.
    text : str
        The arithmetic, as C++.
    values : str
        Its operands' values.
    thread, block : tuple of int
        Who computes it.
    is_certain : bool
        False behind a condition that depends on data.
    """

    kernel: str
    line: int
    text: str
    values: str
    thread: Triple
    block: Triple
    is_certain: bool

    def __str__(self) -> str:
        return f"`{self.text}` is computed in int and overflows: {self.values} in block {self.block} of `{self.kernel}`"


def overflows(candidate: Candidate, plan: LaunchPlan) -> tuple[Overflow, ...]:
    """Return the overflows of signed 32-bit arithmetic in a plan's launches, the certain ones first."""
    bodies = bodies_of(candidate.source)
    kernels = {k.name: k for k in candidate.kernels}
    found: dict[tuple[str, int, str], Overflow] = {}
    for launch in _distinct(plan.launches):
        name, _, arguments = launch.kernel.partition("<")
        kernel = kernels.get(name)
        function = bodies.functions.get(bare_name(name))
        if kernel is None or function is None or function.is_overloaded:
            continue
        for block, thread in _edges(launch):
            follower = _Thread(bodies, launch, block, thread)
            follower.enter_kernel(kernel, function, arguments.rpartition(">")[0])
            for each in follower.found:
                key = (each.kernel, each.line, each.text)
                if key not in found or (each.is_certain and not found[key].is_certain):
                    found[key] = each
    return tuple(sorted(found.values(), key=lambda o: (not o.is_certain, o.line)))


def _distinct(launches: Sequence[KernelLaunch]) -> list[KernelLaunch]:
    """Return launches that differ in their sizes: the largest of those that a `repeat` makes."""
    kept = {}
    for launch in launches:
        scalars = tuple(a for a in launch.arguments if isinstance(a, ScalarArgument))
        kept[launch.kernel, launch.grid, launch.block, scalars] = launch
    by_size = sorted(kept.values(), key=lambda x: x.grid[0] * x.grid[1] * x.grid[2], reverse=True)
    return by_size[:_MAX_LAUNCHES]


def _edges(launch: KernelLaunch) -> Iterator[tuple[Triple, Triple]]:
    (gx, gy, gz), (bx, by, bz) = launch.grid, launch.block
    end = (bx - 1, by - 1, bz - 1)
    last = (gx - 1, gy - 1, gz - 1)
    whole = (max(gx - 2, 0), max(gy - 2, 0), gz - 1)
    pairs = [(last, (0, 0, 0)), (last, end), (whole, end), ((gx - 1, 0, 0), end), ((0, gy - 1, gz - 1), end)]
    pairs += [((0, gy - 1, gz - 1), (0, 0, 0)), (last, (bx - 1, 0, 0)), (last, (0, by - 1, bz - 1))]
    yield from dict.fromkeys(pairs)


class _Ended(Exception):  # noqa: N818 - a budget, not an error
    """The thread was followed far enough."""


class _Thread:
    """One thread that is followed through a kernel."""

    def __init__(self, bodies: Bodies, launch: KernelLaunch, block: Triple, thread: Triple) -> None:
        self.bodies = bodies
        self.launch = launch
        self.block = block
        self.thread = thread
        self.found: list[Overflow] = []
        self.values: dict[str, Value] = {}
        self.kinds: dict[str, tuple[int, bool] | None] = {}
        self.types: dict[str, str] = {}
        self.is_certain = True
        self.result: Value = None
        self.steps_left = _MAX_STEPS
        self.depth = 0
        self.kernel = ""

    def enter_kernel(self, kernel: KernelDeclaration, function: Function, template: str) -> None:
        self.kernel = kernel.name
        texts = _split(template)
        for each, text in zip(kernel.template_parameters, texts, strict=False):
            self.types[each.name] = text
            if not each.is_type:
                self.values[each.name] = literal(text)
                self.kinds[each.name] = integer_type(each.type)
        for parameter, argument in zip(kernel.parameters, self.launch.arguments, strict=False):
            kind = None if parameter.pointer_depth else integer_type(substitute(parameter.base, self.types))
            self.kinds[parameter.name] = kind
            if kind and isinstance(argument, ScalarArgument) and isinstance(argument.value, int):
                self.values[parameter.name] = Integer(int(argument.value), *kind, is_size=True)
        for variable in self.bodies.variables:
            if variable.is_const:
                self.declare(variable)
        try:
            self.run(function.body)
        except _Ended:
            return

    # ---- statements -------------------------------------------------------------------------------------------

    def run(self, steps: tuple[Step, ...]) -> str:
        """Follow statements; return ``next``, or the word that left them."""
        for step in steps:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise _Ended
            status = "next"
            if isinstance(step, Declare):
                for variable in step.variables:
                    self.declare(variable)
            elif isinstance(step, Compute):
                self.value(step.term)
            elif isinstance(step, Branch):
                status = self.branch(step)
            elif isinstance(step, Loop):
                status = self.loop(step)
            elif isinstance(step, Jump):
                self.result = self.value(step.value) if step.value is not None else None
                return step.word
            else:
                # What cannot be followed may have changed anything, or left.
                self.values = dict.fromkeys(self.values)
                self.is_certain = False
            if status != "next":
                return status
        return "next"

    def declare(self, variable: Variable) -> None:
        name = variable.name
        value = self.value(variable.value) if variable.value is not None else None
        if variable.pointer_depth or variable.extents or variable.is_shared:
            self.kinds[name], self.values[name] = None, None
            return
        kind = integer_type(substitute(variable.type, self.types))
        if variable.type == "auto":
            kind = value.type if value is not None else None
        self.kinds[name] = kind
        self.values[name] = self.stored(value, kind, variable.value)

    def branch(self, step: Branch) -> str:
        condition = self.value(step.condition)
        if condition is not None:
            return self.run(step.then if condition.value else step.otherwise)
        was_certain = self.is_certain
        self.is_certain = False
        before = dict(self.values)
        first = self.run(step.then)
        after = self.values
        self.values = before
        second = self.run(step.otherwise)
        if first == second == "next":
            self.is_certain = was_certain
            self.values = {n: v for n, v in self.values.items() if after.get(n) == v}
            return "next"
        if first == "next":
            self.values = after
            return "next"
        return "next" if second == "next" else first

    def loop(self, step: Loop) -> str:
        self.run(step.start)
        inside = assigned((*step.body, *((Compute(step.step),) if step.step is not None else ())))
        turns = self.turns(step, inside)
        if turns is not None:
            name, first, last = turns
            if first is None:
                return "next"
            status = self.run(step.body)
            if status in ("return", "goto"):
                return status
            self.forget(inside - {name})
            if status != "break" and last is not None:
                self.values[name] = last
                status = self.run(step.body)
                self.forget(inside - {name})
            if status != "break" and step.step is not None and self.values.get(name) is not None:
                self.value(step.step)
            return "next"
        condition = (
            self.value(step.condition) if step.condition is not None and not step.is_do else Integer(1)
        )
        if condition is not None and not condition.value:
            return "next"
        was_certain = self.is_certain
        self.is_certain = was_certain and condition is not None
        status = self.run(step.body)
        if step.step is not None and status in ("next", "continue"):
            self.value(step.step)
        self.forget(inside)
        if condition is not None and status in ("return", "goto"):
            return status
        self.is_certain = was_certain and self.is_certain if condition is not None else False
        return "next"

    def turns(self, step: Loop, inside: frozenset[str]) -> tuple[str, Value, Value] | None:
        """Return a counted loop's variable, its first value (None: no turn) and its last one (None: one turn)."""
        condition, stride = step.condition, step.step
        if condition is None or stride is None or step.is_do or condition.kind != "binary":
            return None
        name, bound = condition.parts[0].text, condition.parts[1]
        start, end = self.values.get(name), None
        by = self.stride(stride, name)
        is_changed = name in assigned(step.body) or bool(bound.names() & inside)
        if start is None or by is None or by <= 0 or is_changed or condition.text not in ("<", "<=", "!="):
            return None
        end = self.value(bound)
        if end is None:
            return None
        goes, _ = operate(condition.text, start, end)
        if goes is None or not goes.value:
            return (name, None, None)
        count = -(-(end.value - start.value + (condition.text == "<=")) // by)
        last = Integer(start.value + (count - 1) * by, *start.type, start.is_size or end.is_size)
        return (name, start, last if count > 1 and fits(last.value, start.type) else None)

    def stride(self, term: Term, name: str) -> int | None:
        if term.parts and term.parts[0].text == name and term.text == "++":
            return 1
        if term.kind == "assign" and term.text == "+=" and term.parts[0].text == name:
            value = self.value(term.parts[1])
            return None if value is None else value.value
        return None

    def forget(self, names: frozenset[str]) -> None:
        for name in names:
            self.values[name] = None

    # ---- terms ------------------------------------------------------------------------------------------------

    def value(self, term: Term | None) -> Value:
        """Compute a term; None where it is not an integer that is known."""
        if term is None:
            return None
        if term.kind == "number":
            return literal(term.text)
        if term.kind == "name":
            known = {"true": Integer(1), "false": Integer(0), "warpSize": Integer(32)}
            return self.values.get(term.text, known.get(term.text))
        if term.kind == "member":
            return self.member(term)
        if term.kind == "cast":
            value = self.value(term.parts[0])
            kind = integer_type(substitute(term.text, self.types))
            return converted(value, kind) if value is not None and kind is not None else None
        if term.kind in ("assign", "postfix") or (term.kind == "unary" and term.text in ("++", "--")):
            return self.change(term)
        if term.kind == "unary":
            return self.unary(term)
        if term.kind == "binary":
            return self.binary(term)
        if term.kind == "conditional":
            return self.conditional(term)
        if term.kind == "call":
            return self.call(term)
        for part in term.parts:
            self.value(part)
        return None

    def member(self, term: Term) -> Value:
        base = term.parts[0]
        if base.kind == "name" and base.text in _BUILTIN and term.text in ("x", "y", "z"):
            triples = (self.thread, self.block, self.launch.block, self.launch.grid)
            triple = triples[_BUILTIN.index(base.text)]
            return Integer(triple["xyz".index(term.text)], 32, False, is_size=True)
        self.value(base)
        return None

    def unary(self, term: Term) -> Value:
        value = self.value(term.parts[0])
        if value is None or term.text in ("*", "&"):
            return None
        if term.text == "!":
            return Integer(int(not value.value), is_size=value.is_size)
        if term.text == "~":
            return converted(Integer(~value.value, 64, True, value.is_size), promoted(value.type))
        if term.text == "-":
            return self.computed("-", Integer(0), value, term)
        return value

    def binary(self, term: Term) -> Value:
        left = self.value(term.parts[0])
        if term.text in ("&&", "||"):
            is_or = term.text == "||"
            if left is not None and bool(left.value) == is_or:
                return Integer(int(is_or))
            was_certain = self.is_certain
            self.is_certain = was_certain and left is not None
            right = self.value(term.parts[1])
            self.is_certain = was_certain
            if right is not None and bool(right.value) == is_or:
                return Integer(int(is_or))
            return Integer(int(not is_or)) if left is not None and right is not None else None
        right = self.value(term.parts[1])
        if term.text == ",":
            return right
        if left is None or right is None:
            return None
        return self.computed(term.text, left, right, term)

    def conditional(self, term: Term) -> Value:
        condition = self.value(term.parts[0])
        if condition is not None:
            return self.value(term.parts[1 if condition.value else 2])
        was_certain = self.is_certain
        self.is_certain = False
        first, second = self.value(term.parts[1]), self.value(term.parts[2])
        self.is_certain = was_certain
        return first if first == second else None

    def computed(self, operator: str, left: Integer, right: Integer, term: Term) -> Value:
        result, has_overflown = operate(operator, left, right)
        if has_overflown and (left.is_size or right.is_size) and max(left.bits, right.bits) <= _INT[0]:
            self.record(term, f"{left.value} {operator} {right.value}")
        return result

    def change(self, term: Term) -> Value:
        target = term.parts[0]
        if term.kind == "assign":
            value = self.value(term.parts[1])
            operator = term.text[:-1]
        else:
            value, operator = Integer(1), term.text[0]
        if target.kind != "name":
            self.value(target)
            return None
        name = target.text
        before = self.values.get(name)
        if operator:
            value = None if before is None or value is None else self.computed(operator, before, value, term)
        self.values[name] = self.stored(value, self.kinds.get(name), term)
        return before if term.kind == "postfix" else self.values[name]

    def stored(self, value: Value, kind: tuple[int, bool] | None, term: Term | None) -> Value:
        """Return a value as a variable keeps it; an index that an int cannot hold is an overflow too."""
        if value is None or kind is None:
            return None
        if (
            kind == _INT
            and value.is_size
            and value.type != _INT
            and not fits(value.value, kind)
            and term is not None
        ):
            self.record(term, f"{value.value} stored in an int")
            return None
        return converted(value, kind)

    def call(self, term: Term) -> Value:
        called, *arguments = term.parts
        name = bare_name(called.text)
        values = [self.value(a) for a in arguments]
        if called.kind == "member":
            self.value(called.parts[0])
        if name in ("min", "max") and len(values) == 2 and values[0] is not None and values[1] is not None:
            is_first = (values[0].value < values[1].value) == (name == "min")
            other = values[1] if is_first else values[0]
            chosen = values[0] if is_first else values[1]
            total, _ = operate("+", chosen, Integer(0, *other.type, other.is_size))
            return total
        function = self.bodies.functions.get(name) if called.kind == "name" else None
        for argument in arguments:
            if (argument.kind == "unary" and argument.text == "&") or function is not None:
                self.forget(frozenset(p.text for p in argument.parts[:1] or (argument,) if p.kind == "name"))
        if function is None or function.is_overloaded or self.depth >= _MAX_DEPTH:
            return None
        return self.inline(function, values)

    def inline(self, function: Function, values: list[Value]) -> Value:
        outer = self.values, self.kinds, self.is_certain
        self.values = {v.name: outer[0].get(v.name) for v in self.bodies.variables}
        self.kinds = {v.name: outer[1].get(v.name) for v in self.bodies.variables}
        for parameter, value in zip(function.parameters, values, strict=False):
            kind = None if parameter.pointer_depth else integer_type(substitute(parameter.type, self.types))
            self.kinds[parameter.name] = kind
            self.values[parameter.name] = converted(value, kind) if value is not None and kind else None
        self.depth += 1
        self.result = None
        status = self.run(function.body)
        self.depth -= 1
        result = self.result if status == "return" and self.is_certain == outer[2] else None
        self.values, self.kinds, self.is_certain = outer
        return result

    def record(self, term: Term, values: str) -> None:
        text = str(term)
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1]
        self.found.append(
            Overflow(self.kernel, term.line, text, values, self.thread, self.block, self.is_certain)
        )


def _split(template: str) -> list[str]:
    """Split template arguments at commas outside of brackets."""
    parts, depth = [""], 0
    for letter in template:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [p.strip() for p in parts if p.strip()]
