"""Asking a worker about one candidate, with everything that may go wrong turned into data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from llmkernel.devices.base import Bytes, DeviceLimits, ExecutionOptions, Fault
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.worker.client import POOL, Worker, WorkerLostError
from llmkernel.evaluation.worker.harness import DrawResult

T = TypeVar("T")

COMPILE_SECONDS = 120.0
# The device ends a run at its own limit; the notebook waits a little longer before it ends the worker.
GRACE_SECONDS = 5.0
# What someone killed is asked again this often before the verdict is that nothing can be said.
KILLS_FORGIVEN = 2


@dataclass(frozen=True)
class Compiled:
    """A compiled candidate inside the worker."""

    number: int
    data: dict[str, Any]


class Session:
    """One candidate in one worker.

    Parameters
    ----------
    device : str
    timeout : float
        Seconds that one execution may take.
    worker : Worker, optional
        Default: the pool's.
    """

    def __init__(self, device: str, timeout: float, worker: Worker | None = None) -> None:
        self.device = device
        self.timeout = timeout
        self.worker: Worker = POOL.get(device) if worker is None else worker
        self._module: tuple[str, tuple[str, ...], str | None] | None = None
        self._compiled: Compiled | None = None
        self._is_given_up = False

    def limits(self) -> DeviceLimits:
        """Return the device's limits."""
        return self.worker.limits()

    def versions(self) -> dict[str, str]:
        """Return the device's versions."""
        return dict(self.worker.hello()["versions"])

    def sandbox(self) -> dict[str, Any]:
        """Return what holds the worker: its ``parts``, and what is ``missing`` on this system, in sentences."""
        return self.worker.sandbox()

    def compile(self, source: str, kernels: Sequence[str], arch: str | None = None) -> Compiled:
        """Compile; the device's errors are raised."""
        self._module = (source, tuple(kernels), arch)
        header = {"op": "compile", "source": source, "kernels": list(kernels), "arch": arch}
        answer, _ = self.forgiving_kills(lambda: self.worker.request(header, timeout=COMPILE_SECONDS))
        self._compiled = Compiled(answer["module"], answer)
        return self._compiled

    def ensure_compiled(self) -> Compiled:
        """Return the compiled candidate, compiling it again in a worker that replaced a lost one."""
        if self._compiled is None:
            assert self._module is not None
            self.compile(*self._module)
        assert self._compiled is not None
        return self._compiled

    def draw(
        self,
        plan: LaunchPlan,
        inputs: Mapping[str, Bytes],
        *,
        repeats: int,
        seed: int,
        options: ExecutionOptions,
        misalign: Mapping[str, int] | None = None,
    ) -> DrawResult:
        """Run one draw; a lost worker becomes a fault and is replaced by the spare."""
        header = {
            "op": "draw",
            "plan": plan.to_dict(),
            "inputs": list(inputs),
            "repeats": repeats,
            "seed": seed,
            "options": asdict(options),
            "misalign": dict(misalign or {}),
        }
        limit = options.timeout_seconds * (repeats + 1) + GRACE_SECONDS
        try:
            answer, blobs = self._run(header, list(inputs.values()), limit)
        except WorkerLostError as lost:
            return DrawResult(fault=lost.fault)
        result = _as_result(answer, blobs)
        self._after(result.fault)
        return result

    def sequence(
        self,
        plan: LaunchPlan,
        draws: Sequence[Mapping[str, Bytes]],
        *,
        seed: int,
        options: ExecutionOptions,
        repeats: Sequence[int] = (),
    ) -> list[DrawResult]:
        """Run draws of equal sizes one after the other.

        Parameters
        ----------
        repeats : sequence of int
            How often each runs over one fresh load of the module. Without it each runs once, in the same buffers: outputs
            and scratch hold what the draw before left there.

        Returns
        -------
        list of DrawResult
            One a draw; a single one that holds the fault after a fault.
        """
        names = list(draws[0])
        header = {
            "op": "sequence",
            "plan": plan.to_dict(),
            "inputs": names,
            "draws": len(draws),
            "repeats": list(repeats),
            "seed": seed,
            "options": asdict(options),
        }
        limit = options.timeout_seconds * ((sum(repeats) or len(draws)) + 1) + GRACE_SECONDS
        try:
            answer, blobs = self._run(header, [d[n] for d in draws for n in names], limit)
        except WorkerLostError as lost:
            return [DrawResult(fault=lost.fault)]
        results, at = [], 0
        for part in answer["results"]:
            count = part.pop("blobs")
            results.append(_as_result(part, blobs[at : at + count]))
            at += count
        self._after(results[0].fault)
        return results

    def _run(
        self, header: dict[str, Any], blobs: list[Bytes], limit: float
    ) -> tuple[dict[str, Any], list[Bytes]]:
        """Ask for a run; a lost worker is replaced, and what someone killed is asked for again."""

        def run() -> tuple[dict[str, Any], list[Bytes]]:
            module = self.ensure_compiled().number
            return self.worker.request({**header, "module": module}, blobs, timeout=limit)

        for _ in range(KILLS_FORGIVEN + 1):
            answer, back = self.forgiving_kills(run)
            # Someone may also have ended the run alone, and left the worker.
            if (answer["fault"] or {}).get("kind") != "killed":
                break
        return answer, back

    def forgiving_kills(self, ask: Callable[[], T]) -> T:
        """Return `ask()`; where someone else ended the worker, it is replaced and asked again.

        Raises
        ------
        WorkerLostError
            It was lost for another reason, or once too often; it is replaced.
        """
        for _ in range(KILLS_FORGIVEN):
            try:
                return ask()
            except WorkerLostError as lost:
                if self._is_given_up:
                    raise
                self.replace()
                if not lost.is_interference:
                    raise
        try:
            return ask()
        except WorkerLostError:
            self.replace()
            raise

    def _after(self, fault: Fault | None) -> None:
        if fault is not None and fault.details.get("is_context_lost"):
            self.replace()

    def occupancy(self, plan: LaunchPlan) -> dict[str, float]:
        """Return the occupancy that `plan` gives its kernels, 0 to 1; empty where the device has none."""
        header = {"op": "occupancy", "module": self.ensure_compiled().number, "plan": plan.to_dict()}
        try:
            answer, _ = self.worker.request(header, timeout=GRACE_SECONDS)
        except WorkerLostError:
            self.replace()
            return {}
        except LLMKernelError:
            return {}
        return dict(answer["occupancy"])

    def give_up(self) -> None:
        """End the worker; who is waiting for it in another thread gets `WorkerLostError` and asks nobody else."""
        self._is_given_up = True
        POOL.discard(self.worker)

    def replace(self) -> None:
        """Take the spare; the candidate is compiled again when the next draw needs it."""
        POOL.discard(self.worker)
        self.worker = POOL.get(self.device)
        self._compiled = None


_DRAW_FIELDS = ("elapsed_ms", "guards", "mutated", "unwritten", "differs", "depends_on_poison", "printed")


def _as_result(answer: dict[str, Any], blobs: list[Bytes]) -> DrawResult:
    finals, others, fault = answer["finals"], answer["others"], answer["fault"]
    count = len(blobs) - len(finals) - len(others)
    return DrawResult(
        results=blobs[:count],
        finals=dict(zip(finals, blobs[count:], strict=False)),
        others=dict(zip(others, blobs[count + len(finals) :], strict=True)),
        fault=None if fault is None else Fault(**fault),
        **{k: answer[k] for k in _DRAW_FIELDS},
    )
