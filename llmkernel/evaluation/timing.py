"""Timing a candidate that passed: in turn with its baselines, and checked again on the timed launches.

The rules and their sources: docs/guide/measuring.md.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llmkernel.devices.base import Bytes
from llmkernel.errors import LaunchError, LLMKernelError
from llmkernel.evaluation.binding import prepare
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.report import Measurement, Timing
from llmkernel.evaluation.statistics import measurement, ratio_interval, relative_error_of_median
from llmkernel.evaluation.timed_outputs import check_timed_outputs
from llmkernel.evaluation.worker.client import WorkerLostError, WorkerPool
from llmkernel.problem.arrays import is_array, kind_of
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.workloads import Workload, draw_inputs, new_seed

if TYPE_CHECKING:
    from llmkernel.evaluation.judge import Judge

BASELINES = WorkerPool(is_baseline=True)
DRAWS = 8
DRAW_BYTES = 1 << 30
TURN = 5
LEAST_TURNS = 10
LEAST_SLOW_TURNS = 4
SECONDS = 3.0
RELATIVE_ERROR = 0.005
FASTER = 1.03
SUSPECT = 1.05
REQUEST_SECONDS = 300.0
EMULATED_SAMPLES = 5
PROGRESS_SECONDS = 0.2


Listener = Callable[[tuple[Measurement, ...]], None]


class Progress:
    """Tells a listener what was measured so far, a few times a second.

    Parameters
    ----------
    listener : callable or None
    clock : callable
        Seconds, rising.
    """

    def __init__(self, listener: Listener | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener = listener
        self._clock = clock
        self._told_at: float | None = None
        self._done: list[Measurement] = []

    def __call__(
        self, kernel: Measurement | Sequence[float], label: str = "", row: Sequence[float] = ()
    ) -> None:
        """Take the kernel's samples so far, and those of the baseline that is being timed."""
        now = self._clock()
        if self._listener is None or (self._told_at is not None and now - self._told_at < PROGRESS_SECONDS):
            return
        self._told_at = now
        mine = kernel if isinstance(kernel, Measurement) else measurement("this kernel", kernel)
        running = (measurement(label, row),) if row else ()
        self._listener((mine, *self._done, *running))

    def finish(self, row: Measurement) -> None:
        """Keep the row of a baseline that is done."""
        self._done.append(row)


def time_candidate(
    judge: Judge,
    problem: Problem,
    baselines: dict[str, Callable[..., Any]],
    on_samples: Listener | None = None,
) -> tuple[Finding | None, Timing | None]:
    """Time the judge's candidate at the user's sizes; `on_samples` hears the rows while samples arrive.

    Returns
    -------
    finding : Finding or None
        When a timed launch gave a wrong result, or the worker was lost: the candidate has not passed.
    timing : Timing or None
    """
    assert judge.session is not None
    assert judge.candidate is not None
    limits = judge.session.limits()
    workload = Workload(dict(problem.sizes), "normal", new_seed(), is_users_own=True)
    draws = draws_for_timing(problem, judge.device)
    prepared = [prepare(judge.candidate, d, limits) for d in draws]
    plan = prepared[0].plan
    if not plan.launches:
        return None, None
    names = list(prepared[0].payloads)
    blobs = [p.payloads[n] for p in prepared for n in names]
    module = judge.session.ensure_compiled()
    header = {"op": "time_open", "module": module.number, "plan": plan.to_dict(), "inputs": names}
    ask = judge.session.worker.request
    progress = Progress(on_samples)
    try:
        ask(header, blobs, timeout=REQUEST_SECONDS)
        if judge.device == "cpu":
            timing = _emulated(judge, problem, progress)
        else:
            timing = _on_gpu(judge, problem, draws, baselines, progress)
        answer, outputs = ask({"op": "time_outputs"}, timeout=REQUEST_SECONDS)
        ask({"op": "time_close"}, timeout=REQUEST_SECONDS)
    except WorkerLostError as lost:
        if lost.is_interference:
            raise
        return Finding(
            "crashed", f"The worker was lost while it timed the kernel: {lost.fault.message}"
        ), None
    except LaunchError as error:
        return Finding("launch_failed", f"{error.what} {error.received or ''}".strip()), None
    finding = check_timed_outputs(problem, judge.candidate, limits, workload, draws, answer, outputs)
    if finding is not None:
        return finding, None
    return None, replace(timing, workload=workload.label())


def draws_for_timing(problem: Problem, device: str) -> list[list[HostInput]]:
    """Return inputs at the user's sizes, several draws of them so that no sample finds its own in a cache."""
    own = problem.host_inputs()
    nbytes = sum(v.nbytes for v in own if isinstance(v, np.ndarray))
    count = 2 if device == "cpu" else max(2, min(DRAWS, DRAW_BYTES // max(1, nbytes)))
    try:
        draws = [draw_inputs(problem, dict(problem.sizes), "normal", seed=new_seed()) for _ in range(count)]
        problem.run_reference(draws[0])
    except LLMKernelError:
        # Values that the reference refuses: the user's own are timed.
        return [own, own]
    return draws


def _emulated(judge: Judge, problem: Problem, progress: Progress) -> Timing:
    assert judge.session is not None
    own = problem.host_inputs()
    answer, _ = judge.session.worker.request(
        {"op": "time_sample", "count": EMULATED_SAMPLES}, timeout=REQUEST_SECONDS
    )
    kernel = measurement("this kernel, emulated", answer["ms"])
    samples: list[float] = []
    for _ in range(EMULATED_SAMPLES):
        progress(kernel, "reference on this CPU", samples)
        started = time.perf_counter()
        problem.run_reference(own)
        samples.append(1e3 * (time.perf_counter() - started))
    return Timing(
        is_emulation=True,
        kernel=kernel,
        baselines=(measurement("reference on this CPU", samples),),
        bytes_moved=bytes_moved(problem),
        claim="Emulated on the CPU: this says nothing about speed on a GPU.",
    )


def _on_gpu(
    judge: Judge,
    problem: Problem,
    draws: list[list[Any]],
    baselines: dict[str, Callable[..., Any]],
    progress: Progress,
) -> Timing:
    assert judge.session is not None
    session = judge.session

    failures: list[Exception] = []

    def kernel_turn() -> list[float]:
        try:
            answer, _ = session.worker.request({"op": "time_sample", "count": TURN}, timeout=REQUEST_SECONDS)
        except (WorkerLostError, LLMKernelError) as error:
            failures.append(error)  # in turn with a baseline, it must not be taken for the baseline's
            raise
        return list(answer["ms"])

    kernel_turn()  # warm-up: lazy loading and clocks
    mine: list[float] = []
    rows: list[Measurement] = []
    requests, left_out = _baseline_requests(problem, draws, baselines)
    for label, header, blobs in requests:
        row = _against(label, header, blobs, kernel_turn, mine, progress)
        if failures:
            raise failures.pop()
        if isinstance(row, Measurement):
            rows.append(row)
            progress.finish(row)
        else:
            left_out[label] = row
    judge.warnings += [f"Not timed: {label}: {reason}" for label, reason in left_out.items()]
    started = time.monotonic()
    while len(mine) < TURN * LEAST_TURNS or (
        relative_error_of_median(mine) > RELATIVE_ERROR and time.monotonic() - started < SECONDS
    ):
        mine += kernel_turn()
        progress(mine)
    kernel = measurement("this kernel", mine)
    dtypes = sorted({s.dtype for s in problem.signature.arrays()})
    answer, _ = session.worker.request({"op": "roofline", "dtypes": dtypes}, timeout=REQUEST_SECONDS)
    return _summary(problem, kernel, rows, answer["roofline"], session.versions(), draws[0])


def _against(
    label: str,
    header: dict[str, Any],
    blobs: list[Bytes],
    kernel_turn: Callable[[], list[float]],
    mine: list[float],
    progress: Progress,
) -> Measurement | str:
    """Time one baseline in turn with the kernel, A B B A; the reason where it cannot run."""
    worker = BASELINES.get("cuda")
    try:
        opened, _ = worker.request(header, blobs, timeout=REQUEST_SECONDS)
        first, _ = worker.request({"op": "baseline_sample", "count": 1}, timeout=REQUEST_SECONDS)
        count, least = _pace(float(first["ms"][0]))
        turn = {"op": "baseline_sample", "count": count}
        theirs: list[float] = []
        pairs: list[float] = []
        started = time.monotonic()
        while len(pairs) < least or (
            relative_error_of_median(theirs) > RELATIVE_ERROR and time.monotonic() - started < SECONDS
        ):
            a1 = kernel_turn()
            b1 = list(worker.request(turn, timeout=REQUEST_SECONDS)[0]["ms"])
            b2 = list(worker.request(turn, timeout=REQUEST_SECONDS)[0]["ms"])
            a2 = kernel_turn()
            mine += a1 + a2
            theirs += b1 + b2
            pairs += [float(np.median(b1) / np.median(a1)), float(np.median(b2) / np.median(a2))]
            progress(mine, label, theirs)  # between turns: no sample is being taken
    except (WorkerLostError, LLMKernelError) as error:
        BASELINES.discard(worker)
        return str(error).split("\n", 1)[0][:200]
    ratio, low, high = ratio_interval(pairs)
    return replace(
        measurement(label, theirs, note=str(opened.get("note", ""))),
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
    )


def _pace(first_ms: float) -> tuple[int, int]:
    """Return samples a turn and the least number of turns: a baseline of seconds is not run a hundred times."""
    if first_ms * TURN * LEAST_TURNS <= 1e3 * SECONDS:
        return TURN, LEAST_TURNS
    return 1, max(LEAST_SLOW_TURNS, min(LEAST_TURNS, int(1e3 * SECONDS / first_ms)))


def _baseline_requests(
    problem: Problem, draws: list[list[Any]], baselines: dict[str, Callable[..., Any]]
) -> tuple[list[tuple[str, dict[str, Any], list[Bytes]]], dict[str, str]]:
    """Return the requests of all baselines, and why there is none of those that cannot be sent, by label."""
    import cloudpickle

    from llmkernel.evaluation.worker.baseline import COMPILE_MODES

    blobs = [
        np.ascontiguousarray(v).reshape(-1).view(np.uint8)
        for d in draws
        for v in d
        if isinstance(v, np.ndarray)
    ]
    arguments = [
        {"dtype": dtype_name(v.dtype), "shape": list(v.shape)}
        if isinstance(v, np.ndarray)
        else {"value": v.item() if hasattr(v, "item") else v}
        for v in draws[0]
    ]
    framework = next((k for k in map(kind_of, problem.inputs) if k in ("torch", "cupy")), "numpy")
    plans: list[tuple[str, str, str, Any]] = []
    if framework == "torch":
        plans.append(("reference, eager", "torch", "eager", problem.reference))
        if _is_float32_product(problem, draws[0]):
            plans.append(("reference, eager, TF32", "torch", "eager, TF32", problem.reference))
        plans += [
            (f"torch.compile ({m})", "torch", f"torch.compile: {m}", problem.reference) for m in COMPILE_MODES
        ]
    else:
        plans.append(("reference on CuPy", "cupy", "eager", problem.reference))
        if framework == "numpy":
            plans.append(("reference, NumPy on the CPU", "numpy", "eager", problem.reference))
    for label, function in baselines.items():
        plans.append((label, framework, "eager", replace(problem.reference, function=function, fixed={})))
    out = []
    left_out = {}
    for label, kind, variant, reference in plans:
        try:
            pickled = base64.b64encode(cloudpickle.dumps(reference)).decode()
        except Exception as error:  # noqa: BLE001 - whatever pickling a user's function raises
            left_out[label] = (
                f"it cannot be sent to a process of its own ({type(error).__name__}: {str(error)[:120]})."
            )
            continue
        out.append(
            (
                label,
                {
                    "op": "baseline_open",
                    "function": pickled,
                    "framework": kind,
                    "variant": variant,
                    "arguments": arguments,
                    "draws": len(draws),
                },
                blobs,
            )
        )
    return out, left_out


def _summary(
    problem: Problem,
    kernel: Measurement,
    rows: list[Measurement],
    roofline: dict[str, Any],
    versions: dict[str, str],
    draw: list[Any],
) -> Timing:
    moved = bytes_moved(problem)
    operations = operations_of(problem, draw)
    floor_ms = None
    if roofline.get("bandwidth_bytes_per_s"):
        floor_ms = 1e3 * moved / roofline["bandwidth_bytes_per_s"]
        rate = max((r for r in roofline.get("operations_per_s", {}).values()), default=0.0)
        if operations and rate:
            floor_ms = max(floor_ms, 1e3 * operations / rate)
    fraction = floor_ms / kernel.median_ms if floor_ms is not None and kernel.median_ms else None
    suspect = fraction is not None and fraction > SUSPECT
    best = min(rows, key=lambda r: r.median_ms, default=None)
    return Timing(
        is_emulation=False,
        kernel=kernel,
        baselines=tuple(rows),
        best_baseline=best.label if best is not None else None,
        bytes_moved=moved,
        operations=operations,
        speed_of_light_ms=floor_ms,
        fraction_of_speed_of_light=fraction,
        is_suspect=suspect,
        claim=claim(best, suspect=suspect),
        device={"roofline": roofline, "versions": versions},
    )


def claim(best: Measurement | None, *, suspect: bool) -> str:
    """Return the one sentence that may be said about speed.

    Parameters
    ----------
    best : Measurement or None
        The fastest baseline.
    suspect : bool
        The kernel is faster than the measured roofline.
    """
    if suspect:
        return "Faster than the measured roofline: suspect, not a speed-up."
    if best is None or best.ratio is None or best.ratio_low is None or best.ratio_high is None:
        return ""
    interval = f"95 % interval {best.ratio_low:.2f}–{best.ratio_high:.2f}"
    if best.ratio_low > 1 and best.ratio > FASTER:
        return f"{best.ratio:.2f} × as fast as the best baseline, {best.label} ({interval})."
    if best.ratio_high < 1 and best.ratio < 1 / FASTER:
        return f"Slower than the best baseline, {best.label}: {best.ratio:.2f} × its speed ({interval})."
    return f"On a par with the best baseline, {best.label}: {best.ratio:.2f} × ({interval})."


def bytes_moved(problem: Problem) -> int:
    """Return the bytes that must move: every input read once, every result written once."""
    total = sum(v.nbytes for v in problem.host_inputs() if isinstance(v, np.ndarray))
    contract = problem.contract
    for dtype, shape in zip(contract.dtypes, contract.shapes, strict=False):
        total += DTYPES[dtype].itemsize * int(np.prod(shape, dtype=np.int64))
    for i in contract.mutated:
        value = problem.inputs[i]
        total += int(np.prod(value.shape, dtype=np.int64)) * DTYPES[dtype_name(value.dtype)].itemsize
    return int(total)


def operations_of(problem: Problem, draw: list[Any]) -> int | None:
    """Count floating-point operations of a torch reference; None where nothing counts them."""
    if not any(kind_of(v) == "torch" for v in problem.inputs if is_array(v)):
        return None
    from torch.utils.flop_counter import FlopCounterMode

    try:
        with FlopCounterMode(display=False) as counter:
            problem.run_reference(draw)
    except Exception:  # noqa: BLE001 - a counter that stumbles over an operator only costs the figure
        return None
    return int(counter.get_total_flops()) or None


def _is_float32_product(problem: Problem, draw: list[Any]) -> bool:
    is_float32 = any(s.dtype == "float32" for s in problem.signature.arrays())
    return is_float32 and bool(operations_of(problem, draw))
