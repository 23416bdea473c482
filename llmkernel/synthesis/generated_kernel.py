"""An accepted candidate as a Python callable."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.candidate import Candidate
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import BindingError, UsageError
from llmkernel.evaluation.report import Report
from llmkernel.problem.arrays import is_array, is_on_gpu, kind_of
from llmkernel.problem.dtypes import dtype_name
from llmkernel.problem.problem import Problem
from llmkernel.problem.reference import call_signature
from llmkernel.synthesis.devices import device_here
from llmkernel.synthesis.plain_arrays import plain_only
from llmkernel.synthesis.same_sizes import same_sizes_only
from llmkernel.synthesis.unchanging import Unchanging

if TYPE_CHECKING:
    from llmkernel.records.record import Record


class GeneratedKernel(Unchanging):
    """A kernel that was verified, called as its reference is.

    Takes and returns what the reference takes and returns: NumPy arrays, CuPy arrays or torch tensors. It launches on the
    caller's current stream and device, and refuses by name what it was not verified for.

    Parameters
    ----------
    problem : llmkernel.problem.problem.Problem
    candidate : llmkernel.candidate.candidate.Candidate
    report : llmkernel.evaluation.report.Report
        Of this very candidate; its outcome is ``passed``.
    device : str
        ``cuda`` or ``cpu``.

    Attributes
    ----------
    source : str
        The `.cu` file.
    report : Report
    record : llmkernel.records.record.Record or None
        None until it was saved.
    """

    record: Record | None

    def __new__(  # noqa: PYI034 - every instance has a class of its own
        cls, problem: Problem, candidate: Candidate, report: Report, device: str
    ) -> GeneratedKernel:
        """Create an instance with a class of its own, so that `help` shows this kernel and not any kernel."""
        name = problem.name if problem.name.isidentifier() else "generated_kernel"
        own = type(
            name,
            (GeneratedKernel,),
            {
                "__doc__": _documentation(problem, report),
                "__module__": "llmkernel",
                "__signature__": call_signature(problem.reference.function),
            },
        )
        made: GeneratedKernel = object.__new__(own)
        made._build(problem, candidate, report, device)
        if made._is_plain:
            plain = _plain_call(made._caller, made._count, problem)
            own.__call__ = plain  # type: ignore[method-assign]
            if hasattr(made._caller, "on_fast"):

                def on_fast(bind: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
                    fast = bind(functools.partial(plain, made))
                    fast.__doc__ = plain.__doc__
                    own.__call__ = fast  # type: ignore[method-assign]

                made._caller.on_fast = on_fast
        return made

    def _build(self, problem: Problem, candidate: Candidate, report: Report, device: str) -> None:
        problem.drop_copies()
        self.__name__ = problem.name
        self._problem = problem
        self._candidate = candidate
        self._domain = domain_of(problem, device)
        self._device = device_here(device)
        reference = problem.reference
        self._caller = same_sizes_only(
            plain_only(self._device.caller(candidate, self._domain), self._domain.arguments),
            problem.signature,
            candidate.header.signature,
            reference.parameters,
        )
        # The common case is called without binding: every microsecond here is paid on every call.
        self._is_plain = not reference.is_module and not reference.fixed
        self._count = len(reference.parameters)
        self._is_module = reference.is_module
        self.source = candidate.source
        self.report = report
        self.record = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the reference computes.

        Raises
        ------
        llmkernel.errors.BindingError
            For a dtype, rank, layout, device or `requires_grad` that the kernel was not verified for.
        """
        if self._is_module:
            self._refuse_gradients()
        return self._caller(*self._problem.reference.inputs_of_call(args, kwargs))

    @property
    def signature(self) -> str:
        """What it was verified for, in the reference's words."""
        return str(self._problem.signature)

    @property
    def problem(self) -> Problem:
        """What it computes: reference, example inputs, tolerance."""
        return self._problem

    @property
    def domain(self) -> VerifiedDomain:
        """What the kernel was verified for."""
        return self._domain

    def launch_plan(self, *args: Any, **kwargs: Any) -> LaunchPlan:
        """Return what a call with these arguments would launch, without launching it."""
        inputs = self._problem.reference.inputs_of_call(args, kwargs)
        return self._candidate.plan([_argument(v) for v in inputs], self._device.limits())

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled: what another process runs is verified there first."""
        raise UsageError(
            f"The kernel {self.__name__} cannot be pickled.",
            rule="a kernel is shared by its record, and verified where it runs",
            received=repr(self),
            next_step="Share the folder of its record; elsewhere, run the same cell with --replay only.",
        )

    def _refuse_gradients(self) -> None:
        torch = sys.modules["torch"]
        module: Any = self._problem.reference.function
        if torch.is_grad_enabled():
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    raise BindingError(
                        f"{self.__name__}: the module's parameter {name!r} requires a gradient.",
                        argument=name,
                        reason="grad",
                        rule="a generated kernel has no backward pass",
                        received="requires_grad=True",
                        next_step="Call it under torch.no_grad(), or use the module itself for training.",
                    )

    def __repr__(self) -> str:
        return f"<GeneratedKernel {self.signature}: {self.report.outcome} on {self.report.device.get('name', '?')}>"

    def _repr_llm_(self) -> str:
        """Return what a language model is told of it: the convention is IPython's."""
        return f"{self!r}\n\n{type(self).__doc__}\n\n{self.source}"

    def _repr_html_(self) -> str:
        from llmkernel.display.kernel import repr_html_for_kernel

        origin, provider = "generated", ""
        if self.record is not None:
            provider = self.record.provider
            origin = "library" if provider == "library" else "generated"
        return repr_html_for_kernel(
            name=self.__name__,
            signature=self.signature,
            report=self.report,
            source=self.source,
            origin=origin,
            provider=provider,
        )


def _plain_call(caller: Callable[..., Any], count: int, problem: Problem) -> Callable[..., Any]:
    """Return the `__call__` of a kernel whose reference is called with its inputs in order, and nothing else."""

    def __call__(_: GeneratedKernel, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - becomes the class's
        if kwargs or len(args) != count:
            return caller(*problem.reference.inputs_of_call(args, kwargs))
        return caller(*args)

    __call__.__doc__ = GeneratedKernel.__call__.__doc__
    return __call__


def _argument(value: Any) -> CallArgument:
    if not is_array(value):
        return ScalarValue(value.item() if hasattr(value, "item") else value)
    kind = kind_of(value)
    if kind == "torch":
        strides = None if value.is_contiguous() else tuple(value.stride())
        address = value.data_ptr()
    else:
        size = value.dtype.itemsize
        strides = None if value.flags.c_contiguous else tuple(s // size for s in value.strides)
        address = value.data.ptr if kind == "cupy" else value.ctypes.data
    return ArrayArgument(dtype_name(value.dtype), tuple(value.shape), strides, address)


def domain_of(problem: Problem, device: str) -> VerifiedDomain:
    """Return what a kernel of this problem is verified for."""
    arguments = tuple(
        VerifiedArgument(
            name=name,  # the user's own word; a header may call it otherwise
            kind=kind_of(value),  # type: ignore[arg-type]
            dtype=spec.dtype,
            rank=len(value.shape) if is_array(value) else 0,
            is_on_gpu=is_array(value) and is_on_gpu(value),
        )
        for name, spec, value in zip(
            problem.reference.parameters, problem.signature.inputs, problem.inputs, strict=True
        )
    )
    contract = problem.contract
    return VerifiedDomain(
        arguments=arguments,
        result_kind=contract.kind,  # type: ignore[arg-type]
        is_result_on_gpu=contract.is_on_gpu,
        returns_tuple=contract.returns_tuple,
        device=device,
    )


def _documentation(problem: Problem, report: Report) -> str:
    lines = [f"{problem.signature}", "", report.headline, ""]
    lines += [f"Verified on {report.device.get('name', report.device.get('device', '?'))} ({report.level}):"]
    lines += [f"  {c.status}: {c.name}: {c.summary}" for c in report.checks]
    if report.not_checked:
        lines += ["", "Not checked:", *(f"  {n}" for n in report.not_checked)]
    if report.timing is not None and report.timing.claim:
        lines += ["", report.timing.claim]
    if problem.intent.strip():
        lines += ["", "Intent:", *(f"  {line}" for line in problem.intent.strip().splitlines()[:20])]
    return "\n".join(lines)
