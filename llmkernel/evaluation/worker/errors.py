"""Errors of the package as JSON, so that a worker can report them and the notebook raise them."""

from __future__ import annotations

from typing import Any

import llmkernel.errors as errors
from llmkernel.devices.base import Diagnostic

_TRANSPORTABLE = (
    errors.CompileError,
    errors.UnsupportedFeatureError,
    errors.LaunchError,
    errors.DeviceUnavailableError,
    errors.WorkerError,
    errors.DeviceError,
    errors.LLMKernelError,
)


def error_to_dict(error: errors.LLMKernelError) -> dict[str, Any]:
    """Return JSON-able data that `error_from_dict` turns back into an equal error."""
    kind = next(c for c in _TRANSPORTABLE if isinstance(error, c))
    data = {k: v for k, v in error.__dict__.items() if not k.startswith("_")}
    if "diagnostics" in data:
        data["diagnostics"] = [vars(d) for d in data["diagnostics"]]
    return {"type": kind.__name__, **data}


def error_from_dict(data: dict[str, Any]) -> errors.LLMKernelError:
    """Rebuild an error; what is none becomes a `WorkerError`."""
    try:
        return _rebuilt(dict(data))
    except (TypeError, ValueError, AttributeError):
        return errors.WorkerError("The worker reported an error that it could not name.")


def _rebuilt(fields: dict[str, Any]) -> errors.LLMKernelError:
    name = fields.pop("type", "")
    kind = next((c for c in _TRANSPORTABLE if c.__name__ == name), errors.WorkerError)
    error = kind.__new__(kind)
    what = str(fields.get("what", "The worker reported an error that it could not name."))
    Exception.__init__(error, what)
    error.__dict__.update({"what": what, "rule": None, "received": None, "next_step": None})
    if "diagnostics" in fields:
        fields["diagnostics"] = tuple(Diagnostic(**d) for d in fields["diagnostics"])
    error.__dict__.update(fields)
    return error
