"""``%load_ext llmkernel`` registers the magics, their completion and the options; unloading removes them."""

from __future__ import annotations

from typing import Any

from llmkernel.config import register_config, unregister_config
from llmkernel.display.front_end import ask_front_end, unwatch_front_end, watch_front_end
from llmkernel.magics.ask import AskMagics
from llmkernel.magics.ask_lines import AskLines
from llmkernel.magics.completion import MagicMatcher
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.inspection import register_inspection, unregister_inspection
from llmkernel.magics.kernels import KernelsMagics
from llmkernel.magics.placement import CellPlacement
from llmkernel.magics.session import register_session, unregister_session
from llmkernel.magics.usage import UsageMagics

# Every magic in these is completed; a cell magic also has its place in the cell checked.
MAGICS = (CudaFromMagics, CudaMagics, KernelsMagics, AskMagics, UsageMagics)

_ATTRIBUTE = "_llmkernel_loaded"


def load(ipython: Any) -> None:
    """Register everything with one shell; a second call changes nothing."""
    if getattr(ipython, _ATTRIBUTE, None) is not None:
        return
    register_config(ipython)
    for magics in MAGICS:
        ipython.register_magics(magics)
    cell_magics, line_magics = (
        tuple(name for magics in MAGICS for name in magics.magics[kind]) for kind in ("cell", "line")
    )

    def is_known(kind: str, name: str) -> bool:
        manager = ipython.magics_manager
        return name in manager.magics[kind] or name in manager.lazy_magics

    transformers = (CellPlacement(cell_magics, line_magics, is_known), AskLines())
    # First, so that the body is taken before IPython strips prompts and trailing blanks from it.
    ipython.input_transformers_cleanup[:0] = transformers
    matcher = MagicMatcher(ipython, cell_magics, line_magics)
    ipython.Completer.custom_matchers.append(matcher)
    register_inspection(ipython)
    register_session(ipython)
    watch_front_end(ipython)
    ask_front_end(ipython)
    setattr(ipython, _ATTRIBUTE, (transformers, matcher))


def unload(ipython: Any) -> None:
    """Remove from one shell what `load` added."""
    loaded = ipython.__dict__.pop(_ATTRIBUTE, None)
    if loaded is None:
        return
    transformers, matcher = loaded
    for transformer in transformers:
        _discard(ipython.input_transformers_cleanup, transformer)
    _discard(ipython.Completer.custom_matchers, matcher)
    for magics in MAGICS:
        for kind in ("line", "cell"):
            for name in magics.magics[kind]:
                ipython.magics_manager.magics[kind].pop(name, None)
        instance = ipython.magics_manager.registry.pop(magics.__name__, None)
        _discard(ipython.configurables, instance)
    unwatch_front_end(ipython)
    unregister_session(ipython)
    unregister_inspection(ipython)
    unregister_config(ipython)


def _discard(items: list[Any], item: Any) -> None:
    items[:] = [other for other in items if other is not item]
