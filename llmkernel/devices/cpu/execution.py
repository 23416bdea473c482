"""Running a plan over one or more sets of images in one runner process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from llmkernel.devices.base import DeviceLimits, Execution, ExecutionOptions, Fault, Image
from llmkernel.devices.cpu.build import BuiltModule
from llmkernel.devices.cpu.faults import FaultReader
from llmkernel.devices.cpu.job import MAX_ARGUMENTS, encode_job
from llmkernel.devices.cpu.memory import BufferFile
from llmkernel.devices.cpu.process import ReportType, run_runner
from llmkernel.devices.plan import KernelLaunch, LaunchPlan
from llmkernel.errors import LaunchError

MAX_BUFFERS = 2048
_INCOMPLETE = Fault("worker_died", "The run ended before it was complete.")


def execute_in_runner(
    module: BuiltModule,
    plan: LaunchPlan,
    runs: Sequence[Mapping[str, Image]],
    options: ExecutionOptions,
    copied_back: Collection[str] | None = None,
) -> list[Execution]:
    """Run `plan` once over each set of images, one after another in one loaded module.

    Parameters
    ----------
    copied_back : collection of str, optional
        Buffers whose images are updated; all by default.

    Returns
    -------
    list of Execution
        One for each run up to the first fault. What was printed is in the first.
    """
    if not runs:
        return []
    try:
        buffers = BufferFile(plan, runs, seed=options.seed)
    except (MemoryError, OSError) as error:
        return [
            Execution(0.0, Fault("out_of_memory", f"The buffers of the run do not fit into memory: {error}."))
        ]
    names = {buffer.name for buffer in plan.buffers} if copied_back is None else copied_back
    with buffers:
        job = encode_job(module.library, plan, buffers.slots, options)
        # Every run has the whole time, and so has loading.
        result = run_runner(module.runner, job, buffers.file, options.timeout_seconds * (len(runs) + 1))
        reader = FaultReader(plan, buffers, module.library.read_bytes(), options.timeout_seconds)
        elapsed = {r.execution: r.elapsed_ms for r in result.reports if r.type == ReportType.DONE}
        fault = reader.read(result)
        executions: list[Execution] = []
        for i in range(len(runs)):
            # Reports can be forged or missing; memory is read by this process, after the runner is gone.
            own = (
                None
                if i in elapsed
                else fault or Fault("worker_died", "The run ended before it was complete.")
            )
            overrun = buffers.copy_back(i, names)
            if overrun is not None and own is None:
                own = reader.overrun(*overrun)
            executions.append(Execution(elapsed.get(i, 0.0), own, "" if executions else result.printed))
            if own is not None:
                break
        return executions


def check_limits(plan: LaunchPlan, limits: DeviceLimits) -> None:
    """Raise `LaunchError` for the first launch that this device cannot make."""
    if len(plan.buffers) > MAX_BUFFERS:
        raise LaunchError(
            "The plan has too many buffers.", rule=f"At most {MAX_BUFFERS}.", received=str(len(plan.buffers))
        )
    for launch in plan.launches:
        problem = _problem(launch, limits)
        if problem:
            rule, received = problem
            raise LaunchError(
                f"Line {launch.line}: the launch of {launch.kernel} is not possible on the cpu device.",
                line=launch.line,
                rule=rule,
                received=received,
                next_step="Change the launch header, or guard it with `when`.",
            )


def _problem(launch: KernelLaunch, limits: DeviceLimits) -> tuple[str, str] | None:
    x, y, z = launch.block
    if x * y * z > limits.max_threads_per_block or any(
        n > most or n < 1 for n, most in zip(launch.block, limits.max_block, strict=True)
    ):
        return (
            f"a block has at most {limits.max_threads_per_block} threads, {limits.max_block} along x, y, z",
            f"block {launch.block}",
        )
    if any(n > most or n < 1 for n, most in zip(launch.grid, limits.max_grid, strict=True)):
        return f"a grid has at most {limits.max_grid} blocks along x, y, z", f"grid {launch.grid}"
    if not 0 <= launch.shared_bytes <= limits.max_shared_bytes:
        return (
            f"a block has at most {limits.max_shared_bytes} bytes of shared memory",
            f"{launch.shared_bytes} bytes",
        )
    if launch.cluster is not None and launch.cluster != (1, 1, 1):
        return "there are no thread block clusters here", f"cluster {launch.cluster}"
    if launch.is_cooperative:
        return "there are no cooperative launches here", "cooperative"
    if len(launch.arguments) > MAX_ARGUMENTS:
        return f"a kernel takes at most {MAX_ARGUMENTS} arguments", str(len(launch.arguments))
    return None
