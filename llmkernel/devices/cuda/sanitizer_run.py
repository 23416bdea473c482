"""`python -m llmkernel.devices.cuda.sanitizer_run FOLDER`: one plan, run once under compute-sanitizer.

Every buffer is an allocation of its own and of its exact size, so that memcheck sees the first byte beyond it; outputs and
scratch are left as they come, so that initcheck sees them read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from llmkernel.devices.cuda import compiler
from llmkernel.devices.cuda.device import CudaDevice
from llmkernel.devices.cuda.launcher import PreparedPlan, buffer_bytes
from llmkernel.devices.cuda.tool_process import confine, read_job

MARK = "llmkernel-buffer"
# Small allocations come out of one piece of memory, side by side.
_SPACER_BYTES = 256 << 10


def main(folder: Path) -> None:
    """Run the job in `folder`: ``job.json`` and one ``NAME.bin`` for each input."""
    confine(folder)
    source, plan = read_job(folder)
    device = CudaDevice()
    compiled = compiler.compile_cached(source, tuple(plan.kernels()), device.limits().arch)
    device.warm_up()
    driver = device.driver
    functions = compiler.load_fresh(driver, compiled.binary).functions
    addresses, spacers = [], []
    for buffer in plan.buffers:
        address = driver.allocate(max(1, buffer_bytes(buffer)))
        addresses.append(address)
        spacers.append(driver.allocate(_SPACER_BYTES))
        print(f"{MARK} {buffer.name} {address} {buffer_bytes(buffer)}", flush=True)  # noqa: T201 - read by the parent
        if buffer.role in ("input", "inout"):
            payload = (folder / f"{buffer.name}.bin").read_bytes()
            if payload:
                driver.call("cuMemcpyHtoDAsync_v2", address, payload, len(payload), None)
                driver.call("cuCtxSynchronize")  # `payload` is let go of in the next turn
    # Freed only now: what lies between two arrays then belongs to nobody.
    for spacer in spacers:
        driver.call("cuMemFree_v2", spacer)
    PreparedPlan(driver, functions, plan, device.limits()).launch(addresses, 0)
    driver.call("cuCtxSynchronize")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
