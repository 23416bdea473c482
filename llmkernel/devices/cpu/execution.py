"""Running a plan over one or more sets of images in one runner process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmkernel.devices.base import DeviceLimits, Execution, ExecutionOptions, Fault, Image
from llmkernel.devices.cpu.build import BuiltModule
from llmkernel.devices.cpu.faults import FaultReader
from llmkernel.devices.cpu.job import MAX_ARGUMENTS, encode_job
from llmkernel.devices.cpu.memory import BufferFile
from llmkernel.devices.cpu.process import ReportType, run_runner
from llmkernel.devices.plan import KernelLaunch, LaunchPlan
from llmkernel.errors import LaunchError

MAX_BUFFERS = 2048


def execute_in_runner(
    module: BuiltModule,
    plan: LaunchPlan,
    images_list: Sequence[Mapping[str, Image]],
    options: ExecutionOptions,
) -> list[Execution]:
    """Run `plan` once over each set of images, one after another in one loaded module.

    Every execution after a fault gets the same fault, and its images stay as they were.
    """
    if not images_list:
        return []
    try:
        buffers = BufferFile(plan, images_list)
    except (OSError, OverflowError, ValueError) as error:
        fault = Fault("out_of_memory", f"The buffers of the run do not fit into memory: {error}.")
        return [Execution(0.0, fault) for _ in images_list]
    with buffers:
        job = encode_job(module.library, plan, buffers.slots, options, options.timeout_seconds)
        result = run_runner(module.runner, job, buffers.file, options.timeout_seconds)
        reader = FaultReader(plan, buffers, module.library.read_bytes(), options.timeout_seconds)
        elapsed = {r.execution: r.elapsed_ms for r in result.reports if r.type == ReportType.DONE}
        fault = reader.read(result)
        executions = []
        for i in range(len(images_list)):
            # A forged or missing report changes nothing: what counts is the memory, read after the process is gone.
            if i not in elapsed and fault is None:
                fault = Fault("worker_died", "The run ended before it was complete.")
            own = None if i in elapsed else fault
            overrun = buffers.copy_back(i)
            if overrun is not None and own is None:
                own = reader.overrun(*overrun)
            executions.append(Execution(elapsed.get(i, 0.0), own, result.printed if i == 0 else ""))
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
            f"a block has at most {limits.max_threads_per_block} threads, and {limits.max_block} along x, y, z",
            (f"block {launch.block}"),
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
