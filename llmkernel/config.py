"""Every option's default, as traitlets: ``c.LLMKernel.attempts = 2`` in ``ipython_kernel_config.py``.

An option on a magic's line wins over these; ``%config LLMKernel.attempts = 2`` changes one for the session.
"""

from __future__ import annotations

from typing import Any

from traitlets import Bool, Enum, Float, Int, TraitError, Unicode, validate
from traitlets.config import Configurable

from llmkernel.errors import ConfigurationError

DEVICES = ("auto", "cuda", "cpu")
REPLAY_MODES = ("auto", "only", "never")
LIVE_MODES = ("auto", "widget", "keep", "plain")


class LLMKernel(Configurable):  # type: ignore[misc]
    """Defaults of the magics and of `llmkernel.synthesize`."""

    provider = Unicode(
        None,
        allow_none=True,
        help="""Where replies come from: claude, codex, openai-compatible, library or an installed plug-in.
        None: the first one that is configured, else the offline library.""",
    ).tag(config=True)
    model = Unicode(
        None, allow_none=True, help="Model id, in the provider's own words. None: the provider's default."
    ).tag(config=True)
    effort = Unicode(
        None,
        allow_none=True,
        help="""Reasoning effort, in the provider's own words (low, medium, high…).
        None: the provider's default.""",
    ).tag(config=True)
    attempts = Int(4, min=1, help="Rounds of prompt, candidate and report before giving up.").tag(config=True)
    max_tokens = Int(
        None,
        allow_none=True,
        min=1,
        help="Limit of one reply in tokens, reasoning included. None: the provider's default.",
    ).tag(config=True)
    base_url = Unicode(
        None,
        allow_none=True,
        help="Address of the provider's server. None: the provider's own, or its environment variable.",
    ).tag(config=True)
    connect_timeout_s = Float(10.0, help="Longest wait for a connection to a provider, in seconds.").tag(
        config=True
    )
    read_timeout_s = Float(
        300.0, help="Longest wait for the next piece of a reply, in seconds; reasoning may be silent."
    ).tag(config=True)
    max_retries = Int(
        4,
        min=0,
        help="How often a request is sent again after a rate limit, an overload or a server's failure.",
    ).tag(config=True)
    max_wait_s = Float(
        120.0, help="Longest single wait that a provider may ask for, in seconds; a longer one ends the cell."
    ).tag(config=True)
    budget_usd = Float(
        None,
        allow_none=True,
        min=0.0,
        help="""Send no further request of a cell once its attempts have cost this much, or where the prompt alone
        would pass it, in US dollars, where prices are known. None: no limit.""",
    ).tag(config=True)
    notebook_budget_usd = Float(
        None,
        allow_none=True,
        min=0.0,
        help="""Send no further request once the notebook's requests have cost this much since the kernel
        started, in US dollars, where prices are known. None: no limit.""",
    ).tag(config=True)
    token_budget = Int(
        None,
        allow_none=True,
        min=1,
        help="""Send no further request of a cell once its attempts have taken this many tokens, input and output
        together, or where the prompt alone would pass it. None: no limit.""",
    ).tag(config=True)
    conversation_tokens = Int(
        20_000,
        min=0,
        help="How many tokens of earlier questions and answers %ask sends along; the oldest are dropped.",
    ).tag(config=True)
    device = Enum(
        DEVICES, "auto", help="Where candidates run. auto: the GPU where there is one, else the cpu device."
    ).tag(config=True)
    arch = Unicode(
        None,
        allow_none=True,
        help="Architecture to compile for, such as sm_90a. None: that of the device.",
    ).tag(config=True)
    checks = Unicode(
        "",
        help="""Tools to run besides those of every full verification, of compute-sanitizer on a GPU and of checked mode
        on the cpu device: memcheck, initcheck, racecheck, synccheck, several with commas between, or all.""",
    ).tag(config=True)
    target = Float(
        None,
        allow_none=True,
        help="""Speed-up over the best baseline at which a cell stops looking for a faster candidate.
        None: the first candidate that passes is accepted.""",
    ).tag(config=True)
    tolerance = Float(
        None,
        allow_none=True,
        help="""Widest allowed error, relative to the scale of each row.
        None: derived from the reference's own error against float64.""",
    ).tag(config=True)
    replay = Enum(
        REPLAY_MODES,
        "auto",
        help="""auto: use a record that fits, else ask a provider. only: never ask a provider.
        never: ask even where a record fits.""",
    ).tag(config=True)
    timeout = Float(
        None, allow_none=True, help="Wall-clock limit of one cell in seconds. None: no limit."
    ).tag(config=True)
    records_dir = Unicode(
        "kernels", help="Directory of the records; a relative one is beside the notebook."
    ).tag(config=True)
    live = Enum(
        LIVE_MODES,
        "auto",
        help="""What is shown while a cell runs. auto: widgets where the front end says that it has them, else plain.
        widget: widgets also where it does not say so. keep: widgets that stay below the report. plain: an output
        that is updated. None of it is left in the report.""",
    ).tag(config=True)
    quiet = Bool(False, help="Show the final report only, no live output.").tag(config=True)

    @validate("target", "tolerance", "timeout", "connect_timeout_s", "read_timeout_s", "max_wait_s")  # type: ignore[untyped-decorator]
    def _is_positive(self, proposal: Any) -> float | None:
        value: float | None = proposal["value"]
        if value is not None and not 0 < value < float("inf"):
            raise TraitError(
                f"LLMKernel.{proposal['trait'].name} is a positive, finite number, not {value!r}."
            )
        return value


_ATTRIBUTE = "_llmkernel_config"


def register_config(ipython: Any) -> None:
    """Make the options of one shell reachable for `get_config` and for ``%config LLMKernel``.

    A bad value in a configuration file does not stop the kernel: the first cell that needs it reports it.
    """
    try:
        config = LLMKernel(parent=ipython)
    except TraitError as error:
        setattr(ipython, _ATTRIBUTE, str(error))
        return
    setattr(ipython, _ATTRIBUTE, config)
    ipython.configurables.append(config)


def unregister_config(ipython: Any) -> None:
    """Undo `register_config`."""
    config = ipython.__dict__.pop(_ATTRIBUTE, None)
    ipython.configurables[:] = [c for c in ipython.configurables if c is not config]


def get_config(ipython: Any = None) -> LLMKernel:
    """Return the options of `ipython`, or the package's defaults where there is no shell.

    Raises
    ------
    llmkernel.errors.ConfigurationError
        When the configuration file holds a value that an option does not take.
    """
    config = getattr(ipython, _ATTRIBUTE, None)
    if isinstance(config, str):
        raise ConfigurationError(
            "The configuration of LLM-CUDA cannot be used.",
            received=config,
            next_step="Correct c.LLMKernel in the configuration file, then restart the kernel.",
        )
    return config if isinstance(config, LLMKernel) else LLMKernel()
