"""Device memory for the images of one execution."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Mapping, Sequence

from llmkernel.devices.base import Image
from llmkernel.devices.cuda.driver import Driver

ALIGNMENT = 256
_MAX_SHIFT = 16


class Arena:
    """One allocation that grows, with images placed anew for every execution.

    Between executions the order and the addresses of the buffers change, so that a kernel that keeps an
    address from the last call, or relies on which array lies behind which, is seen.
    """

    def __init__(self, driver: Driver, seed: int = 0) -> None:
        self._driver = driver
        self._random = random.Random(seed)  # noqa: S311 - addresses, not secrets
        self._address = 0
        self._size = 0

    def place(self, images: Mapping[str, Image], order: Sequence[str]) -> dict[str, int]:
        """Return the device address of each image's first byte (its front guard).

        The payload of an image is `misalign_bytes` past a multiple of 256.
        """
        names = list(order)
        self._random.shuffle(names)
        places: dict[str, int] = {}
        end = 0
        for name in names:
            image = images[name]
            end += ALIGNMENT * self._random.randrange(_MAX_SHIFT)
            payload = -(-(end + image.offset) // ALIGNMENT) * ALIGNMENT + image.misalign_bytes
            places[name] = payload - image.offset
            end = places[name] + image.data.nbytes
        self._reserve(end)
        return {name: self._address + place for name, place in places.items()}

    def _reserve(self, nbytes: int) -> None:
        if nbytes <= self._size:
            return
        self.free()
        self._address = self._driver.allocate(nbytes)
        self._size = nbytes

    def free(self) -> None:
        """Give the memory back."""
        if self._address:
            self._driver.call("cuMemFree_v2", self._address)
        self._address = self._size = 0


def upload(driver: Driver, address: int, image: Image, stream: int) -> None:
    """Copy a whole image to the device, in stream order."""
    if image.data.nbytes:
        source = image.data.ctypes.data_as(ctypes.c_void_p)
        driver.call("cuMemcpyHtoDAsync_v2", address, source, image.data.nbytes, stream)


def download(driver: Driver, image: Image, address: int) -> None:
    """Copy a whole image back, after everything on the device has ended."""
    if image.data.nbytes:
        driver.call("cuMemcpyDtoH_v2", image.data.ctypes.data_as(ctypes.c_void_p), address, image.data.nbytes)
