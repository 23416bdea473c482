"""One run in checked mode of several kernels of a source, as a test writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llmkernel.devices.cpu.checked import CheckedRun, run_checked
from llmkernel.devices.plan import Buffer, KernelLaunch, LaunchPlan, PointerArgument, ScalarArgument
from llmkernel.problem.dtypes import dtype_name

from .support import triple

RNG = np.random.default_rng(5)


def floats(count: int) -> np.ndarray:
    return RNG.standard_normal(count).astype(np.float32)


@dataclass
class Call:
    """One launch; arrays are inputs that may be written, but those that `fresh` names, which hold nothing yet."""

    kernel: str
    grid: Any
    block: Any
    arguments: dict[str, Any]
    shared: int = 0
    fresh: tuple[str, ...] = field(default=())


def check(source: str, *calls: Call, timeout: float = 10.0) -> CheckedRun:
    buffers, launches, payloads = [], [], {}
    for call in calls:
        passed: list[Any] = []
        for name, value in call.arguments.items():
            if not isinstance(value, np.ndarray):
                passed.append(ScalarArgument(dtype_name(np.asarray(value).dtype), value.item()))
                continue
            name = f"{call.kernel}_{name}"
            is_fresh = name.removeprefix(f"{call.kernel}_") in call.fresh
            buffers.append(
                Buffer(name, dtype_name(value.dtype), value.shape, "output" if is_fresh else "inout")
            )
            if not is_fresh:
                payloads[name] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            passed.append(PointerArgument(name))
        launches.append(
            KernelLaunch(
                call.kernel, triple(call.grid), triple(call.block), call.shared, None, False, tuple(passed), 1
            )
        )
    plan = LaunchPlan(tuple(buffers), tuple(launches), ())
    return run_checked(source, plan, payloads, timeout=timeout)
