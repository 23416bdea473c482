"""``python -m llmkernel -f FILE`` is the kernel, ``python -m llmkernel doctor`` the command line."""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Start a kernel where the arguments are a kernel's, else run a command."""
    # Jupyter always passes options (-f FILE); a command is a word, and so is a mistyped one.
    if arguments and arguments[0].startswith("-") and arguments[0] not in {"-h", "--help", "--version"}:
        # `-m` put the notebook's directory first on sys.path: a random.py there must not break the start.
        # IPython adds it again before the first cell.
        if sys.path[:1] and Path(sys.path[0]) == Path.cwd():
            del sys.path[0]
        from llmkernel.kernel import launch

        launch(arguments)
        return 0
    from llmkernel.cli.main import main as command_line

    return command_line(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
