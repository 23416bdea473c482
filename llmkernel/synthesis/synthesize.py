"""`synthesize`: from a reference and an intent to an accepted kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.errors import LLMKernelError, RecordError, UsageError
from llmkernel.evaluation.evaluate import DEFAULT_TIMEOUT, choose_device
from llmkernel.evaluation.settings import check_settings
from llmkernel.evaluation.steadiness import require_steady
from llmkernel.evaluation.worker.client import POOL
from llmkernel.problem.problem import Problem, make_problem
from llmkernel.problem.reference import make_reference, reference_from_names
from llmkernel.prompts.build import build_request, system_prompt
from llmkernel.providers.base import Request
from llmkernel.providers.registry import get_provider
from llmkernel.records.store import RecordStore
from llmkernel.synthesis.events import Accepted, SynthesisEvent
from llmkernel.synthesis.generated_kernel import GeneratedKernel
from llmkernel.synthesis.loop import Loop, LoopOptions
from llmkernel.synthesis.replay import find_record, recorded_problem, save
from llmkernel.synthesis.replay import replay as replay_record

REPLAY_MODES = ("auto", "only", "never")


def synthesize(
    reference: Callable[..., Any],
    intent: str,
    *,
    inputs: Sequence[Any] | Mapping[str, Any],
    name: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    effort: str | None = None,
    device: str = "auto",
    arch: str | None = None,
    attempts: int = 4,
    max_tokens: int | None = None,
    target: float | None = None,
    tolerance: float | None = None,
    shapes: Sequence[Mapping[str, int]] | None = None,
    baselines: Mapping[str, Callable[..., Any]] | None = None,
    checks: Sequence[str] = (),
    replay: str = "auto",
    records_dir: str | Path | None = None,
    notebook: str | Path | None = None,
    timeout: float | None = None,
    budget_usd: float | None = None,
    config: Any = None,
    on_event: Callable[[SynthesisEvent], None] | None = None,
) -> GeneratedKernel:
    """Return a verified kernel that computes what `reference` computes.

    Parameters
    ----------
    reference : callable
        Function, lambda, method or `torch.nn.Module` instance over NumPy, CuPy or torch arrays.
    intent : str
        What matters, in any language; sent verbatim.
    inputs : sequence or mapping
        Example arguments, in order or by parameter name.
    name : str, optional
        Name of the kernel; default: the reference's with ``_cuda``.
    provider, model, effort : str, optional
        Default: the configured provider, else the first with a key, else the offline library.
    device : str
        ``auto``, ``cuda`` or ``cpu``.
    arch : str, optional
        Architecture to compile for, such as ``sm_90a``.
    attempts : int
        Rounds before giving up.
    max_tokens : int, optional
        Limit of one reply.
    target : float, optional
        Speed-up over the best baseline at which to stop; default: the first candidate that passes.
    tolerance : float, optional
        Relative tolerance in place of the derived one.
    shapes : sequence of mapping, optional
        Further workloads: sizes by symbol.
    baselines : mapping, optional
        Further callables to be timed against, by label.
    checks : sequence of str
        Tools to run besides: ``memcheck``, ``initcheck``, ``racecheck``, ``synccheck`` or ``all``.
    replay : str
        ``auto``: use a record that fits; ``only``: never ask a provider; ``never``: ask even so.
    records_dir : path, optional
        Where records are kept; default: no records.
    notebook : path, optional
        A notebook whose outputs may hold the record.
    timeout : float, optional
        Wall-clock limit of the whole call in seconds; one execution may take 20 s at most.
    budget_usd : float, optional
        No request is sent once this much was spent.
    config : object, optional
        Provider settings, as `llmkernel.providers.registry.get_provider` takes them.
    on_event : callable, optional
        Receives every `llmkernel.synthesis.events` event.

    Returns
    -------
    GeneratedKernel

    Raises
    ------
    llmkernel.errors.ReferenceProblem, llmkernel.errors.UsageError
        Before anything is sent.
    llmkernel.errors.DeviceUnavailableError
        Before anything is sent.
    llmkernel.errors.ProviderError
        The provider failed; one class for each kind of failure.
    llmkernel.errors.NotAcceptedError
        No candidate was accepted; carries all attempts.
    """
    _check(intent, attempts, replay)
    check_settings(timeout=timeout, tolerance=tolerance, arch=arch)
    emit = on_event or (lambda _: None)
    chosen = choose_device(device)
    problem = problem_of(reference, intent, inputs, name, tolerance, shapes)
    options = LoopOptions(
        attempts=attempts,
        model=model,
        effort=effort,
        max_tokens=max_tokens,
        target=target,
        timeout=min(DEFAULT_TIMEOUT, timeout or DEFAULT_TIMEOUT),
        total_seconds=timeout,
        budget_usd=budget_usd,
        notebook_budget_usd=getattr(config, "notebook_budget_usd", None),
        token_budget=getattr(config, "token_budget", None),
        arch=arch,
        baselines=dict(baselines or {}),
        checks=checks,
    )
    store = RecordStore(records_dir) if records_dir is not None else None
    if store is not None and replay != "never":
        stored = find_record(
            store,
            recorded_problem(problem).key,
            problem,
            provider=provider,
            model=model,
            notebook=None if notebook is None else Path(notebook),
        )
        if stored is not None:
            return replay_record(store, stored, problem, chosen, options, emit)
    if replay == "only":
        raise RecordError(
            f"There is no record for {problem.name}.",
            rule="--replay only never asks a provider",
            received=f"records in {records_dir}" if records_dir is not None else "no directory of records",
            next_step="Check that reference, intent and inputs are unchanged, or leave --replay out.",
        )
    return _generate(problem, chosen, options, provider, config, store, emit)


def _generate(
    problem: Problem,
    device: str,
    options: LoopOptions,
    provider: str | None,
    config: Any,
    store: RecordStore | None,
    emit: Callable[[SynthesisEvent], None],
) -> GeneratedKernel:
    require_steady(problem)
    source_of_replies = get_provider(provider, model=options.model, config=config)
    limits = POOL.get(device).limits()
    result = Loop(problem, source_of_replies, device, limits, options, emit).run()
    report, source = result.accepted.report, result.accepted.source
    assert report is not None
    assert source is not None
    kernel = GeneratedKernel(problem, parse_candidate(source), report, device)
    if store is not None:
        warning = save(
            store,
            problem,
            kernel,
            result,
            provider=source_of_replies.name,
            system=system_prompt(),
            device=device,
        )
        if warning is not None:
            kernel.report = replace(report, warnings=(*report.warnings, warning))
    if not source_of_replies.is_offline:
        _keep_in_library(problem, source)
    origin = "library" if source_of_replies.name == "library" else "generated"
    reply = result.accepted.reply
    details = dict(reply.details) if reply is not None else {}
    emit(Accepted(kernel.report, origin, result.usage, result.cost_usd, details))
    return kernel


def _keep_in_library(problem: Problem, source: str) -> None:
    """Let other notebooks find an accepted kernel without a provider, where the user's library can be written."""
    from llmkernel.library.user import add_to_user_library

    with contextlib.suppress(OSError, LLMKernelError):
        add_to_user_library(problem, source)


def preview(
    reference: Callable[..., Any],
    intent: str,
    *,
    inputs: Sequence[Any] | Mapping[str, Any],
    name: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    effort: str | None = None,
    device: str = "auto",
    max_tokens: int | None = None,
    tolerance: float | None = None,
    shapes: Sequence[Mapping[str, int]] | None = None,
    config: Any = None,
    **_ignored: Any,
) -> Request:
    """Return exactly what `synthesize` would send first; sends nothing.

    Takes the arguments of `synthesize`.
    """
    del provider, config
    problem = problem_of(reference, intent, inputs, name, tolerance, shapes)
    limits = POOL.get(choose_device(device)).limits()
    return build_request(problem, limits=limits, model=model, effort=effort, max_tokens=max_tokens)


def problem_of(
    reference: Callable[..., Any],
    intent: str,
    inputs: Sequence[Any] | Mapping[str, Any],
    name: str | None,
    tolerance: float | None,
    shapes: Sequence[Mapping[str, int]] | None,
) -> Problem:
    """Make the problem of a call of `synthesize`."""
    if isinstance(inputs, Mapping):
        made, values = reference_from_names(reference, dict(inputs))
    else:
        made, values = make_reference(reference, inputs)
    problem = make_problem(
        made,
        values,
        intent=intent,
        name=name or f"{made.name}_cuda",
        tolerance=tolerance,
    )
    problem.extra_sizes = tuple(_sizes(problem, s) for s in shapes or ())
    return problem


def _sizes(problem: Problem, wanted: Mapping[str, int]) -> dict[str, int]:
    unknown = [k for k in wanted if k not in problem.sizes]
    if unknown:
        raise UsageError(
            f"There is no dimension {unknown[0]!r}.",
            rule=f"the signature is {problem.signature}",
            received=", ".join(f"{k}={v}" for k, v in wanted.items()),
            next_step="Use the signature's dimensions: " + (", ".join(problem.sizes) or "it has none") + ".",
        )
    return {**problem.sizes, **{k: int(v) for k, v in wanted.items()}}


def _check(intent: str, attempts: int, replay: str) -> None:
    if not isinstance(intent, str) or not intent.strip():
        raise UsageError(
            "The intent is empty.",
            rule="the intent says what the kernel should do",
            received=repr(intent)[:60],
            next_step="Write one sentence.",
        )
    if attempts < 1:
        raise UsageError(
            "There must be at least one attempt.",
            rule="attempts ≥ 1",
            received=str(attempts),
            next_step="Use attempts=4.",
        )
    if replay not in REPLAY_MODES:
        raise UsageError(
            f"There is no replay mode {replay!r}.",
            rule="modes are " + ", ".join(REPLAY_MODES),
            received=str(replay),
            next_step="Leave it out for auto.",
        )
