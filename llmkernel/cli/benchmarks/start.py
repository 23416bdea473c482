"""Starting a kernel and running a plain cell, against stock ipykernel in the same run."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

Sample = TypeVar("Sample")

STARTS = 30
PAIRS = 120
CELLS = 10
CELL = "sum(i * i for i in range(10000))"
TIMEOUT = 60
STOCK, OURS = "ipykernel_launcher", "llmkernel"

# A client that finds no kernel yet tries again after 100 ms by default: coarser than what is measured here.
_RECONNECT_MS = 1


def start(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the start up to the reply to a first cell, and a plain cell; medians of paired runs.

    Both kinds of kernel take turns, A B B A, so that a busy machine is busy for both. Cells run in two kernels that
    are alive together. The processor time of a start says the same where others have the machine.
    """
    del device, arguments
    for module in (STOCK, OURS):  # files that are read, and compiled, for the first time are nobody's start
        _start_seconds(module)
    both = _in_turn(STARTS, _start_seconds)
    starts, busy = ({module: [pair[i] for pair in pairs] for module, pairs in both.items()} for i in (0, 1))
    with _running(STOCK) as stock, _running(OURS) as ours:
        clients = {STOCK: stock, OURS: ours}
        for client in (stock, ours):
            _run(client)
        cells = _in_turn(PAIRS, lambda module: _cell_seconds(clients[module]))
    return [
        _row("kernel start to the reply of a first cell", starts, 1.10),
        _row("processor time of that start", busy, 1.10),
        _row("a plain cell", cells, 1.02),
    ]


def _in_turn(pairs: int, measure: Callable[[str], Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {STOCK: [], OURS: []}
    for turn in range(pairs):
        for module in (STOCK, OURS) if turn % 2 == 0 else (OURS, STOCK):
            found[module].append(measure(module))
    return found


def _row(what: str, seconds: dict[str, list[float]], bar: float) -> dict[str, Any]:
    ratios = [ours / stock for stock, ours in zip(seconds[STOCK], seconds[OURS], strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "what": what,
        "ipykernel_ms": 1e3 * statistics.median(seconds[STOCK]),
        "llmkernel_ms": 1e3 * statistics.median(seconds[OURS]),
        "ipykernel_min_ms": 1e3 * min(seconds[STOCK]),
        "llmkernel_min_ms": 1e3 * min(seconds[OURS]),
        "ratio": statistics.median(ratios),
        "ratio_quartiles": [low, high],
        "bar": bar,
        "pairs": len(ratios),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in ("ipykernel", "ipython", "jupyter-client", "pyzmq")},
        "load_average": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else [],
    }


def _start_seconds(module: str) -> tuple[float, float]:
    began = time.perf_counter()
    with _running(module) as client:
        content = _run(client, {"busy": "__import__('time').process_time()"})
        passed = time.perf_counter() - began
    return passed, float(content["user_expressions"]["busy"]["data"]["text/plain"])


def _cell_seconds(client: Any) -> float:
    """Return the median of a few cells: a single one is now and then interrupted by others."""
    seconds = []
    for _ in range(CELLS):
        began = time.perf_counter()
        _run(client)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _run(client: Any, expressions: dict[str, str] | None = None) -> dict[str, Any]:
    reply = client.execute(
        CELL, store_history=False, user_expressions=expressions, reply=True, timeout=TIMEOUT
    )
    content: dict[str, Any] = reply["content"]
    assert content["status"] == "ok", content
    while client.get_iopub_msg(timeout=TIMEOUT)["content"].get("execution_state") != "idle":
        pass
    return content


@contextmanager
def _running(module: str) -> Iterator[Any]:
    import zmq
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    context = zmq.Context()
    context.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)  # of every socket that is made from it
    manager = KernelManager()
    manager._kernel_spec = KernelSpec(  # noqa: SLF001 - there is no public setter
        argv=[sys.executable, "-m", module, "-f", "{connection_file}"], display_name=module, language="python"
    )
    # Installed packages are compiled; a source tree is after its first start, where that is not forbidden.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    client = manager.client(context=context)
    try:
        client.start_channels(hb=False)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        context.destroy(linger=0)
