"""Executes the tutorial and keeps what its cells show: ``python docs/tutorial/run.py [NAME …]``.

Outputs are committed, so that the notebooks can be read on GitHub and the site is built where no kernel can run;
`tests/notebooks/test_tutorial.py` runs them again and compares `outcomes`. Kernels run on the `cpu` device. Beside a
notebook that asks a provider lie the replies, written by hand: a server on the loopback interface sends them, no model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from llmkernel.cli.demo import execute_notebook

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NOTEBOOKS = tuple(sorted(path.name for path in HERE.glob("[0-9]*.ipynb")))
MODEL = "replies-written-by-hand"
_PERSONAL = re.compile(r"^(ANTHROPIC|OPENAI|OPENROUTER|LLMKERNEL)_|(API_KEY|AUTH_TOKEN)$")
_SECONDS = re.compile(r"\b\d+(?:\.\d+)? (?:ns|µs|ms|s|min)\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run(name: str) -> NotebookNode:
    """Return a notebook of the tutorial, executed in a folder of its own."""
    notebook = nbformat.read(HERE / name, as_version=4)
    replies = HERE / name.replace(".ipynb", ".replies.json")
    with tempfile.TemporaryDirectory() as folder, _served(replies) as address:
        work = Path(folder) / "tutorial"
        work.mkdir()
        env = _environment(Path(folder), address)
        execute_notebook(notebook, work, ["--LLMKernel.device=cpu"], env)
        _forget_folder(notebook, Path(folder))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            # GitHub and the site show the HTML; a notebook stays below 300 kB.
            if "text/html" in output.get("data", ()):
                output.data.pop("text/markdown", None)
    notebook.metadata.pop("widgets", None)
    nbformat.validate(notebook)
    return notebook


def _forget_folder(notebook: NotebookNode, folder: Path) -> None:
    """Write ``~`` for the temporary folder, which is also the home of the kernel."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            text = json.dumps(output).replace(json.dumps(str(folder))[1:-1], "~")
            output.update(nbformat.from_dict(json.loads(text)))


def outcomes(notebook: NotebookNode) -> list[list[str]]:
    """Return what must come out again, cell by cell: verdicts, errors and what is printed, but no durations.

    Of a cell with the tag ``may-differ``, whose words are the compiler's or this machine's, nothing is compared.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        [] if "may-differ" in cell.metadata.get("tags", ()) else [_gist(output) for output in cell.outputs]
        for cell in cells
    ]


def _gist(output: NotebookNode) -> str:
    if output.output_type == "error":
        # What the error goes on to say is in the report, and may name another draw.
        return f"{output.ename}: {output.evalue.splitlines()[0]}"
    text = output.text if output.output_type == "stream" else output.data.get("text/plain", "")
    text = _SECONDS.sub("… s", _COLOUR.sub("", text))
    # Of a report the verdict: which draw failed first, and by how much, may differ.
    return text.split("\n", 1)[0] if "What was not checked" in text else text


def _environment(folder: Path, address: str) -> dict[str, str]:
    """Return variables without anything of the person who runs this: keys, settings, own kernels."""
    kept = {name: value for name, value in os.environ.items() if not _PERSONAL.search(name)}
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept |= {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring", "XDG_CACHE_HOME": cache}
    kept |= {
        name: str(folder / name.lower())
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "IPYTHONDIR")
    }
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if address:
        kept |= {"LLMKERNEL_OPENAI_BASE_URL": address, "LLMKERNEL_OPENAI_MODEL": MODEL}
    return kept


@contextmanager
def _served(replies: Path) -> Iterator[str]:
    """Serve the replies of a file, where it exists; yield the server's address."""
    if not replies.is_file():
        yield ""
        return
    command = [sys.executable, "-m", "tests.wire.server", "--script", str(replies)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.stdin.close()
        server.stdout.read()


if __name__ == "__main__":
    for name in sys.argv[1:] or NOTEBOOKS:
        nbformat.write(run(Path(name).name), HERE / Path(name).name)
        print(f"{name}: {(HERE / Path(name).name).stat().st_size / 1024:.0f} kB")
