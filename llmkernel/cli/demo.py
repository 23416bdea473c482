"""`llmkernel demo`: the main job once, from a reference to a verified kernel, an executed notebook and its HTML."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmkernel.errors import LLMKernelError, UsageError

NOTEBOOKS = ("quickstart.ipynb", "heat_equation.ipynb")
CELL_SECONDS = 600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``llmkernel demo``."""
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("llm-cuda-demo"),
        help="folder for what is made (default: %(default)s)",
    )
    parser.add_argument(
        "--device", choices=["auto", "cuda", "cpu"], default="auto", help="where the kernel runs"
    )
    parser.add_argument(
        "--provider", default=None, help="where the kernel comes from (default: a key's, else the library)"
    )
    parser.add_argument("--no-notebook", action="store_true", help="leave the notebooks out")


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; 0 when everything passed."""
    from llmkernel.display.text import format_report
    from llmkernel.evaluation.evaluate import choose_device
    from llmkernel.providers.registry import get_provider

    device = choose_device(arguments.device)
    provider = get_provider(arguments.provider)
    print(f"Device: {device}. Provider: {provider.name}.")
    started = time.perf_counter()
    kernel = _kernel(device, arguments.provider, arguments.output / "kernels")
    print(f"\n{kernel!r}\n  in {time.perf_counter() - started:.1f} s\n")
    print(format_report(kernel.report))
    if arguments.no_notebook:
        return 0
    made = [_notebook(name, arguments) for name in NOTEBOOKS]
    print("\nWritten:")
    for paths in made:
        for path in paths:
            print(f"  {path}")
    print(f"\nNext: open {made[0][1]} in a browser. It shows what a notebook's cells show.")
    return 0


def _kernel(device: str, provider: str | None, records: Path) -> Any:
    """Generate a softmax kernel from a NumPy reference."""
    import numpy as np

    from llmkernel.synthesis.events import AttemptFinished, PromptBuilt, StageStarted
    from llmkernel.synthesis.synthesize import synthesize

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def show(event: Any) -> None:
        if isinstance(event, PromptBuilt):
            print(f"Attempt {event.attempt} of {event.attempts}: asking {event.provider}")
        elif isinstance(event, StageStarted):
            print(f"  {event.stage}{f': {event.detail}' if event.detail else ''}")
        elif isinstance(event, AttemptFinished) and event.attempt.report is not None:
            print(f"  {event.attempt.report.outcome}")

    rows, columns = (4096, 4096) if device == "cuda" else (512, 1000)
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    return synthesize(
        softmax,
        "Softmax over the last axis.",
        inputs=[x],
        provider=provider,
        device=device,
        records_dir=records,
        replay="never",
        on_event=show,
    )


def _notebook(name: str, arguments: argparse.Namespace) -> list[Path]:
    """Execute one example in the LLM-CUDA kernel and export it to HTML."""
    import nbformat
    from nbclient.exceptions import CellExecutionError

    from llmkernel.display.clean import one_line

    notebook = nbformat.read(_examples() / name, as_version=4)
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    print(f"\nExecuting {name} in the LLM-CUDA kernel…")
    options = [f"--LLMKernel.device={arguments.device}"]
    if arguments.provider:
        options.append(f"--LLMKernel.provider={arguments.provider}")
    try:
        execute_notebook(notebook, folder, options)
    except CellExecutionError as error:
        raise LLMKernelError(
            f"{name} stopped at a cell that failed: {_failed_cell(notebook)}",
            received=one_line(f"{error.ename}: {error.evalue}"),
            next_step="Run `llmkernel doctor`, then the notebook in Jupyter to see the whole report.",
        ) from None
    target = folder / name
    nbformat.write(notebook, target)
    return [target, _html(notebook, target)]


def _failed_cell(notebook: Any) -> str:
    """Return the first line of the cell that holds an error."""
    for cell in notebook.cells:
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            return str(cell.source).strip().split("\n", 1)[0]
    return "unknown"


def execute_notebook(
    notebook: Any, folder: Path, options: list[str], env: Mapping[str, str] | None = None
) -> None:
    """Run all cells of a notebook in a new LLM-CUDA kernel, whether or not Jupyter knows it.

    Parameters
    ----------
    notebook : nbformat.NotebookNode
        Gets its outputs.
    folder : Path
        Working directory of the kernel.
    options : list of str
        Appended to the kernel's command line.
    env : mapping, optional
        All variables of the kernel; default: those of this process.
    """
    import zmq
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import run_sync
    from nbclient import NotebookClient

    argv = [sys.executable, "-m", "llmkernel", "-f", "{connection_file}", *options]
    metadata = {"debugger": True, "supported_encryption": ["curve"]}
    manager = AsyncKernelManager()
    if zmq.has("curve"):
        manager.transport_encryption = "auto"
    spec = KernelSpec(argv=argv, display_name="LLM-CUDA", language="python", metadata=metadata)
    manager._kernel_spec = spec  # noqa: SLF001 - there is no public setter
    client = NotebookClient(
        notebook, km=manager, timeout=CELL_SECONDS, resources={"metadata": {"path": str(folder)}}
    )
    try:
        client.execute(**({} if env is None else {"env": dict(env)}))
    finally:
        # nbclient leaves a manager that it was given running.
        run_sync(manager.shutdown_kernel)(now=True)


def _html(notebook: Any, target: Path) -> Path:
    from nbconvert import HTMLExporter

    # The page is read offline: scripts from elsewhere (formulas, widgets) are left out.
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="")
    html, _ = exporter.from_notebook_node(notebook)
    path = target.with_suffix(".html")
    path.write_text(html, encoding="utf-8")
    return path


def _examples() -> Path:
    """Return the folder of the examples: beside the package in a source tree, inside it when installed."""
    import llmkernel

    package = Path(llmkernel.__file__).parent
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / NOTEBOOKS[0]).is_file():
            return folder
    raise UsageError(
        "The example notebooks were not found.",
        rule="they are part of the package",
        received=str(package),
        next_step="Install the package again, or run `llmkernel demo --no-notebook`.",
    )
