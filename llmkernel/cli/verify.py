"""``llmkernel verify FILE``: put a `.cu` file through the checks, against a reference, from the shell."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from llmkernel.cli.loading import load_object
from llmkernel.errors import UsageError

_SOURCE_FILE = "kernel.cu"
_MAX_BYTES = 4 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``llmkernel verify``."""
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a .cu file with a launch header, or a record's folder"
    )
    parser.add_argument(
        "--reference",
        metavar="MODULE:NAME",
        help="callable that defines the right answer; also PATH.py:NAME",
    )
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument("--inputs", metavar="MODULE:NAME", help="callable that returns the inputs, in order")
    inputs.add_argument(
        "--shapes",
        metavar="M=64,N=1000",
        default="",
        help="sizes and scalars by name, for inputs that are drawn from the header's signature",
    )
    parser.add_argument(
        "--dtype", metavar="float16 or T=float16", default="", help="what type variables stand for"
    )
    parser.add_argument(
        "--arrays",
        choices=("numpy", "torch", "cupy"),
        default="numpy",
        help="what drawn inputs are (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the drawn inputs (%(default)s)")
    parser.add_argument(
        "--device", choices=("auto", "cuda", "cpu"), default="auto", help="where it runs (%(default)s)"
    )
    parser.add_argument(
        "--checks",
        default="",
        metavar="TOOLS",
        help="tools to run besides those of a full verification, of compute-sanitizer on a GPU and of checked mode on "
        "the cpu device: memcheck, initcheck, racecheck, synccheck, several with commas between, or all",
    )
    parser.add_argument("--level", choices=("quick", "full"), default="full", help="(%(default)s)")
    parser.add_argument("--time", action="store_true", help="time it, if it passes")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        default="",
        metavar="OUT",
        help="print the report as JSON; with --gallery, write the score to OUT",
    )
    parser.add_argument(
        "--gallery",
        nargs="?",
        const="",
        metavar="DIR",
        help="judge the kernels of a gallery (tests/rogues) instead of FILE, and print the score",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="WORD",
        help="cases of the gallery whose name, kind or problem contains it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Verify a file and print the report.

    Returns
    -------
    int
        0 where it passed, or the whole gallery was judged right; else 1.

    Raises
    ------
    llmkernel.errors.UsageError
        For a file, a reference or inputs that cannot be found or used.
    llmkernel.errors.LLMKernelError
        Whatever `llmkernel.evaluate` raises.
    """
    if arguments.gallery is not None:
        from llmkernel.cli import gallery

        return gallery.run(
            arguments.gallery, arguments.device, arguments.only, arguments.json, _checks(arguments)
        )
    from llmkernel.evaluation.evaluate import evaluate

    source = _read(_file(arguments))
    reference = load_object(arguments.reference, "--reference")
    report = evaluate(
        source,
        reference,
        _inputs(arguments, source),
        device=arguments.device,
        level=arguments.level,
        checks=_checks(arguments),
        with_timing=arguments.time,
    )
    if arguments.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        from llmkernel.display.text import format_report

        width = min(shutil.get_terminal_size((100, 24)).columns, 120)
        print(format_report(report, width, is_colour=sys.stdout.isatty()))
    return 0 if report.is_passed else 1


def _file(arguments: argparse.Namespace) -> Path:
    # `--json kernel.cu`: what follows is the file, since only a gallery writes its JSON to one.
    words = [w for w in (arguments.file, arguments.json) if w and w != "-"]
    if len(words) == 1 and not arguments.reference:
        _read(Path(words[0]))  # a wrong path is told first
        raise UsageError(
            f"There is nothing to compare {words[0]} with.",
            rule="--reference MODULE:NAME, or PATH.py:NAME, is the callable that defines the right answer",
            next_step=f"For example: llmkernel verify {words[0]} --reference references.py:softmax",
        )
    if len(words) != 1:
        raise UsageError(
            "There is nothing to verify." if not words else "It is not clear what to verify.",
            rule="name one FILE and its --reference MODULE:NAME, or --gallery",
            received=" ".join(words) or "no FILE",
            next_step="For example: llmkernel verify kernel.cu --reference references.py:softmax",
        )
    return Path(words[0])


def _checks(arguments: argparse.Namespace) -> list[str]:
    return [c.strip() for c in arguments.checks.split(",") if c.strip()]


def _inputs(arguments: argparse.Namespace, source: str) -> list[Any]:
    if not arguments.inputs:
        from llmkernel.cli.drawing import draw

        return draw(source, arguments.shapes, arguments.dtype, arguments.arrays, arguments.seed)
    made = load_object(arguments.inputs, "--inputs")()
    if not isinstance(made, list | tuple):
        raise UsageError(
            "--inputs did not return inputs.",
            rule="the callable takes nothing and returns a list or tuple, one value for each input",
            received=type(made).__name__,
            next_step="Return [x] where there is one input.",
        )
    return list(made)


def _read(path: Path) -> str:
    if path.is_dir():
        path /= _SOURCE_FILE
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(
                f"{path} is too large for a candidate.",
                rule=f"at most {_MAX_BYTES >> 20} MiB",
                next_step="Name the .cu file itself.",
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read.",
            rule="FILE is a .cu file in UTF-8, or a record's folder",
            received=str(error),
            next_step="Check the path.",
        ) from error
