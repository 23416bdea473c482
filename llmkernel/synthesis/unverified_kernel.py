"""A candidate without a reference as a Python callable: it runs in the evaluation worker and is called unverified."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from llmkernel.candidate.candidate import Candidate
from llmkernel.devices.base import ExecutionOptions
from llmkernel.errors import (
    BindingError,
    DeviceError,
    LLMKernelError,
    UsageError,
)
from llmkernel.evaluation.binding import Prepared, prepare
from llmkernel.evaluation.evaluate import DEFAULT_TIMEOUT
from llmkernel.evaluation.report import Report
from llmkernel.evaluation.session import Session
from llmkernel.evaluation.unverified import memory_finding
from llmkernel.evaluation.worker.harness import DrawResult
from llmkernel.problem.arrays import from_numpy, is_array, kind_of, refuse_unusual_array, to_numpy
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.signature import ArraySpec, Signature
from llmkernel.problem.workloads import new_seed
from llmkernel.records.record import Record
from llmkernel.synthesis.unchanging import Unchanging

if TYPE_CHECKING:
    from llmkernel.problem.arrays import HostArray


class UnverifiedKernel(Unchanging):
    """A kernel without a reference: nothing says that its results are right.

    Its launch header says what it takes and what is allocated for its results. Code that was not verified never runs
    in the notebook's process: each call copies the arrays to the evaluation worker, runs there between guard bands, and
    copies the results back. It is no `GeneratedKernel`.

    Parameters
    ----------
    candidate : llmkernel.candidate.candidate.Candidate
    report : llmkernel.evaluation.report.Report
        Of this very candidate; its outcome is ``unverified``.
    name : str
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
        cls, candidate: Candidate, report: Report, name: str, device: str
    ) -> UnverifiedKernel:
        """Create an instance with a class of its own, so that `help` shows this kernel and not any kernel."""
        own = type(
            name if name.isidentifier() else "unverified_kernel",
            (UnverifiedKernel,),
            {
                "__doc__": _documentation(candidate, report),
                "__module__": "llmkernel",
                "__signature__": call_signature(candidate.signature),
            },
        )
        made: UnverifiedKernel = object.__new__(own)
        made._build(candidate, report, name, device)
        return made

    def _build(self, candidate: Candidate, report: Report, name: str, device: str) -> None:
        self.__name__ = name
        self._candidate = candidate
        self._device = device
        self._kernels: tuple[str, ...] = ()
        self._session: Session | None = None
        self.source = candidate.source
        self.report = report
        self.record = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it in the evaluation worker and return what its launch header returns, unverified.

        Raises
        ------
        llmkernel.errors.BindingError
            For arguments that the header does not take.
        llmkernel.errors.DeviceError
            When the run left its arrays or ended in a fault; the notebook's arrays are as they were.
        """
        values = self._values(args, kwargs)
        prepared = prepare(
            self._candidate, [to_numpy(v) if is_array(v) else v for v in values], self._limits()
        )
        result = self._run(prepared)
        plan, like = prepared.plan, _model(values)
        payloads = dict(zip(plan.results, result.results, strict=True))
        changed = payloads | result.finals
        for spec, value in zip(self._candidate.signature.inputs, values, strict=True):
            if isinstance(spec, ArraySpec) and spec.is_inout:
                _write_back(value, _as_array(changed[spec.name], spec.name, prepared))
        results = [_as_array(payloads[name], name, prepared) for name in plan.results]
        moved = tuple(r.copy() if like is None else from_numpy(r, like) for r in results)
        return moved[0] if len(moved) == 1 else moved or None

    @property
    def signature(self) -> str:
        """The launch header's signature."""
        return str(self._candidate.signature)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled, as a verified kernel does."""
        raise UsageError(
            f"The unverified kernel {self.__name__} cannot be pickled.",
            rule="a kernel is compiled and checked where it runs",
            received=repr(self),
            next_step="Share its source: %kernels export writes it to a file.",
        )

    def __repr__(self) -> str:
        where = self.report.device.get("name", "?")
        return f"<UnverifiedKernel {self.signature}: unverified, ran on {where}>"

    def _repr_llm_(self) -> str:
        """Return what a language model is told of it: the convention is IPython's."""
        return f"{self!r}\n\n{type(self).__doc__}\n\n{self.source}"

    def _repr_html_(self) -> str:
        from llmkernel.display.kernel import repr_html_for_kernel

        return repr_html_for_kernel(
            name=self.__name__,
            signature=self.signature,
            report=self.report,
            source=self.source,
            origin="by hand",
        )

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        try:
            bound = call_signature(self._candidate.signature).bind(*args, **kwargs)
        except TypeError as error:
            raise BindingError(
                f"{self.__name__}: {error}.",
                reason="count",
                rule=f"it is called as its launch header says: {self.signature}",
                next_step="Pass one argument for each input of the header.",
            ) from None
        values = list(bound.arguments.values())
        for spec, value in zip(self._candidate.signature.inputs, values, strict=True):
            check_argument(spec.name, value)
        return values

    def _limits(self) -> Any:
        if self._session is None or not self._session.worker.is_alive:
            self._session = Session(self._device, DEFAULT_TIMEOUT)
            self._kernels = ()
        return self._session.limits()

    def _run(self, prepared: Prepared) -> DrawResult:
        session = self._session
        assert session is not None
        wanted = prepared.plan.kernels()
        if not self._kernels or not set(wanted) <= set(self._kernels):
            self._kernels = tuple(dict.fromkeys((*self._kernels, *wanted)))
            session.compile(self.source, self._kernels)
        seed = new_seed()
        options = ExecutionOptions(timeout_seconds=DEFAULT_TIMEOUT, seed=seed & 0x7FFFFFFF)
        result = session.draw(prepared.plan, prepared.payloads, repeats=1, seed=seed, options=options)
        found = memory_finding(result, prepared, self.source)
        if found is not None:
            raise DeviceError(
                f"The unverified kernel {self.__name__} ended `{found[1].outcome}`: {found[1].summary}",
                rule="an unverified kernel runs apart from the notebook, whose arrays are as they were",
                received=", ".join(f"{b.name}: {b.dtype}{list(b.shape)}" for b in prepared.plan.buffers),
                next_step="Correct the kernel; with --from REFERENCE it is checked at many sizes before you call it.",
            )
        return result


def call_signature(signature: Signature) -> inspect.Signature:
    """Return how a kernel with this launch header is called: one parameter for each input, in order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [f"{s.name}_" if iskeyword(s.name) else s.name for s in signature.inputs]
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


def check_argument(name: str, value: Any) -> None:
    """Refuse what is neither a plain array nor a number, and a tensor whose gradient is wanted.

    Raises
    ------
    llmkernel.errors.BindingError
    """
    kind = kind_of(value)
    if kind == "other":
        raise BindingError(
            f"`{name}` is neither an array nor a number.",
            argument=name,
            reason="kind",
            rule="a kernel takes NumPy, CuPy or torch arrays, and numbers",
            received=type(value).__name__,
            next_step=f"Convert it: np.asarray({name}).",
        )
    if kind == "scalar":
        return
    try:
        refuse_unusual_array(f"`{name}`", value)
        dtype_name(value.dtype)
    except LLMKernelError as error:
        raise BindingError(
            error.what, argument=name, rule=error.rule, received=error.received, next_step=error.next_step
        ) from None
    if kind == "torch" and value.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise BindingError(
            f"`{name}` requires grad, and the kernel has no backward pass.",
            argument=name,
            reason="grad",
            received="requires_grad=True",
            next_step=f"Call it under torch.no_grad(), or pass {name}.detach().",
        )


def _model(values: Sequence[Any]) -> Any:
    """Return the argument whose framework and device the results take; None for NumPy."""
    for kind in ("torch", "cupy"):
        for value in values:
            if kind_of(value) == kind:
                return value
    return None


def _as_array(payload: Any, name: str, prepared: Prepared) -> HostArray:
    buffer = prepared.plan.buffer(name)
    array: HostArray = payload.view(DTYPES[buffer.dtype].numpy).reshape(buffer.shape)
    return array


def _write_back(value: Any, array: HostArray) -> None:
    if kind_of(value) == "torch":
        value.detach().copy_(from_numpy(array, value))
    else:
        value[...] = array if kind_of(value) == "numpy" else from_numpy(array, value)


def _documentation(candidate: Candidate, report: Report) -> str:
    lines = [f"UNVERIFIED: {candidate.signature}", "", report.headline, ""]
    lines += [f"Ran on {report.device.get('name', report.device.get('device', '?'))}, unverified:"]
    lines += [f"  {c.status}: {c.name}: {c.summary}" for c in report.checks]
    lines += ["", "Not checked:", *(f"  {n}" for n in report.not_checked)]
    lines += ["", "Each call copies its arrays to the evaluation worker and back."]
    return "\n".join(lines)
