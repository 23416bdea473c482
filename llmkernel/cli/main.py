"""``llmkernel COMMAND``: a table of commands; the module of one is imported only when it is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from llmkernel import __version__
from llmkernel.errors import LLMKernelError

# Each module has add_arguments(parser) and run(arguments) -> exit status.
COMMANDS = {
    "demo": "Run a small notebook job here, offline, and say what was found.",
    "doctor": "Say what works here: devices, compilers, providers, and what to install.",
    "install": "Make the Jupyter kernel known to Jupyter.",
    "uninstall": "Remove the Jupyter kernel from Jupyter's list.",
    "bench": "Measure every figure that the project publishes and write it as JSON.",
    "verify": "Verify a record or a .cu file again.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0, 1 when the command failed, 2 when it cannot be understood, 130 when it was interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in {"-h", "--help"}:
        print(_overview(), end="")
        return 0 if words else 2
    if words[0] == "--version":
        print(f"llmkernel {__version__}")
        return 0
    command = words[0]
    if command not in COMMANDS:
        near = get_close_matches(command, COMMANDS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        print(f"llmkernel: there is no command {command!r}.{hint}\n\n{_overview()}", file=sys.stderr, end="")
        return 2
    module = import_module(f"llmkernel.cli.{command}")
    parser = argparse.ArgumentParser(prog=f"llmkernel {command}", description=COMMANDS[command])
    module.add_arguments(parser)
    arguments = parser.parse_args(words[1:])
    try:
        return int(module.run(arguments))
    except LLMKernelError as error:
        print(f"llmkernel {command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"llmkernel {command}: interrupted", file=sys.stderr)
        return 130


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return (
        "usage: llmkernel COMMAND [options]\n\n"
        + "\n".join(lines)
        + "\n\nllmkernel COMMAND --help explains one.\n"
    )
