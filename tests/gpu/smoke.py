"""Exercises the cuda device on a machine with a GPU: `python tests/gpu/smoke.py [OUT.json]`.

Prints one line a check and ends with 1 when one failed. Needs CuPy and PyTorch.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cuda.device import CudaDevice
from tests.gpu import caller_checks, candidates, device_checks, timing_checks
from tests.gpu.checks import CHECKS
from tests.gpu.running import images_for, prepare

MODULES = (device_checks, timing_checks, caller_checks)
ORDERED = [c for module in MODULES for c in CHECKS if c.__module__ == module.__name__]


def fault_child(name):
    device = CudaDevice()
    source = getattr(candidates, name)
    arguments = (10_000_000,) if "n: int32" in source else ()
    _, plan, module = prepare(device, source, arguments)
    started = time.perf_counter()
    execution = device.execute(module, plan, images_for(plan, arguments), ExecutionOptions(timeout_seconds=2))
    fault = execution.fault
    seconds = time.perf_counter() - started
    if fault is None:
        answer = {"kind": None}
    else:
        answer = {
            "kind": fault.kind,
            "message": fault.message,
            "kernel": fault.kernel,
            "details": fault.details,
        }
    print(json.dumps(answer | {"seconds": seconds, "printed": execution.printed[:300]}), flush=True)
    os._exit(0)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--fault"]:
        fault_child(arguments[1])
    reason = CudaDevice.unavailable_reason()
    if reason:
        sys.exit(reason)
    device = CudaDevice()
    results, failed = {}, []
    for function in ORDERED:
        started = time.perf_counter()
        try:
            answer, status = function(device), "ok"
        except BaseException:
            answer, status = {"traceback": traceback.format_exc()}, "FAILED"
            failed.append(function.__name__)
        seconds = time.perf_counter() - started
        results[function.__name__] = {"status": status, "seconds": round(seconds, 3), **answer}
        print(f"{status:6} {seconds:7.2f} s  {function.__name__}", flush=True)
        if (answer and function.__name__ != "facts") or status == "FAILED":
            text = answer.get("traceback") or json.dumps(answer, default=str)
            print(
                "       " + (text[-1500:] if status == "FAILED" else text[:900]).replace("\n", "\n       "),
                flush=True,
            )
    print(json.dumps(results["facts"], default=str)[:1500])
    if arguments:
        Path(arguments[0]).write_text(json.dumps(results, indent=1, default=str))
    print(f"{len(ORDERED) - len(failed)} of {len(ORDERED)} checks passed", *failed)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
