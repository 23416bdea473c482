"""LLM-CUDA: write what a GPU kernel should do, get one that was proved against your reference.

Heavy parts are imported on first use, so that starting a Jupyter kernel costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "GeneratedKernel": "llmkernel.synthesis.generated_kernel",
    "LLMKernelError": "llmkernel.errors",
    "NotAcceptedError": "llmkernel.errors",
    "Report": "llmkernel.evaluation.report",
    "evaluate": "llmkernel.evaluation.evaluate",
    "synthesize": "llmkernel.synthesis.synthesize",
}

__all__ = [
    "GeneratedKernel",
    "LLMKernelError",
    "NotAcceptedError",
    "Report",
    "evaluate",
    "load_ipython_extension",
    "synthesize",
    "unload_ipython_extension",
]

if TYPE_CHECKING:
    from llmkernel.errors import LLMKernelError, NotAcceptedError
    from llmkernel.evaluation.evaluate import evaluate
    from llmkernel.evaluation.report import Report
    from llmkernel.synthesis.generated_kernel import GeneratedKernel
    from llmkernel.synthesis.synthesize import synthesize


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        from importlib import import_module

        value = getattr(import_module(_EXPORTS[name]), name)
        if name in ("GeneratedKernel", "Report", "evaluate", "synthesize"):
            import_module("llmkernel.display.forms")
        # A submodule of the same name must not shadow the function.
        globals()[name] = value
        return value
    raise AttributeError(f"module 'llmkernel' has no attribute {name!r}")


def load_ipython_extension(ipython: Any) -> None:
    """Register the magics: ``%load_ext llmkernel``."""
    from llmkernel.extension import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Remove the magics again."""
    from llmkernel.extension import unload

    unload(ipython)
