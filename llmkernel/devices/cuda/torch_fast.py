"""The shortest way from torch tensors to a launch: tensors like those of the last call are recognised in one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llmkernel.devices.cuda.runtime import PreparedCall


def fast_path(
    torch: Any, call: PreparedCall, arguments: Sequence[Any], ordinal: int
) -> Callable[[tuple[Any, ...]], Any] | None:
    """Return a function that launches `call` for tensors like `arguments`, and returns None for any others.

    The comparison is the one that torch's own compiler guards its code with: type, dtype, device, sizes, strides,
    requires_grad, and lazily negated or conjugated views, for all tensors in one call of C++.

    Parameters
    ----------
    torch : module
    call : PreparedCall
    arguments : sequence of torch.Tensor
        All tensors, in call order, on the current GPU.
    ordinal : int

    Returns
    -------
    callable or None
        None where torch does not offer this, or the call has scratch or several results.
    """
    guards = torch._C._dynamo.guards  # noqa: SLF001 - what torch's compiled code calls
    if len(call.recipe) != 1 or call.results != (0,) or not hasattr(guards, "TensorGuards"):
        return None
    try:
        check = guards.TensorGuards(
            *arguments,
            dynamic_dims_sizes=[list(a.shape) for a in arguments],
            dynamic_dims_strides=[list(a.stride()) for a in arguments],
        ).check
        if not check(*arguments):
            return None
    except (TypeError, RuntimeError, SystemError):
        return None
    ((shape, strides, dtype),) = call.recipe
    empty = guards._empty_strided_cuda  # noqa: SLF001
    current_stream = torch._C._cuda_getCurrentRawStream  # noqa: SLF001
    parts = call.parts()
    if parts is None:
        return None
    pointers, config, launch, lock = parts

    def fast(given: tuple[Any, ...]) -> Any:
        try:
            if not check(*given):
                return None
        except TypeError:  # another number of arguments, or something that is no tensor
            return None
        result = empty(shape, strides, dtype)
        addresses = [a.data_ptr() for a in given]
        addresses.append(result.data_ptr())
        # Written out and not called: a function call here costs as much as the comparison above.
        with lock:
            for slot, index, offset in pointers:
                slot.value = addresses[index] + offset
            config.stream = current_stream(ordinal)
            code = launch()
        if code:
            call.launch(addresses, config.stream)
        return result

    return fast
