"""`python -m llmkernel.devices.cuda.profile_run FOLDER`: one plan, launched once between profiler marks.

Whatever is launched before (loading, warm-up) is outside of the marks, and a profiler that heeds them does not see it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from llmkernel.devices.cuda import compiler
from llmkernel.devices.cuda.device import CudaDevice
from llmkernel.devices.cuda.driver import Driver
from llmkernel.devices.cuda.launcher import PreparedPlan, buffer_bytes
from llmkernel.devices.cuda.tool_process import confine, read_job
from llmkernel.devices.plan import LaunchPlan


def main(folder: Path) -> None:
    """Run the job in `folder`: ``job.json`` and one ``NAME.bin`` for each input."""
    confine(folder)
    source, plan = read_job(folder)
    device = CudaDevice()
    compiled = compiler.compile_cached(source, tuple(plan.kernels()), device.limits().arch)
    device.warm_up()
    driver = device.driver
    functions = compiler.load_fresh(driver, compiled.binary).functions
    addresses = [driver.allocate(max(1, buffer_bytes(buffer))) for buffer in plan.buffers]
    prepared = PreparedPlan(driver, functions, plan, device.limits())
    _upload(driver, plan, addresses, folder)
    prepared.launch(addresses, 0)
    # Arrays that the plan changes in place are as they were again.
    _upload(driver, plan, addresses, folder)
    _mark(driver, "cuProfilerStart")
    prepared.launch(addresses, 0)
    driver.call("cuCtxSynchronize")
    _mark(driver, "cuProfilerStop")


def _mark(driver: Driver, name: str) -> None:
    function = driver.optional(name)
    if function is not None:
        function()


def _upload(driver: Driver, plan: LaunchPlan, addresses: list[int], folder: Path) -> None:
    for buffer, address in zip(plan.buffers, addresses, strict=True):
        if buffer.role in ("input", "inout"):
            payload = (folder / f"{buffer.name}.bin").read_bytes()
            if payload:
                driver.call("cuMemcpyHtoDAsync_v2", address, payload, len(payload), None)
                driver.call("cuCtxSynchronize")  # `payload` is let go of in the next turn


if __name__ == "__main__":
    main(Path(sys.argv[1]))
