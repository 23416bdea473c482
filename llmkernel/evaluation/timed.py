"""One candidate, compiled and ready to be timed in one worker."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.binding import Prepared, prepare
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.session import COMPILE_SECONDS, GRACE_SECONDS
from llmkernel.evaluation.timed_outputs import check_timed_outputs
from llmkernel.evaluation.timing import REQUEST_SECONDS, TURN
from llmkernel.evaluation.worker.client import Worker, WorkerLostError
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.workloads import Workload, new_seed

Draws = Sequence[Sequence[HostInput]]


class TimedKernel:
    """A candidate that a worker has compiled and holds ready over several draws; a context manager.

    Parameters
    ----------
    worker : Worker
        Times nothing else meanwhile.
    source : str
    draws : sequence of sequence
        Host inputs, each draw at the same sizes.
    arch : str, optional
        Architecture to compile for.

    Attributes
    ----------
    plan : LaunchPlan
    resources : dict
        What the compiler says of each kernel; NVRTC's on the `cpu` device, where it is installed.
    arch : str
        What `resources` are of.

    Raises
    ------
    llmkernel.errors.LLMKernelError
        When it does not compile or bind.
    """

    def __init__(self, worker: Worker, source: str, draws: Draws, *, arch: str | None = None) -> None:
        self._worker = worker
        self._draws = [list(d) for d in draws]
        self._candidate, self._limits = parse_candidate(source), worker.limits()
        prepared = [prepare(self._candidate, d, self._limits) for d in self._draws]
        self.plan = prepared[0].plan
        kernels = list(self.plan.kernels())
        answer, _ = worker.request(
            {"op": "compile", "source": source, "kernels": kernels, "arch": arch}, timeout=COMPILE_SECONDS
        )
        self._module = answer["module"]
        checked: Mapping[str, Any] | None = answer["nvrtc"]
        self.resources: dict[str, Any] = dict(checked["resources"] if checked else answer["resources"])
        self.arch = (
            f"the host, and checked by NVRTC for {checked['arch']}" if checked else arch or self._limits.arch
        )
        self._waiting: list[Prepared] | None = prepared

    def turn(self, count: int = TURN) -> list[float]:
        """Take `count` samples and return milliseconds, a fresh draw and a cold cache for each."""
        if self._waiting is not None:
            self._open(self._waiting)
            self._waiting = None
        answer, _ = self._worker.request({"op": "time_sample", "count": count}, timeout=REQUEST_SECONDS)
        return list(answer["ms"])

    def resources_with_occupancy(self) -> dict[str, Any]:
        """Return `resources` with the occupancy that the plan gives, 0 to 1, where the device has one."""
        header = {"op": "occupancy", "module": self._module, "plan": self.plan.to_dict()}
        answer, _ = self._worker.request(header, timeout=GRACE_SECONDS)
        found = answer["occupancy"]
        return {k: {**v, "occupancy": found.get(k, v.get("occupancy"))} for k, v in self.resources.items()}

    def check(self, problem: Problem) -> Finding | None:
        """Judge the results of some of the launches of the last turn; None where they are right."""
        answer, blobs = self._worker.request({"op": "time_outputs"}, timeout=REQUEST_SECONDS)
        workload = Workload(dict(problem.sizes), "normal", new_seed(), is_users_own=True)
        return check_timed_outputs(
            problem, self._candidate, self._limits, workload, self._draws, answer, blobs
        )

    def _open(self, prepared: list[Prepared]) -> None:
        names = list(prepared[0].payloads)
        header = {"op": "time_open", "module": self._module, "plan": self.plan.to_dict(), "inputs": names}
        blobs = [p.payloads[n] for p in prepared for n in names]
        self._worker.request(header, blobs, timeout=REQUEST_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(WorkerLostError, LLMKernelError):
            self._worker.request({"op": "time_close"}, timeout=REQUEST_SECONDS)
