"""What an accepted kernel becomes in the notebook's own process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmkernel.candidate.domain import VerifiedDomain
from llmkernel.devices.cuda.results import ConvertedResults
from llmkernel.errors import UsageError


def make_caller(candidate: Any, domain: VerifiedDomain, ordinal: int = 0) -> Callable[..., Any]:
    """Return the callable for where the verified arrays live.

    Parameters
    ----------
    candidate : llmkernel.candidate.candidate.Candidate
    domain : VerifiedDomain
    ordinal : int
        The GPU that computes for arrays in host memory; arrays on a GPU are used where they are.

    Raises
    ------
    llmkernel.errors.UsageError
        Arrays of different kinds, or some on the GPU and some not.
    """
    places: set[tuple[str, bool]] = {(a.kind, a.is_on_gpu) for a in domain.arguments if a.kind != "scalar"}
    if not places:
        places = {(domain.result_kind, domain.is_result_on_gpu)}
    if len(places) > 1:
        text = ", ".join(sorted(f"{kind} on the {'GPU' if gpu else 'CPU'}" for kind, gpu in places))
        raise UsageError(
            "A kernel's arrays must all be of one kind and in one place.",
            received=text,
            next_step="Convert the example's arrays before generating the kernel.",
        )
    kind, is_on_gpu = places.pop()
    call: Callable[..., Any]
    native = {(kind, is_on_gpu)}
    if kind == "cupy":
        from llmkernel.devices.cuda.cupy_caller import CupyCaller

        call = CupyCaller(candidate, domain)
    elif kind == "torch" and is_on_gpu:
        from llmkernel.devices.cuda.torch_caller import TorchCaller

        call = TorchCaller(candidate, domain)
    else:
        from llmkernel.devices.cuda.staged_caller import StagedCaller

        call = StagedCaller(candidate, domain, ordinal)
        native = {("numpy", False), ("torch", False), ("scalar", False)}
    if (domain.result_kind, domain.is_result_on_gpu) in native:
        return call
    return ConvertedResults(call, domain.result_kind, is_on_gpu=domain.is_result_on_gpu)
