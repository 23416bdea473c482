"""What both cell magics make of their line: reference, inputs and baselines out of the notebook's namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmkernel.config import LLMKernel
from llmkernel.errors import UsageError
from llmkernel.magics.inputs import collect_inputs
from llmkernel.magics.namespace import resolve_callable
from llmkernel.magics.notebook import notebook_directory
from llmkernel.magics.options import CellOptions

if TYPE_CHECKING:
    from llmkernel.problem.signature import Signature


@dataclass(frozen=True)
class Job:
    """One cell's work.

    Attributes
    ----------
    reference : callable
    arguments : dict
        Keyword arguments that `synthesize` and `accept_source` share.
    """

    reference: Any
    arguments: dict[str, Any]


def make_job(ipython: Any, options: CellOptions, named: str, config: LLMKernel) -> Job:
    """Resolve the words of a line whose reference is called `named`.

    Raises
    ------
    llmkernel.errors.UsageError, llmkernel.errors.ReferenceProblem
        When a name means nothing, or the kernel's name is one that the cell reads.
    """
    namespace = ipython.user_ns
    reference = resolve_callable(namespace, named, "reference")
    inputs = collect_inputs(namespace, reference, named, options.inputs)
    baselines = {name: resolve_callable(namespace, name, "baseline") for name in options.baseline}
    used = {named.partition(".")[0], *inputs, *(b.partition(".")[0] for b in options.baseline)}
    _refuse_used(options.name, used, f"{named.rpartition('.')[2]}_cuda")
    arguments = {
        **_shared(ipython, options, inputs, config),
        "tolerance": options.tolerance,
        "shapes": options.shapes,
        "baselines": baselines or None,
    }
    return Job(reference, arguments)


def make_unverified_job(
    ipython: Any, options: CellOptions, signature: Signature | None, config: LLMKernel
) -> dict[str, Any]:
    """Return the keyword arguments of `accept_unverified` for a cell without a reference.

    Parameters
    ----------
    ipython : InteractiveShell
    options : CellOptions
    signature : Signature or None
        The launch header's: its inputs are looked for in the notebook. None where the header cannot be read.
    config : LLMKernel

    Raises
    ------
    llmkernel.errors.UsageError
        When the line says what needs a reference.
    llmkernel.errors.ReferenceProblem
        When an input has no value.
    """
    needless = {
        "--tolerance": options.tolerance is not None,
        "--shapes": options.shapes is not None,
        "--baseline": bool(options.baseline),
    }
    if any(needless.values()):
        option = next(o for o, is_given in needless.items() if is_given)
        raise UsageError(
            f"{option} needs a reference.",
            rule="Without --from nothing is compared or timed: the kernel is compiled, run once, and stays unverified.",
            received=f"%%cuda {options.name}",
            next_step="Add --from REFERENCE, or leave it out.",
        )
    inputs: dict[str, Any] = {}
    if signature is not None and (signature.inputs or options.inputs is not None):
        inputs = collect_inputs(ipython.user_ns, _call_of(signature), options.name, options.inputs)
    _refuse_used(options.name, set(inputs), f"{options.name}_cuda")
    return _shared(ipython, options, inputs, config)


def _shared(ipython: Any, options: CellOptions, inputs: dict[str, Any], config: LLMKernel) -> dict[str, Any]:
    from llmkernel.evaluation.tools import chosen_tools

    return {
        "inputs": inputs,
        "name": options.name,
        "device": options.device,
        "arch": options.arch,
        "checks": chosen_tools([c.strip() for c in (options.checks or "").split(",") if c.strip()]),
        "records_dir": notebook_directory(ipython) / Path(config.records_dir).expanduser(),
    }


def _refuse_used(name: str, used: set[str], better: str) -> None:
    if name in used:
        raise UsageError(
            f"The name {name} would replace what this cell reads.",
            rule="The kernel has a name of its own, so that the cell can run again.",
            received=name,
            next_step=f"Choose another, such as {better}.",
        )


def _call_of(signature: Signature) -> Callable[..., None]:
    """Return something with the parameters of a launch header, to be bound as a reference is."""
    from llmkernel.synthesis.unverified_kernel import call_signature

    def call(*_: Any) -> None:
        """Take the example inputs; never called."""

    call.__signature__ = call_signature(signature)  # type: ignore[attr-defined]
    return call
