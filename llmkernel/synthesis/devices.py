"""Devices of the notebook's own process: they run accepted kernels only."""

from __future__ import annotations

from typing import Any

from llmkernel.devices.base import Device, available_devices

_here: dict[str, Device] = {}

# Facts that change from minute to minute say nothing about whether a kernel must be verified again.
_VOLATILE = ("clock", "temperature", "power", "memory_free", "utilization")


def device_here(name: str) -> Device:
    """Return this process's device of that name, the same one every time."""
    if name not in _here:
        _here[name] = available_devices()[name]()
    return _here[name]


def environment_of(device: str) -> dict[str, Any]:
    """Return what a record keeps of the place where a kernel was verified: limits and versions."""
    here = device_here(device)
    versions = {k: v for k, v in here.versions().items() if not any(w in k for w in _VOLATILE)}
    return {**here.limits().to_dict(), "versions": versions}
