"""The shortest way from torch tensors to a launch: tensors like those of the last call are recognised in one step."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from llmkernel.devices.cuda.runtime import PreparedCall

Bind = Callable[[Callable[..., Any]], Callable[..., Any]]


def fast_path(torch: Any, call: PreparedCall, arguments: Sequence[Any], ordinal: int) -> Bind | None:
    """Return what makes the method that launches `call` for tensors like `arguments`.

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
        Takes the function that is called with all other arguments, and returns a function that can be a class's
        `__call__`: it ignores its first argument. None where torch does not offer this, or the call has scratch,
        several results, or arrays that do not come first in its kernel's parameters.
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
    parts = call.parts(len(arguments) + 1)
    if parts is None:
        return None
    storage, config, launch, lock = parts
    pack = struct.Struct(f"{len(arguments) + 1}Q").pack_into
    address = torch.Tensor.data_ptr

    def bind(otherwise: Callable[..., Any]) -> Callable[..., Any]:
        # Written out in one function: each further Python call would cost as much as the comparison.
        def fast(_: Any, *given: Any, **named: Any) -> Any:
            try:
                is_known = not named and check(*given)
            except TypeError:  # another number of arguments, or something that is no tensor
                is_known = False
            if not is_known:
                return otherwise(*given, **named)
            result = empty(shape, strides, dtype)
            stream = current_stream(ordinal)
            with lock:
                pack(storage, 0, *map(address, given), address(result))
                config.stream = stream
                code = launch()
            if code:
                call.launch([*map(address, given), address(result)], stream)
            return result

        return fast

    return bind
