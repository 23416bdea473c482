"""A baseline in a process of its own: the reference, or another callable, timed as the candidate is.

It never shares an address space with a candidate: what it computes are expected values.
"""

from __future__ import annotations

import base64
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from llmkernel.devices.base import Bytes, Device
from llmkernel.errors import DeviceError
from llmkernel.problem.dtypes import DTYPES

COMPILE_MODES = ("default", "max-autotune-no-cudagraphs", "reduce-overhead")


class Baseline:
    """One callable, prepared for timing.

    Parameters
    ----------
    call : callable
        Called with one draw's arguments.
    draws : list
        Pristine arguments of each draw.
    note : str
        What the reader should know of how it ran.
    """

    def __init__(self, call: Callable[..., Any], draws: list[list[Any]], note: str) -> None:
        self._call = call
        self._draws = draws
        self.note = note
        self._turn = 0

    @staticmethod
    def open(device: Device, header: dict[str, Any], blobs: Sequence[Bytes]) -> Baseline:
        """Prepare the baseline that a request describes.

        Parameters
        ----------
        header : dict
            ``function``: a pickled `Reference`, base64; ``variant``; ``arguments``: dtype and shape, or value;
            ``framework``: ``numpy``, ``cupy`` or ``torch``; ``draws``: their number.
        """
        import cloudpickle

        # Pickled by the notebook's own process: the user's code, not a candidate.
        reference = cloudpickle.loads(base64.b64decode(header["function"]))
        draws = _draws(header, blobs)
        framework = header["framework"]
        if framework == "torch":
            return _TorchBaseline(device, reference, header["variant"], draws)
        if framework == "cupy":
            return _CupyBaseline(device, reference, draws)
        return Baseline(lambda *a: reference.call(a), draws, "NumPy on the CPU, wall time")

    def sample(self, count: int) -> list[float]:
        """Return `count` times in milliseconds, one draw after the other."""
        out = []
        for _ in range(count):
            draw = self._draws[self._turn % len(self._draws)]
            self._turn += 1
            given = [np.array(v) if isinstance(v, np.ndarray) else v for v in draw]
            start = time.perf_counter()
            self._call(*given)
            out.append(1e3 * (time.perf_counter() - start))
        return out

    def close(self) -> None:
        """Let go of everything."""
        self._draws = []


class _OnGpu(Baseline, ABC):
    """Shared by torch and CuPy: events, a cold cache and fresh inputs, as `EventTimer` does it."""

    _timer: Any
    _working: list[Any]

    def sample(self, count: int) -> list[float]:
        order = [(self._turn + i) % len(self._draws) for i in range(count)]
        self._turn += count
        times: list[float] = self._timer.sample(order, self._setup, self._launch)
        return times

    @abstractmethod
    def _setup(self, draw: int) -> None:
        """Copy one draw into the working buffers, in stream order."""

    def _launch(self, draw: int) -> None:
        del draw
        self._result = self._call(*self._working)

    def close(self) -> None:
        self._timer.close()
        super().close()
        self._working = []


class _TorchBaseline(_OnGpu):
    def __init__(self, device: Device, reference: Any, variant: str, draws: list[list[Any]]) -> None:
        import torch

        from llmkernel.devices.cuda.driver import require_driver
        from llmkernel.devices.cuda.timing import EventTimer

        on_gpu = [[_to_torch(torch, v) for v in draw] for draw in draws]
        call = _variant(torch, reference, variant)
        super().__init__(call, on_gpu, "")
        self._torch = torch
        self._working = [v.clone() if isinstance(v, torch.Tensor) else v for v in on_gpu[0]]
        with torch.no_grad():
            for _ in range(3):  # compilation and autotuning happen here
                self._call(*self._working)
        torch.cuda.synchronize()
        self._timer = EventTimer(require_driver(), device.limits(), torch.cuda.current_stream().cuda_stream)

    def _setup(self, draw: int) -> None:
        for work, fresh in zip(self._working, self._draws[draw], strict=True):
            if isinstance(work, self._torch.Tensor):
                work.copy_(fresh)

    def _launch(self, draw: int) -> None:
        with self._torch.no_grad():
            super()._launch(draw)


class _CupyBaseline(_OnGpu):
    def __init__(self, device: Device, reference: Any, draws: list[list[Any]]) -> None:
        import cupy

        from llmkernel.devices.cuda.driver import require_driver
        from llmkernel.devices.cuda.timing import EventTimer

        on_gpu = [[cupy.asarray(v) if isinstance(v, np.ndarray) else v for v in draw] for draw in draws]
        super().__init__(lambda *a: reference.call(a), on_gpu, "the same code on CuPy arrays")
        self._working = [v.copy() if isinstance(v, cupy.ndarray) else v for v in on_gpu[0]]
        for _ in range(3):
            result = self._call(*self._working)
        if not _is_cupy(cupy, result) and result is not None:
            raise DeviceError("The reference does not run on CuPy arrays: it returned something else.")
        cupy.cuda.get_current_stream().synchronize()
        self._timer = EventTimer(require_driver(), device.limits(), cupy.cuda.get_current_stream().ptr)
        self._copies = [hasattr(v, "data") and _is_cupy(cupy, v) for v in self._working]

    def _setup(self, draw: int) -> None:
        for work, fresh, is_array in zip(self._working, self._draws[draw], self._copies, strict=True):
            if is_array:
                work[...] = fresh


def _is_cupy(cupy: Any, value: Any) -> bool:
    items = value if isinstance(value, tuple | list) else [value]
    return all(isinstance(v, cupy.ndarray) for v in items)


def _to_torch(torch: Any, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == DTYPES["bfloat16"].numpy:
        return torch.from_numpy(value.view(np.int16).copy()).view(torch.bfloat16).cuda()
    return torch.from_numpy(value.copy()).cuda()


def _variant(torch: Any, reference: Any, variant: str) -> Callable[..., Any]:
    def eager(*arguments: Any) -> Any:
        return reference.call(arguments)

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

    if variant == "eager":
        return eager
    if variant == "eager, TF32":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        return eager
    mode = variant.removeprefix("torch.compile: ")
    if mode not in COMPILE_MODES:
        raise DeviceError(f"There is no baseline variant {variant!r}.")
    # What was compiled before counts against the compiler's limits: beyond them it silently runs eagerly.
    torch._dynamo.reset()  # noqa: SLF001 - there is no public name
    # The user's own function, not a wrapper: a wrapper would break the graph.
    is_plain = not reference.is_module and not reference.fixed
    target = reference.function if is_plain else eager
    compiled: Callable[..., Any] = torch.compile(target, mode=None if mode == "default" else mode)
    return compiled


def _draws(header: dict[str, Any], blobs: Sequence[Bytes]) -> list[list[Any]]:
    arguments = header["arguments"]
    waiting = iter(blobs)
    draws = []
    for _ in range(header["draws"]):
        draw = []
        for a in arguments:
            if "value" in a:
                draw.append(a["value"])
            else:
                draw.append(
                    np.frombuffer(next(waiting).tobytes(), DTYPES[a["dtype"]].numpy).reshape(a["shape"])
                )
        draws.append(draw)
    return draws
