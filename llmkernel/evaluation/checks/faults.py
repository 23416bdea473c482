"""The run ended well: no illegal address, trap, hang, deadlock or failed launch.

Reason: a launch that failed leaves the output as it was, and a checker that does not look reads garbage ("104×", wafer;
research/kernels.md item 39).
"""

from __future__ import annotations

from llmkernel.devices.base import Fault
from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding

# Blocks that the `cpu` device may have running at a time.
RUNNING_BLOCKS = 64
_OUTCOMES = {
    "illegal_address": "crashed",
    "misaligned_address": "crashed",
    "trap": "crashed",
    "stack_overflow": "crashed",
    "worker_died": "crashed",
    "timeout": "timed_out",
    "deadlock": "invalid_synchronization",
    "invalid_synchronization": "invalid_synchronization",
    "launch_failed": "launch_failed",
    "out_of_memory": "out_of_memory",
    "sandbox": "rejected",
    "killed": "inconclusive",
}


def outcome_of_fault(fault: Fault) -> str:
    """Return the outcome of a fault; an illegal address beside a known array is out of its bounds."""
    if fault.kind == "illegal_address" and (
        fault.details.get("argument") or fault.details.get("is_shared_memory")
    ):
        return "out_of_bounds"
    if is_slow_emulation(fault):
        return "inconclusive"
    return _OUTCOMES.get(fault.kind, "crashed")


def is_slow_emulation(fault: Fault) -> bool:
    """Whether blocks of an emulated launch were ending one after the other when its time was over.

    A launch that hangs has ended no block, or all but those that hang: at most as many as run at a time.
    """
    done, blocks = fault.details.get("blocks_done", 0), fault.details.get("blocks", 0)
    return fault.kind == "timeout" and done > 0 and blocks - done > RUNNING_BLOCKS


class Faults(Check):
    """Turn a fault of the device into an outcome."""

    name = "clean runs"
    covers = "no illegal address, trap, hang or failed launch"
    needs_values = False

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for a run that faulted."""
        fault = draw.result.fault if draw.result else None
        if fault is None:
            return None
        if is_slow_emulation(fault):
            return Finding(
                "inconclusive",
                f"Emulating {draw.workload.label()} takes too long: {fault.details['blocks_done']} of "
                f"{fault.details['blocks']} blocks had ended. Take a smaller example, allow more time, or use a GPU.",
                {**draw.where(), "kind": fault.kind, "kernel": fault.kernel, **fault.details},
            )
        kernel = f"`{fault.kernel}`, " if fault.kernel else ""
        shifted = ", ".join(f"`{n}` shifted by {b} bytes" for n, b in draw.misalign.items() if b)
        context = f" (views: {shifted})" if shifted else ""
        return Finding(
            outcome_of_fault(fault),
            f"{fault.message.rstrip('.')}. Where: {kernel}{draw.workload.label()}{context}.",
            {**draw.where(), "kind": fault.kind, "kernel": fault.kernel, **fault.details},
        )
