"""What a device allows of one launch, checked before anything reaches the driver."""

from __future__ import annotations

from typing import NoReturn

from llmkernel.candidate.parameters import KernelDeclaration
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import KernelLaunch
from llmkernel.errors import LaunchError


def launch_error(what: str, line: int, rule: str, received: str, next_step: str | None = None) -> NoReturn:
    """Raise a LaunchError with the header's line."""
    raise LaunchError(
        what,
        line=line,
        rule=rule,
        received=f"{received} (line {line} of the file)",
        next_step=next_step or "Change the launch, or choose another branch for such arguments.",
    )


def check_limits(launch: KernelLaunch, kernel: KernelDeclaration, limits: DeviceLimits) -> None:
    """Check grid, block, shared memory, cluster and cooperation.

    Raises
    ------
    llmkernel.errors.LaunchError
        Saying the axis, the value and the limit.
    """
    name = launch.kernel
    for what, sizes, maxima in (
        ("grid", launch.grid, limits.max_grid),
        ("block", launch.block, limits.max_block),
    ):
        for axis, size, maximum in zip("xyz", sizes, maxima, strict=True):
            if not 1 <= size <= maximum:
                launch_error(
                    f"{what}.{axis} of `{name}` is {size}, the limit is {maximum}.",
                    launch.line,
                    f"{limits.name}: {what}.{axis} is 1 to {maximum}",
                    f"{what} {sizes}",
                )
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > limits.max_threads_per_block:
        launch_error(
            f"A block of `{name}` has {threads} threads, the limit is {limits.max_threads_per_block}.",
            launch.line,
            f"{limits.name}: at most {limits.max_threads_per_block} threads a block",
            f"block {launch.block}",
        )
    if kernel.max_threads is not None and threads > kernel.max_threads:
        launch_error(
            f"A block of `{name}` has {threads} threads, its __launch_bounds__ says {kernel.max_threads}.",
            launch.line,
            f"line {kernel.line} declares `__launch_bounds__({kernel.max_threads})`",
            f"block {launch.block}",
            "Make both agree.",
        )
    if not 0 <= launch.shared_bytes <= limits.max_shared_bytes:
        launch_error(
            f"`{name}` asks for {launch.shared_bytes} bytes of shared memory, "
            f"the limit is {limits.max_shared_bytes}.",
            launch.line,
            f"{limits.name}: 0 to {limits.max_shared_bytes} bytes a block, static and dynamic together",
            f"{launch.shared_bytes} bytes",
        )
    if launch.is_cooperative and not limits.supports_cooperative:
        launch_error(
            f"`{name}` is a cooperative launch, which {limits.name} does not support.",
            launch.line,
            f"{limits.name}: no cooperative launches",
            "cooperative",
        )
    _check_cluster(launch, limits)


def _check_cluster(launch: KernelLaunch, limits: DeviceLimits) -> None:
    if launch.cluster is None:
        return
    blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    if not 1 <= blocks <= limits.max_cluster_size:
        launch_error(
            f"A cluster of `{launch.kernel}` has {blocks} blocks, the limit is {limits.max_cluster_size}.",
            launch.line,
            f"{limits.name}: 1 to {limits.max_cluster_size} blocks a cluster",
            f"cluster {launch.cluster}",
        )
    for axis, size, cluster in zip("xyz", launch.grid, launch.cluster, strict=True):
        if size % cluster:
            launch_error(
                f"grid.{axis} of `{launch.kernel}` is {size}, no multiple of cluster.{axis} = {cluster}.",
                launch.line,
                "a grid is a whole number of clusters on every axis",
                f"grid {launch.grid}, cluster {launch.cluster}",
                f"Write `{cluster} * ceil_div(…, {cluster})`.",
            )
