"""The worker's side: one device, one request at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from llmkernel.devices.base import Bytes, Device, ExecutionOptions, Module, Sampler, available_devices
from llmkernel.devices.plan import plan_from_dict
from llmkernel.errors import LLMKernelError, WorkerError
from llmkernel.evaluation.worker.errors import error_to_dict
from llmkernel.evaluation.worker.harness import DrawResult, run_draw, run_over_leftovers, run_sequence
from llmkernel.evaluation.worker.protocol import read_frame, write_frame
from llmkernel.sandbox.enter import Confinement
from llmkernel.sandbox.limits import allow_processor_time

CHECKED_ARCH = "sm_90a"
Answer = tuple[dict[str, Any], list[Bytes]]


@dataclass
class Asked:
    """One request: its header and its blobs."""

    header: dict[str, Any]
    blobs: list[Bytes]


class Server:
    """Answers requests with one device.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._modules: dict[int, Module] = {}
        self._sampler: Sampler | None = None
        self._baseline: Any = None

    def answer(self, header: dict[str, Any], blobs: list[Bytes]) -> Answer:
        """Answer one request."""
        operation: Callable[[Asked], Answer] = getattr(self, f"_do_{header['op']}")
        return operation(Asked(header, blobs))

    def hello(self) -> dict[str, Any]:
        """Return what the notebook needs to know of this worker."""
        return {
            "ok": True,
            "pid": os.getpid(),
            "limits": self.device.limits().to_dict(),
            "versions": self.device.versions(),
        }

    def _do_compile(self, asked: Asked) -> Answer:
        module = self.device.compile(
            asked.header["source"], asked.header["kernels"], arch=asked.header.get("arch")
        )
        number = len(self._modules)
        self._modules[number] = module
        return {
            "module": number,
            "seconds": module.compile_seconds,
            "is_cached": module.is_cached,
            "warnings": [vars(w) for w in module.warnings],
            "resources": {k: vars(v) for k, v in module.resources.items()},
            "options": list(module.options),
            "nvrtc": self._check_with_nvrtc(asked.header) if self.device.is_emulation else None,
        }, []

    @staticmethod
    def _check_with_nvrtc(header: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the real compiler, where it is installed: it needs no GPU, and a host compiler takes what is no CUDA."""
        from llmkernel.devices.cuda import toolchain
        from llmkernel.devices.cuda.nvrtc import check_with_nvrtc

        if toolchain.nvrtc_version() is None:
            return None
        arch = header.get("arch") or CHECKED_ARCH
        seen = check_with_nvrtc(header["source"], header["kernels"], arch)
        return {
            "arch": arch,
            "is_compiled": seen.is_compiled,
            "seconds": seen.seconds,
            "log": seen.log[:20000],
            "diagnostics": [vars(d) for d in seen.diagnostics],
            "resources": {k: vars(v) for k, v in seen.resources.items()},
        }

    def _do_draw(self, asked: Asked) -> Answer:
        plan = plan_from_dict(asked.header["plan"])
        result = run_draw(
            self.device,
            self._modules[asked.header["module"]],
            plan,
            dict(zip(asked.header["inputs"], asked.blobs, strict=True)),
            repeats=asked.header["repeats"],
            seed=asked.header["seed"],
            options=ExecutionOptions(**asked.header["options"]),
            misalign=asked.header.get("misalign"),
        )
        return _as_answer(result)

    def _do_sequence(self, asked: Asked) -> Answer:
        names = asked.header["inputs"]
        count = asked.header["draws"]
        draws = [
            dict(zip(names, asked.blobs[i * len(names) : (i + 1) * len(names)], strict=True))
            for i in range(count)
        ]
        module = self._modules[asked.header["module"]]
        plan, seed = plan_from_dict(asked.header["plan"]), asked.header["seed"]
        options = ExecutionOptions(**asked.header["options"])
        repeats = asked.header["repeats"]
        results = (
            run_sequence(self.device, module, plan, draws, repeats=repeats, seed=seed, options=options)
            if repeats
            else run_over_leftovers(self.device, module, plan, draws, seed=seed, options=options)
        )
        answers = [_as_answer(r) for r in results]
        fault = next((a["fault"] for a, _ in answers if a["fault"]), None)
        return {"results": [a | {"blobs": len(b)} for a, b in answers], "fault": fault}, [
            blob for _, blobs in answers for blob in blobs
        ]

    def _do_check(self, asked: Asked) -> Answer:
        """Run a plan in the checked mode of the `cpu` device."""
        from llmkernel.devices.cpu.checked import run_checked

        payloads = dict(zip(asked.header["inputs"], asked.blobs, strict=True))
        run = run_checked(asked.header["source"], plan_from_dict(asked.header["plan"]), payloads)
        findings = [{**vars(f), "tool": f.tool, "outcome": f.outcome} for f in run.findings]
        return {"findings": findings, "seconds": run.seconds, "problem": run.problem}, []

    def _do_occupancy(self, asked: Asked) -> Answer:
        module = self._modules[asked.header["module"]]
        found = self.device.occupancy(module, plan_from_dict(asked.header["plan"]))
        return {"occupancy": {k: r.occupancy for k, r in found.items() if r.occupancy is not None}}, []

    def _do_time_open(self, asked: Asked) -> Answer:
        self._close_sampler()
        names = asked.header["inputs"]
        draws = [
            dict(zip(names, asked.blobs[i : i + len(names)], strict=True))
            for i in range(0, len(asked.blobs), max(1, len(names)))
        ]
        plan = plan_from_dict(asked.header["plan"])
        self._sampler = self.device.sampler(self._modules[asked.header["module"]], plan, draws or [{}])
        return {"ok": True}, []

    def _do_time_sample(self, asked: Asked) -> Answer:
        if self._sampler is None:
            raise WorkerError("Timing was asked for before it was prepared.")
        return {"ms": [float(t) for t in self._sampler.sample(asked.header["count"])]}, []

    def _do_time_outputs(self, _: Asked) -> Answer:
        if self._sampler is None:
            raise WorkerError("Timing was asked for before it was prepared.")
        seen = self._sampler.outputs()
        names = [list(payloads) for _, payloads in seen]
        flat = [blob for _, payloads in seen for blob in payloads.values()]
        return {"draws": [d for d, _ in seen], "names": names}, flat

    def _do_time_close(self, _: Asked) -> Answer:
        self._close_sampler()
        return {"ok": True}, []

    def _do_roofline(self, asked: Asked) -> Answer:
        return {"roofline": self.device.roofline(asked.header["dtypes"])}, []

    def _do_baseline_open(self, asked: Asked) -> Answer:
        from llmkernel.evaluation.worker.baseline import Baseline

        if self._baseline is not None:
            self._baseline.close()
        self._baseline = Baseline.open(self.device, asked.header, asked.blobs)
        return {"note": self._baseline.note}, []

    def _do_baseline_sample(self, asked: Asked) -> Answer:
        return {"ms": [float(t) for t in self._baseline.sample(asked.header["count"])]}, []

    def _close_sampler(self) -> None:
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None


def _as_answer(result: DrawResult) -> Answer:
    answer = {k: v for k, v in vars(result).items() if k not in ("results", "finals", "others", "fault")}
    answer["fault"] = None if result.fault is None else vars(result.fault)
    answer["finals"], answer["others"] = list(result.finals), list(result.others)
    return answer, [*result.results, *result.finals.values(), *result.others.values()]


def serve(name: str, confinement: Confinement, close_the_door: Callable[[], None]) -> None:
    """Serve until standard input closes.

    Parameters
    ----------
    name : str
        The device's.
    confinement : Confinement
        What holds this process.
    close_the_door : callable
        Called once the device is ready, ahead of the first request.
    """
    # Ctrl-C in the notebook's terminal reaches the whole foreground group; only the notebook decides when we end.
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Frames keep the real standard output; whatever prints (also native code) goes to standard error.
    out: BinaryIO = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    os.dup2(2, 1)
    source = sys.stdin.buffer
    try:
        device = available_devices()[name]()
        server = Server(device)
        write_frame(out, server.hello() | {"sandbox": confinement.to_dict()})
        device.warm_up()
    except LLMKernelError as error:
        write_frame(out, {"error": error_to_dict(error)})
        return
    close_the_door()
    write_frame(out, {"ready": True})
    while True:
        try:
            header, blobs = read_frame(source)
        except EOFError:
            break
        allow_processor_time(float(header.get("seconds", 0.0)))
        answer, back, is_lost = _answer(server, header, blobs)
        write_frame(out, answer, back)
        if is_lost:
            break
    with contextlib.suppress(Exception):
        device.close()
    os._exit(0)  # a broken CUDA context must not hang in its destructors


def _answer(
    server: Server, header: dict[str, Any], blobs: list[Bytes]
) -> tuple[dict[str, Any], list[Bytes], bool]:
    try:
        answer, back = server.answer(header, blobs)
    except LLMKernelError as error:
        return {"error": error_to_dict(error)}, [], bool(getattr(error, "is_context_lost", False))
    except MemoryError:
        return {"error": error_to_dict(WorkerError("The worker ran out of memory."))}, [], True
    except Exception as error:  # noqa: BLE001 - the notebook must hear of everything
        import traceback

        traceback.print_exc()
        failure = WorkerError(f"The worker failed: {type(error).__name__}: {str(error)[:500]}")
        return {"error": error_to_dict(failure)}, [], True
    fault = answer.get("fault") or {}
    return answer, back, bool(fault.get("details", {}).get("is_context_lost"))
