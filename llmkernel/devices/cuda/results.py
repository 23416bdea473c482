"""Results as the reference returns them, where that is not what its arguments are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from llmkernel.problem.dtypes import DTYPES, dtype_name


class ConvertedResults:
    """A caller whose results are moved to another kind or place; that waits for the GPU where it must.

    Parameters
    ----------
    call : callable
        Returns an array, a tuple of arrays or None.
    kind : str
        ``numpy``, ``cupy``, ``torch`` or ``scalar``.
    is_on_gpu : bool
        For torch: where results belong.
    """

    def __init__(self, call: Callable[..., Any], kind: str, *, is_on_gpu: bool) -> None:
        self._call = call
        self._kind = kind
        self._is_on_gpu = is_on_gpu

    def __call__(self, *arguments: Any) -> Any:
        """Call, and convert what comes back."""
        results = self._call(*arguments)
        if isinstance(results, tuple):
            return tuple([self._convert(result) for result in results])
        return None if results is None else self._convert(results)

    def _convert(self, array: Any) -> Any:
        if self._kind == "scalar":
            return array.item()
        if self._kind == "numpy":
            return to_numpy(array)
        if self._kind == "cupy":
            import cupy

            return cupy.asarray(to_numpy(array) if type(array).__module__ == "torch" else array)
        return to_torch(to_numpy(array), is_on_gpu=self._is_on_gpu)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array with the values of a NumPy, CuPy or torch array."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get") and not hasattr(array, "detach"):
        return np.asarray(array.get())
    host = array.detach().cpu().resolve_conj().resolve_neg()
    if str(host.dtype) == "torch.bfloat16":
        import torch

        return np.asarray(host.view(torch.int16).numpy().view(DTYPES["bfloat16"].numpy))
    return np.asarray(host.numpy())


def to_torch(array: np.ndarray[Any, Any], *, is_on_gpu: bool = False) -> Any:
    """Return a torch tensor; in host memory it shares the array's."""
    import torch

    if dtype_name(array.dtype) == "bfloat16":
        tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(array)
    return tensor.cuda() if is_on_gpu else tensor
