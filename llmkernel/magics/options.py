"""The options of the cell magics, declared once for parsing, help, completion and the reference pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from IPython.core.magic_arguments import argument, argument_group

from llmkernel.config import DEVICES, LIVE_MODES, REPLAY_MODES, LLMKernel
from llmkernel.magics import parsing

_EXAMPLE = (
    argument(
        "--inputs",
        metavar="ARGS",
        help="""An example call's arguments, as between its parentheses: "x, w=weights[:64], eps=1e-6".
        Default: the variables called like the reference's parameters; a parameter with a default keeps it
        unless its variable is an array or a number.""",
    ),
    argument(
        "--shapes",
        metavar="SIZES",
        type=parsing.workloads,
        help='Further sizes to verify at: "M=1023,N=4097;M=1,N=7".',
    ),
    argument(
        "--tolerance",
        metavar="NUMBER",
        type=parsing.positive_float,
        help="""Widest allowed error, relative to the scale of each row; the report then says so.
        Default: derived from the reference's own error against float64.""",
    ),
    argument(
        "--baseline",
        action="append",
        metavar="NAME",
        help="Another callable with the same parameters, to be timed beside the kernel; may be repeated.",
    ),
)
_PLACE = (
    argument(
        "--checks",
        metavar="TOOLS",
        help="""Tools to run besides: memcheck, initcheck, racecheck, synccheck, several of them with commas between,
        or all. On a GPU they are compute-sanitizer's, about two seconds each; on the cpu device checked mode answers
        for them. A full verification runs checked mode over a few small draws anyway, on both devices.""",
    ),
    argument("--device", choices=DEVICES, help="Where candidates run; auto: the GPU where there is one."),
    argument("--arch", metavar="NAME", help="Architecture to compile for, such as sm_90a."),
)
_SHOWN = (
    argument(
        "--live",
        choices=LIVE_MODES,
        help="""What is shown while the cell runs. auto: widgets where the front end says that it has them; widget:
        also where it does not; keep: widgets that stay below the report, to compare attempts; plain: none.""",
    ),
    argument("--quiet", action="store_true", default=None, help="Show the final report only."),
)
_REFERENCE = """A callable of the notebook by name: a function, a lambda with a name, obj.method
        or a torch module."""

CUDA_FROM_ARGUMENTS = (
    argument("reference", metavar="REFERENCE", help=_REFERENCE),
    argument_group("what is computed"),
    argument(
        "--name",
        metavar="NAME",
        type=parsing.identifier,
        help="Name of the generated kernel; default: REFERENCE_cuda.",
    ),
    *_EXAMPLE,
    argument_group("who writes it"),
    argument(
        "--provider",
        metavar="NAME",
        help="claude, codex, openai-compatible, library or an installed plug-in.",
    ),
    argument("--model", metavar="ID", help="Model id, in the provider's own words."),
    argument("--effort", metavar="LEVEL", help="Reasoning effort, in the provider's own words."),
    argument("--attempts", metavar="N", type=parsing.positive_int, help="Rounds before giving up."),
    argument(
        "--max-tokens",
        metavar="N",
        type=parsing.positive_int,
        help="Limit of one reply in tokens, reasoning included.",
    ),
    argument(
        "--target",
        metavar="RATIO",
        type=parsing.positive_float,
        help="Speed-up over the best baseline at which the search for a faster candidate stops.",
    ),
    argument(
        "--replay",
        choices=REPLAY_MODES,
        help="""auto: use a record that fits, else ask; only: never ask a provider;
        never: ask even where a record fits.""",
    ),
    argument(
        "--timeout",
        metavar="SECONDS",
        type=parsing.positive_float,
        help="Wall-clock limit of the whole cell in seconds.",
    ),
    argument_group("where it runs"),
    *_PLACE,
    argument_group("what is shown"),
    argument(
        "--show-prompt",
        action="store_true",
        help="Show what would be sent, and stop: nothing is sent, nothing is assigned.",
    ),
    *_SHOWN,
)

CUDA_ARGUMENTS = (
    argument(
        "name",
        metavar="NAME",
        nargs="?",
        type=parsing.identifier,
        help="Name that the kernel gets in the notebook; default: the launch header's.",
    ),
    argument_group("what is computed"),
    argument(
        "--from",
        dest="reference",
        metavar="REFERENCE",
        help=_REFERENCE + " Without it the kernel stays unverified.",
    ),
    *_EXAMPLE,
    argument_group("where it runs"),
    *_PLACE,
    argument_group("what is shown"),
    *_SHOWN,
)

# Left to the provider, which has the configuration too: only what a line names makes a record of another one
# unfit, and a model that was configured for one provider is not asked of another.
_OF_THE_PROVIDER = ("provider", "model", "effort", "max_tokens")


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """What the lines of both cell magics say, the configuration's defaults filled in.

    `CUDA_ARGUMENTS` and `CUDA_FROM_ARGUMENTS` have the meanings.
    """

    name: str
    inputs: str | None
    shapes: tuple[dict[str, int], ...] | None
    tolerance: float | None
    baseline: tuple[str, ...]
    device: str
    arch: str | None
    checks: str | None
    live: str
    quiet: bool


@dataclass(frozen=True, kw_only=True)
class CudaOptions(CellOptions):
    """One line of ``%%cuda``; without a reference the kernel stays unverified."""

    reference: str | None


@dataclass(frozen=True, kw_only=True)
class CudaFromOptions(CellOptions):
    """One line of ``%%cuda_from``."""

    reference: str
    provider: str | None
    model: str | None
    effort: str | None
    attempts: int
    max_tokens: int | None
    target: float | None
    replay: str
    timeout: float | None
    show_prompt: bool


Options = TypeVar("Options", bound=CellOptions)


def parse_options(
    kind: type[Options], magic: Callable[..., Any], line: str, config: LLMKernel, name: str = ""
) -> Options:
    """Parse the line of a cell.

    Parameters
    ----------
    kind : type
        `CudaFromOptions` or `CudaOptions`.
    magic : callable
        The method that `declare` decorated.
    line : str
    config : LLMKernel
        Where the line is silent.
    name : str
        Of a kernel that the line gives none; default: the reference's with ``_cuda``.

    Raises
    ------
    llmkernel.errors.UsageError
        For an unknown option, a missing or bad value, or a word too many.
    """
    given = vars(parsing.parse_line(magic, line))
    given["baseline"] = tuple(given["baseline"] or ())
    given["name"] = given["name"] or name or f"{given['reference'].rpartition('.')[2]}_cuda"
    for field in fields(kind):
        if given[field.name] is None and field.name not in _OF_THE_PROVIDER:
            given[field.name] = getattr(config, field.name, None)
    return kind(**given)
