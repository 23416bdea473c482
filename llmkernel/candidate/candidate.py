"""A candidate: one `.cu` file whose launch header fits the kernels below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from llmkernel.candidate.arguments import CallArgument
from llmkernel.candidate.binding import Binding, bind, header_facts, sizeof
from llmkernel.candidate.expressions import Expression, Fact, expression_is_known
from llmkernel.candidate.header import parse_header
from llmkernel.candidate.header_check import check_header, reachable_launches
from llmkernel.candidate.parameters import KernelDeclaration, parse_kernels
from llmkernel.candidate.planning import make_plan
from llmkernel.candidate.resolution import find_kernel, name_expression, template_texts
from llmkernel.candidate.statements import LaunchHeader, TensorMapUse
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import LaunchPlan
from llmkernel.problem.signature import ArraySpec, Signature


@dataclass(frozen=True)
class Candidate:
    """One `.cu` file, understood.

    Attributes
    ----------
    source : str
        The whole file.
    header : LaunchHeader
    kernels : tuple of KernelDeclaration
    """

    source: str
    header: LaunchHeader = field(compare=False)
    kernels: tuple[KernelDeclaration, ...] = field(compare=False)

    @property
    def signature(self) -> Signature:
        """The header's signature."""
        return self.header.signature

    @property
    def header_text(self) -> str:
        """The header's lines as they stand in the file."""
        lines = self.source.split("\n")[self.header.line - 1 : self.header.end_line]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    @cached_property
    def _facts(self) -> frozenset[Fact]:
        return header_facts(self.header)

    @cached_property
    def facts_needed(self) -> frozenset[str]:
        """Inputs whose address influences the plan.

        A cache of plans has ``address % 4096`` of these in its key.
        """
        inputs = {s.name for s in self.signature.inputs if isinstance(s, ArraySpec)}
        asked = {f.subject for f in self._facts if f.kind in ("address", "tma_ok")}
        mapped = {
            a.name for launch in self.header.launches for a in launch.arguments if isinstance(a, TensorMapUse)
        }
        return frozenset(inputs & (asked | mapped))

    def bind(self, arguments: Sequence[CallArgument]) -> Binding:
        """Find dtypes, dimensions and scalars of one call.

        Parameters
        ----------
        arguments : sequence of ArrayArgument or ScalarValue
            In the order of the header's inputs.

        Raises
        ------
        llmkernel.errors.BindingError
            Naming the argument that does not fit and the reason.
        llmkernel.errors.PreconditionError
            For a `require` that does not hold.
        """
        return bind(self.header, self._facts, arguments)

    def plan(self, arguments: Sequence[CallArgument], limits: DeviceLimits) -> LaunchPlan:
        """Evaluate the header for one call.

        Raises
        ------
        llmkernel.errors.BindingError
            As `bind`.
        llmkernel.errors.LaunchError
            For what the device does not allow, with the header's line.
        llmkernel.errors.HeaderError
            For an expression that overflows or divides by zero.
        """
        return make_plan(self.header, self.kernels, self._facts, self.bind(arguments), limits)

    def name_expressions(self, types: Mapping[str, str]) -> tuple[str, ...]:
        """Return the kernels that are known before shapes are, for an early compile.

        Parameters
        ----------
        types : mapping
            Type variable to dtype name.
        """
        chosen = {n: c[0] for n, c in self.signature.type_variables if len(c) == 1} | dict(types)
        environment: dict[str, int | bool] = {
            f.key: sizeof(f.subject, chosen) for f in self._facts if f.kind == "sizeof"
        }
        names = []
        for launch in reachable_launches(self.header, chosen):
            arguments = launch.template_arguments
            if all(expression_is_known(a, environment) for a in arguments if isinstance(a, Expression)):
                kernel = find_kernel(launch, self.kernels)
                texts = template_texts(arguments, kernel.template_parameters, chosen, environment)
                names.append(name_expression(kernel, texts))
        return tuple(dict.fromkeys(names))


def parse_candidate(source: str) -> Candidate:
    """Parse a `.cu` file and check its launch header against its kernels.

    Parameters
    ----------
    source : str
        The whole file.

    Raises
    ------
    llmkernel.errors.HeaderError
        With line and column.
    """
    header = parse_header(source)
    kernels = parse_kernels(source)
    check_header(header, kernels)
    return Candidate(source, header, kernels)
