"""Starting a kernel and running a plain cell, against stock ipykernel in the same run."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

PAIRS = 7
CELLS = 40
CELL = "sum(i * i for i in range(10000))"
TIMEOUT = 60


def start(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure kernel start to the first reply and a plain cell; medians of paired runs."""
    del device, arguments
    starts: dict[str, list[float]] = {"ipykernel_launcher": [], "llmkernel": []}
    cells: dict[str, list[float]] = {"ipykernel_launcher": [], "llmkernel": []}
    for turn in range(PAIRS):
        order = list(starts) if turn % 2 == 0 else list(reversed(starts))
        for module in order:
            started, cell = _measure(module)
            starts[module].append(started)
            cells[module].append(cell)
    return [_row("kernel start to first reply", starts, 1.10), _row("a plain cell", cells, 1.02)]


def _row(what: str, seconds: dict[str, list[float]], bar: float) -> dict[str, Any]:
    pairs = [b / a for a, b in zip(seconds["ipykernel_launcher"], seconds["llmkernel"], strict=True)]
    return {
        "what": what,
        "ipykernel_ms": 1e3 * statistics.median(seconds["ipykernel_launcher"]),
        "llmkernel_ms": 1e3 * statistics.median(seconds["llmkernel"]),
        "ratio": statistics.median(pairs),
        "bar": bar,
        "pairs": len(pairs),
    }


def _measure(module: str) -> tuple[float, float]:
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    manager = KernelManager()
    manager._kernel_spec = KernelSpec(  # noqa: SLF001 - there is no public setter
        argv=[sys.executable, "-m", module, "-f", "{connection_file}"], display_name=module, language="python"
    )
    began = time.perf_counter()
    manager.start_kernel()
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=TIMEOUT)
        started = time.perf_counter() - began
        cells = []
        for _ in range(CELLS):
            began = time.perf_counter()
            client.execute_interactive(CELL, timeout=TIMEOUT, store_history=False)
            cells.append(time.perf_counter() - began)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return started, statistics.median(cells)
