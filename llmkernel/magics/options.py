"""The options of ``%%cuda_from``, declared once for parsing, help, completion and the reference page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from IPython.core.magic_arguments import argument, argument_group, kwds, magic_arguments

from llmkernel.config import DEVICES, REPLAY_MODES, LLMKernel
from llmkernel.magics import parsing

ARGUMENTS = (
    argument(
        "reference",
        metavar="REFERENCE",
        help="""A callable of the notebook by name: a function, a lambda with a name, obj.method
        or a torch module.""",
    ),
    argument_group("what is computed"),
    argument(
        "--name",
        metavar="NAME",
        type=parsing.identifier,
        help="Name of the generated kernel; default: REFERENCE_cuda.",
    ),
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
    argument("--device", choices=DEVICES, help="Where candidates run; auto: the GPU where there is one."),
    argument("--arch", metavar="NAME", help="Architecture to compile for, such as sm_90a."),
    argument_group("what is shown"),
    argument(
        "--show-prompt",
        action="store_true",
        help="Show what would be sent, and stop: nothing is sent, nothing is assigned.",
    ),
    argument("--quiet", action="store_true", default=None, help="Show the final report only."),
)

USAGE = "%%cuda_from REFERENCE [options], and below it what the kernel should do"

# Left to the provider, which has the configuration too: only what a line names makes a record of another one
# unfit, and a model that was configured for one provider is not asked of another.
_OF_THE_PROVIDER = ("provider", "model", "effort", "max_tokens")


@dataclass(frozen=True)
class CudaFromOptions:
    """One line of ``%%cuda_from``, the configuration's defaults filled in; `ARGUMENTS` has the meanings."""

    reference: str
    name: str
    inputs: str | None
    shapes: tuple[dict[str, int], ...] | None
    tolerance: float | None
    baseline: tuple[str, ...]
    provider: str | None
    model: str | None
    effort: str | None
    attempts: int
    max_tokens: int | None
    target: float | None
    replay: str
    timeout: float | None
    device: str
    arch: str | None
    show_prompt: bool
    quiet: bool


def cuda_from_arguments(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the magic's method with `ARGUMENTS`."""
    for decorator in reversed(ARGUMENTS):
        magic = decorator(magic)
    # argparse fills in the usage with `%`, and IPython's formatter puts one more in front.
    magic = kwds(usage="%%cuda_from REFERENCE [options]\n    what the kernel should do, in your own words")(
        magic
    )
    decorated: Callable[..., Any] = magic_arguments("cuda_from")(magic)
    return decorated


def parse_options(magic: Callable[..., Any], line: str, config: LLMKernel) -> CudaFromOptions:
    """Parse the line of a ``%%cuda_from`` cell.

    Raises
    ------
    llmkernel.errors.UsageError
        For an unknown option, a missing or bad value, or a word too many.
    """
    given = vars(parsing.parse_line(magic, line))
    given["baseline"] = tuple(given["baseline"] or ())
    given["name"] = given["name"] or f"{given['reference'].rpartition('.')[2]}_cuda"
    for field in fields(CudaFromOptions):
        if given[field.name] is None and field.name not in _OF_THE_PROVIDER:
            given[field.name] = getattr(config, field.name, None)
    return CudaFromOptions(**given)
