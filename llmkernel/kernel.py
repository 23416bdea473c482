"""The Jupyter kernel: IPython's own, with the magics loaded."""

from __future__ import annotations

from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from traitlets import List, Type

from llmkernel import __version__
from llmkernel.config import LLMKernel

KERNEL_NAME = "llm-cuda"
DISPLAY_NAME = "LLM-CUDA"

_BANNER = f"""LLM-CUDA {__version__}: Python with CUDA kernels that are proved against your own reference.
%%cuda_from? explains how to ask for one.
"""


class LLMCudaKernel(IPythonKernel):  # type: ignore[misc]
    """IPython's kernel with ``llmkernel`` loaded: whatever works in an IPython notebook works here."""

    implementation = "llm-cuda"
    implementation_version = __version__
    help_links = List(
        [
            {
                "text": "CUDA C++ Programming Guide",
                "url": "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
            },
            {"text": "IPython Reference", "url": "https://ipython.readthedocs.io/en/stable/"},
            {"text": "NumPy Reference", "url": "https://numpy.org/doc/stable/reference/"},
            {"text": "CuPy Reference", "url": "https://docs.cupy.dev/en/stable/reference/"},
            {"text": "PyTorch Reference", "url": "https://docs.pytorch.org/docs/stable/"},
        ]
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shell.extension_manager.load_extension("llmkernel")

    def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> dict[str, Any]:
        """Explain what stands at the cursor; on the line of a magic, where that means nothing, the magic."""
        from llmkernel.magics.inspection import magic_at

        found: dict[str, Any] = super().do_inspect(code, cursor_pos, detail_level, omit_sections)
        magic = "" if found.get("found") else magic_at(code, cursor_pos)
        if magic:
            found = super().do_inspect(magic, len(magic), detail_level, omit_sections)
        return found

    @property
    def banner(self) -> str:
        """What ``jupyter console`` shows first."""
        return _BANNER + str(super().banner or "")


class LLMCudaKernelApp(IPKernelApp):  # type: ignore[misc]
    """IPython's kernel application: same files, same options, plus ``--LLMKernel.…``."""

    kernel_class = Type(LLMCudaKernel, klass="ipykernel.kernelbase.Kernel").tag(config=True)
    classes = [*IPKernelApp.classes, LLMKernel]  # noqa: RUF012 - as traitlets wants it


def launch(arguments: list[str]) -> None:
    """Run a kernel in this process until it is shut down; `arguments` as in ``-f connection.json``."""
    LLMCudaKernelApp.launch_instance(arguments)
