"""Run a notebook's cells in a real kernel, as nbconvert and papermill would, and read what they left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

TIMEOUT = 300
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def make_notebook(cells: Iterable[str]) -> nbformat.NotebookNode:
    """Return a notebook of code cells."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def run_notebook(
    cells: Iterable[str] | nbformat.NotebookNode,
    kernel_name: str = "llm-cuda",
    env: Mapping[str, str] | None = None,
    *,
    cwd: Path,
    allow_errors: bool = False,
    save_as: str | None = None,
    timeout: int = TIMEOUT,
) -> nbformat.NotebookNode:
    """Run cells from the first to the last in a kernel of their own.

    Parameters
    ----------
    cells : iterable of str, or a notebook
        What the cells hold.
    kernel_name : str
        As Jupyter knows it; the fixture `jupyter` installs ``llm-cuda``.
    env : mapping, optional
        Variables for the kernel, on top of this process's.
    cwd : Path
        The notebook's directory.
    allow_errors : bool
        Go on after a cell that fails; otherwise nbclient's CellExecutionError is raised.
    save_as : str, optional
        File name in `cwd`. The kernel is told this path, as a Jupyter server would tell it.
    timeout : int
        Seconds for one cell.

    Returns
    -------
    nbformat.NotebookNode
        With its outputs, valid by the format's schema.
    """
    notebook = cells if isinstance(cells, nbformat.NotebookNode) else make_notebook(cells)
    environment = {**os.environ, **(env or {})}
    if save_as:
        environment["JPY_SESSION_NAME"] = str(cwd / save_as)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name=kernel_name,
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(cwd)}},
    )
    client.execute(env=environment)
    nbformat.validate(notebook)
    if save_as:
        nbformat.write(notebook, cwd / save_as)
    return notebook


def text_of(cell: Any) -> str:
    """Return everything that a cell shows as plain text, errors included."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append("\n".join(output.traceback))
        else:
            parts.append(output.data.get("text/plain", ""))
    return _COLOUR.sub("", "\n".join(parts))


def data_of(cell: Any, mime: str) -> list[Any]:
    """Return a cell's outputs in one MIME type."""
    shown = (output for output in cell.outputs if output.output_type in ("display_data", "execute_result"))
    return [output.data[mime] for output in shown if mime in output.data]
