"""``%load_ext llmkernel`` registers the magics, their completion and the options; unloading removes them."""

from __future__ import annotations

from typing import Any

from llmkernel.config import register_config, unregister_config
from llmkernel.magics.completion import MagicMatcher
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.kernels import KernelsMagics
from llmkernel.magics.placement import CellPlacement

# Every magic in these is completed; a cell magic also has its place in the cell checked.
MAGICS = (CudaFromMagics, CudaMagics, KernelsMagics)

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
    placement = CellPlacement(cell_magics)
    # First, so that the body is taken before IPython strips prompts and trailing blanks from it.
    ipython.input_transformers_cleanup.insert(0, placement)
    matcher = MagicMatcher(ipython, cell_magics, line_magics)
    ipython.Completer.custom_matchers.append(matcher)
    setattr(ipython, _ATTRIBUTE, (placement, matcher))


def unload(ipython: Any) -> None:
    """Remove from one shell what `load` added."""
    loaded = ipython.__dict__.pop(_ATTRIBUTE, None)
    if loaded is None:
        return
    placement, matcher = loaded
    _discard(ipython.input_transformers_cleanup, placement)
    _discard(ipython.Completer.custom_matchers, matcher)
    for magics in MAGICS:
        for kind in ("line", "cell"):
            for name in magics.magics[kind]:
                ipython.magics_manager.magics[kind].pop(name, None)
        instance = ipython.magics_manager.registry.pop(magics.__name__, None)
        _discard(ipython.configurables, instance)
    unregister_config(ipython)


def _discard(items: list[Any], item: Any) -> None:
    items[:] = [other for other in items if other is not item]
