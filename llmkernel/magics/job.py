"""What both cell magics make of their line: reference, inputs and baselines out of the notebook's namespace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmkernel.config import LLMKernel
from llmkernel.errors import UsageError
from llmkernel.magics.inputs import collect_inputs
from llmkernel.magics.namespace import resolve_callable
from llmkernel.magics.notebook import notebook_directory
from llmkernel.magics.options import CudaOptions


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


def make_job(ipython: Any, options: CudaOptions, config: LLMKernel) -> Job:
    """Resolve the words of a line.

    Raises
    ------
    llmkernel.errors.UsageError, llmkernel.errors.ReferenceProblem
        When a name means nothing, or the kernel's name is one that the cell reads.
    """
    from llmkernel.evaluation.tools import chosen_tools

    namespace = ipython.user_ns
    reference = resolve_callable(namespace, options.reference, "reference")
    inputs = collect_inputs(namespace, reference, options.reference, options.inputs)
    baselines = {name: resolve_callable(namespace, name, "baseline") for name in options.baseline}
    used = {options.reference.partition(".")[0], *inputs, *(b.partition(".")[0] for b in options.baseline)}
    if options.name in used:
        raise UsageError(
            f"The name {options.name} would replace what this cell reads.",
            rule="The kernel has a name of its own, so that the cell can run again.",
            received=options.name,
            next_step=f"Choose another, such as {options.reference.rpartition('.')[2]}_cuda.",
        )
    arguments = {
        "inputs": inputs,
        "name": options.name,
        "device": options.device,
        "arch": options.arch,
        "tolerance": options.tolerance,
        "shapes": options.shapes,
        "baselines": baselines or None,
        "checks": chosen_tools([c.strip() for c in (options.checks or "").split(",") if c.strip()]),
        "records_dir": notebook_directory(ipython) / Path(config.records_dir).expanduser(),
    }
    return Job(reference, arguments)
