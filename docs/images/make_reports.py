"""Draw the pictures of docs/guide/reading-a-report.md: two candidates are really judged on the cpu device.

Run it as ``python docs/images/make_reports.py``; it needs the `cpu` extra and Chromium on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from llmkernel.display.bundle import report_bundle
from llmkernel.evaluation.evaluate import evaluate

HERE = Path(__file__).parent
WIDTH = 880

RIGHT = """\
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 128>>>(x, y, N)
__global__ void row_sum(const float* __restrict__ x, float* __restrict__ y, int N) {
    __shared__ float partial[128];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 128) sum += x[(long long)blockIdx.x * N + i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = partial[0];
}
"""
# The last, incomplete chunk of a row is left out.
WRONG = RIGHT.replace(
    "for (int i = threadIdx.x; i < N; i += 128)", "for (int i = threadIdx.x; i < N / 128 * 128; i += 128)"
)


def row_sum(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum each row."""
    return x.sum(axis=1)


def picture(name: str, source: str, height: int) -> None:
    """Judge `source` and write ``name.png`` and ``name-dark.png``."""
    x = np.random.default_rng(0).normal(size=(64, 1000)).astype(np.float32)
    report = evaluate(source, row_sum, [x], device="cpu", level="full", with_timing=True)
    html = report_bundle(report, source=source, origin="written by hand")["text/html"]
    for theme, background, suffix in (("light", "#fff", ""), ("dark", "#131416", "-dark")):
        page = f"<!doctype html><meta charset=utf-8><body data-theme={theme} style='margin:8px;background:{background}'>"
        draw(page + html, HERE / f"{name}{suffix}.png", height)


def draw(html: str, target: Path, height: int) -> None:
    """Write a picture of a page's first `height` pixels."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is not on the path.")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(html, encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        command += ["--hide-scrollbars", f"--user-data-dir={folder}", f"--window-size={WIDTH},{height}"]
        command += [f"--screenshot={target}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    picture("report-passed", RIGHT, 1010)
    picture("report-wrong-value", WRONG, 830)
