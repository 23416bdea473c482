"""Frames between the notebook and its workers: a JSON header and raw blobs, over pipes.

Nothing is unpickled on the notebook's side: a worker that went wrong can send wrong numbers, not code. Arrays travel as
bytes and not through shared memory, so that a killed worker leaves nothing behind (docs/adr/0002).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from llmkernel.devices.base import Bytes

_MAGIC = b"LLMK"
_PREFIX = struct.Struct("<4sIQ")
MAX_HEADER_BYTES = 64 << 20
_PIECE = 1 << 20


class FrameError(Exception):
    """The other side sent something that is not a frame, or closed in the middle of one."""


def write_frame(stream: BinaryIO, header: dict[str, Any], blobs: Sequence[Bytes] = ()) -> None:
    """Write one frame and flush."""
    write_parts(stream, encode_head(header, blobs), blobs)


def encode_head(header: dict[str, Any], blobs: Sequence[Bytes] = ()) -> bytes:
    """Return what stands before the blobs of a frame."""
    text = json.dumps({**header, "blobs": [int(b.nbytes) for b in blobs]}).encode()
    return _PREFIX.pack(_MAGIC, len(text), sum(int(b.nbytes) for b in blobs)) + text


def write_parts(stream: BinaryIO, head: bytes, blobs: Sequence[Bytes]) -> None:
    """Write a frame whose head is ready, and flush."""
    stream.write(head)
    for blob in blobs:
        view = np.ascontiguousarray(blob).data.cast("B") if blob.nbytes else memoryview(b"")
        stream.writelines(view[start : start + _PIECE] for start in range(0, len(view), _PIECE))
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], list[Bytes]]:
    """Read one frame.

    Raises
    ------
    EOFError
        The other side closed between frames.
    FrameError
        Anything else that is not a whole frame.
    """
    prefix = stream.read(_PREFIX.size)
    if not prefix:
        raise EOFError
    if len(prefix) < _PREFIX.size:
        raise FrameError("closed inside a frame")
    magic, header_bytes, blob_bytes = _PREFIX.unpack(prefix)
    if magic != _MAGIC or header_bytes > MAX_HEADER_BYTES:
        raise FrameError("not a frame")
    try:
        header = json.loads(_exactly(stream, header_bytes))
        sizes = [int(n) for n in header.pop("blobs")]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise FrameError(f"unreadable header: {error}") from None
    if min(sizes, default=0) < 0 or sum(sizes) != blob_bytes:
        raise FrameError("blobs that do not add up")
    blobs = []
    for size in sizes:
        try:
            blob = np.empty(size, np.uint8)
        except (MemoryError, ValueError) as error:
            raise FrameError(f"a blob that does not fit into memory: {error}") from None
        view = blob.data
        done = 0
        while done < size:
            count = stream.readinto(view[done : done + _PIECE])  # type: ignore[attr-defined]
            if not count:
                raise FrameError("closed inside a blob")
            done += count
        blobs.append(blob)
    return header, blobs


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise FrameError("closed inside a header")
    return data
