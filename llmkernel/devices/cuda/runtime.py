"""What a GPU needs to run an accepted kernel in the caller's process: context, modules, prepared plans."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from llmkernel.candidate.arguments import CallArgument
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.cuda import facts
from llmkernel.devices.cuda.compiler import LoadedModule, compile_cached, load_fresh
from llmkernel.devices.cuda.driver import (
    INVALID_CONTEXT,
    INVALID_HANDLE,
    DriverError,
    primary_context,
    require_driver,
)
from llmkernel.devices.cuda.launcher import PreparedPlan, buffer_bytes
from llmkernel.devices.plan import Buffer, LaunchPlan

_CACHE_LIMIT = 512
# What a launch answers when another device's context, or none, is current in this thread.
_WRONG_CONTEXT = frozenset({INVALID_CONTEXT, INVALID_HANDLE})


@functools.cache
def device_limits(ordinal: int) -> DeviceLimits:
    """Return the limits of a visible GPU."""
    return facts.device_limits(require_driver(), ordinal)


class PreparedCall:
    """One plan, ready to be launched again and again.

    Attributes
    ----------
    allocated : tuple of Buffer
        Outputs and scratch, which the caller allocates anew for every call.
    input_sizes : tuple of int
        Bytes of each input.
    results : tuple of int
        For each returned value, the index of its buffer in `allocated`.
    recipe : object
        What the caller made of `allocated` at the first call.
    """

    __slots__ = (
        "_context",
        "_launch",
        "_lock",
        "_prepared",
        "allocated",
        "input_sizes",
        "plan",
        "recipe",
        "results",
    )

    def __init__(self, plan: LaunchPlan, functions: dict[str, int], ordinal: int) -> None:
        self._context = primary_context(ordinal)
        with self._context:
            prepared = PreparedPlan(self._context.driver, functions, plan, device_limits(ordinal))
        # The packed parameters live as long as this.
        self._prepared = prepared
        self._launch: Callable[[Sequence[int], int], None] = prepared.launcher()
        # Addresses are written into the prepared parameters: two threads must not do so at once.
        self._lock = threading.Lock()
        self.plan = plan
        self.allocated: tuple[Buffer, ...] = tuple(b for b in plan.buffers if b.role in ("output", "scratch"))
        names = [b.name for b in self.allocated]
        self.results = tuple(names.index(name) for name in plan.results)
        self.input_sizes = tuple(buffer_bytes(b) for b in plan.buffers if b.role in ("input", "inout"))
        self.recipe: Any = None

    def launch(self, addresses: Sequence[int], stream: int) -> None:
        """Queue the plan on a stream of the current context (of this call's own where another is current)."""
        self._lock.acquire()
        try:
            self._launch(addresses, stream)
        except DriverError as error:
            if error.code not in _WRONG_CONTEXT:
                raise
            with self._context:
                self._launch(addresses, stream)
        finally:
            self._lock.release()

    def parts(self, count: int) -> tuple[Any, Any, Callable[[], int], Any] | None:
        """Return what one plain launch is made of: packed parameters, configuration, the driver's call, the lock.

        None unless the plan is one launch of a kernel whose first parameters are its `count` buffers in order,
        without zero-fills and tensor maps.
        """
        prepared = self._prepared
        if not prepared.is_plain or not prepared.launches[0].starts_with_buffers(count):
            return None
        only = prepared.launches[0]
        call = functools.partial(
            prepared.driver.launch_kernel, only.config_reference, only.function, only.parameters, None
        )
        return only.storage[0], only.config, call, self._lock

    def launch_elsewhere(self, addresses: Sequence[int], stream: int) -> None:
        """Queue the plan on a GPU that is not this thread's current one."""
        with self._context, self._lock:
            self._launch(addresses, stream)


class CallCache:
    """Prepared calls of one candidate, by whatever decides its plan.

    Parameters
    ----------
    candidate : llmkernel.candidate.candidate.Candidate
    """

    def __init__(self, candidate: Any) -> None:
        self._candidate = candidate
        self._modules: dict[tuple[int, tuple[str, ...]], LoadedModule] = {}
        self._lock = threading.RLock()
        self.calls: dict[Any, PreparedCall] = {}

    def prepare(self, key: Any, arguments: Sequence[CallArgument], ordinal: int) -> PreparedCall:
        """Plan, compile where needed, and keep the result under `key`.

        Raises
        ------
        llmkernel.errors.BindingError
            For arguments that the header does not take.
        llmkernel.errors.LaunchError
            For what the GPU does not allow.
        """
        with self._lock:
            plan = self._candidate.plan(arguments, device_limits(ordinal))
            call = PreparedCall(plan, self._functions(plan.kernels(), ordinal), ordinal)
            while len(self.calls) >= _CACHE_LIMIT:
                self.calls.pop(next(iter(self.calls)))
            self.calls[key] = call
            return call

    def _functions(self, kernels: tuple[str, ...], ordinal: int) -> dict[str, int]:
        if not kernels:
            return {}
        module = self._modules.get((ordinal, kernels))
        if module is None:
            compiled = compile_cached(self._candidate.source, kernels, device_limits(ordinal).arch)
            with primary_context(ordinal) as context:
                module = load_fresh(context.driver, compiled.binary)
            self._modules[ordinal, kernels] = module
        return module.functions
