"""What the lines of a launch header mean: frozen statements whose `str()` is canonical text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from llmkernel.candidate.expressions import Expression
from llmkernel.problem.signature import ArraySpec, Signature

INDENT = "    "


def _place() -> int:
    result: int = field(default=0, compare=False)
    return result


@dataclass(frozen=True)
class CxxArgument:
    """A template argument that is not an expression: a type, or a constant of the source.

    Attributes
    ----------
    text : str
        C++ text in which names of type variables still stand.
    """

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ArrayUse:
    """An array as a kernel argument, moved by `offset` elements."""

    name: str
    offset: Expression | None = None
    column: int = _place()

    def __str__(self) -> str:
        return self.name if self.offset is None else f"{self.name} + {self.offset}"


@dataclass(frozen=True)
class ScalarUse:
    """A scalar of the signature, passed as it is."""

    name: str
    column: int = _place()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class NumberUse:
    """A floating-point literal as a kernel argument."""

    value: float
    column: int = _place()

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class TensorMapUse:
    """A TMA descriptor of an array.

    Attributes
    ----------
    box : tuple of Expression
        Elements an axis, in array order.
    swizzle : int
        0, 32, 64 or 128 bytes.
    """

    name: str
    box: tuple[Expression, ...]
    swizzle: int = 0
    column: int = _place()

    def __str__(self) -> str:
        swizzle = f", swizzle={self.swizzle}" if self.swizzle else ""
        return f"tensor_map({self.name}, box={_tuple(self.box)}{swizzle})"


LaunchArgument = ArrayUse | ScalarUse | NumberUse | TensorMapUse | Expression
TemplateArgument = CxxArgument | Expression


@dataclass(frozen=True)
class Let:
    """``let name = value``."""

    name: str
    value: Expression
    line: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        yield f"let {self.name} = {self.value}"


@dataclass(frozen=True)
class Require:
    """``require condition``."""

    condition: Expression
    line: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        yield f"require {self.condition}"


@dataclass(frozen=True)
class Scratch:
    """``scratch a: T[…], b: T[…] = 0``."""

    arrays: tuple[ArraySpec, ...]
    line: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        yield "scratch " + ", ".join(str(a) for a in self.arrays)


@dataclass(frozen=True)
class Branch:
    """One ``when`` of a `When`."""

    condition: Expression
    body: tuple[Statement, ...]
    line: int = _place()


@dataclass(frozen=True)
class When:
    """``when … / when … / otherwise``: the first branch whose condition holds is taken.

    Attributes
    ----------
    otherwise : tuple of Statement
        Empty without ``otherwise``.
    """

    branches: tuple[Branch, ...]
    otherwise: tuple[Statement, ...] = ()
    line: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        for branch in self.branches:
            yield f"when {branch.condition}:"
            yield from _indented(branch.body)
        if self.otherwise:
            yield "otherwise:"
            yield from _indented(self.otherwise)


@dataclass(frozen=True)
class Repeat:
    """``repeat count:``; `repeat_index` counts from 0."""

    count: Expression
    body: tuple[Statement, ...]
    line: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        yield f"repeat {self.count}:"
        yield from _indented(self.body)


@dataclass(frozen=True)
class Swap:
    """``swap(first, second)``: two names of scratch or outputs change buffers."""

    first: str
    second: str
    line: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        yield f"swap({self.first}, {self.second})"


@dataclass(frozen=True)
class Launch:
    """``kernel<T, 32><<<grid, block, shared, cluster=(8, 1, 1), cooperative>>>(arguments)``.

    Attributes
    ----------
    grid, block : tuple of Expression
        One to three, x first.
    shared : Expression or None
        Bytes of dynamic shared memory.
    cluster : tuple of Expression or None
        One to three, x first.
    """

    kernel: str
    template_arguments: tuple[TemplateArgument, ...]
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression | None
    cluster: tuple[Expression, ...] | None
    is_cooperative: bool
    arguments: tuple[LaunchArgument, ...]
    line: int = _place()
    column: int = _place()

    def lines(self) -> Iterator[str]:
        """Yield canonical lines."""
        template = ", ".join(_template_text(a) for a in self.template_arguments)
        config = [_tuple(self.grid), _tuple(self.block)]
        if self.shared is not None:
            config.append(str(self.shared))
        if self.cluster is not None:
            config.append(f"cluster={_tuple(self.cluster)}")
        if self.is_cooperative:
            config.append("cooperative")
        arguments = ", ".join(str(a) for a in self.arguments)
        yield f"{self.kernel}{f'<{template}>' if template else ''}<<<{', '.join(config)}>>>({arguments})"


Statement = Let | Require | Scratch | When | Repeat | Swap | Launch


@dataclass(frozen=True)
class LaunchHeader:
    """A parsed launch header; equal when it says the same, wherever it stands.

    Attributes
    ----------
    signature : Signature
    statements : tuple of Statement
        In order.
    line, end_line : int
        1-based first and last line of the header in the `.cu` file.
    """

    signature: Signature
    statements: tuple[Statement, ...]
    line: int = _place()
    end_line: int = _place()

    @property
    def scratch(self) -> tuple[ArraySpec, ...]:
        """Every scratch buffer, those of branches included."""
        return tuple(a for s in walk(self.statements) if isinstance(s, Scratch) for a in s.arrays)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch that is written, in order."""
        return tuple(s for s in walk(self.statements) if isinstance(s, Launch))

    def __str__(self) -> str:
        lines = [str(self.signature), *_indented(self.statements, "")]
        return "\n".join(f"//! {line}" for line in lines) + "\n"


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield `statements` and everything inside them, in order."""
    for statement in statements:
        yield statement
        if isinstance(statement, When):
            for branch in statement.branches:
                yield from walk(branch.body)
            yield from walk(statement.otherwise)
        elif isinstance(statement, Repeat):
            yield from walk(statement.body)


def expressions(statements: tuple[Statement, ...]) -> Iterator[Expression]:
    """Yield every expression in `statements`."""
    for statement in walk(statements):
        if isinstance(statement, Let):
            yield statement.value
        elif isinstance(statement, Require):
            yield statement.condition
        elif isinstance(statement, Scratch):
            yield from (d for a in statement.arrays for d in a.dims)
        elif isinstance(statement, When):
            yield from (b.condition for b in statement.branches)
        elif isinstance(statement, Repeat):
            yield statement.count
        elif isinstance(statement, Launch):
            yield from launch_expressions(statement)


def launch_expressions(launch: Launch) -> Iterator[Expression]:
    """Yield every expression of one launch."""
    yield from (a for a in launch.template_arguments if isinstance(a, Expression))
    yield from (*launch.grid, *launch.block, *(launch.cluster or ()))
    if launch.shared is not None:
        yield launch.shared
    for argument in launch.arguments:
        if isinstance(argument, Expression):
            yield argument
        elif isinstance(argument, ArrayUse) and argument.offset is not None:
            yield argument.offset
        elif isinstance(argument, TensorMapUse):
            yield from argument.box


def _indented(statements: tuple[Statement, ...], indent: str = INDENT) -> Iterator[str]:
    for statement in statements:
        for line in statement.lines():
            yield indent + line


def _tuple(values: tuple[Expression, ...]) -> str:
    return str(values[0]) if len(values) == 1 else f"({', '.join(str(v) for v in values)})"


def _template_text(argument: TemplateArgument) -> str:
    text = str(argument)
    return f"({text})" if isinstance(argument, Expression) and ("<" in text or ">" in text) else text
