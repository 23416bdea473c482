"""Which line of the `.cu` file an instruction belongs to, from the module's DWARF line table.

The table is a program for a small state machine (DWARF 4, section 6.2); only what finds a line is kept.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from llmkernel.devices.cpu.elf import read_elf

_SOURCE = "kernel.cu"
_EXTENDED, _COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = (
    0,
    1,
    2,
    3,
    4,
    8,
    9,
)
_END_SEQUENCE, _SET_ADDRESS = 1, 2

# Address, file name, line, and whether a sequence ends here.
Row = tuple[int, str, int, bool]


@lru_cache(maxsize=8)
def _rows(module: bytes) -> tuple[Row, ...]:
    try:
        section = read_elf(module).sections.get(".debug_line", (0, b""))[1]
        return tuple(_Program(section).rows())
    except (ValueError, IndexError, OverflowError, struct.error):
        return ()  # a line is a help, never worth an error of its own


def source_line(module: bytes, address: int) -> int:
    """Return the 1-based line for an address relative to the module's base; 0 when it is not known.

    For code of a header that was inlined, it is the line of the source last seen before it.
    """
    line = 0
    previous: Row | None = None
    for row in _rows(module):
        if previous is None or previous[3]:
            line = 0
        elif previous[0] <= address < row[0]:
            return line
        if row[1] == _SOURCE:
            line = row[2]
        previous = row
    return 0


def line_table(module: bytes) -> tuple[int, npt.NDArray[np.uint16]]:
    """Return where the code begins, from the module's base, and the line of each of its bytes.

    Returns
    -------
    begin : int
    lines : numpy.ndarray
        (bytes,) uint16; 0 for code of headers, and for lines beyond what it holds.
    """
    rows = _rows(module)
    if not rows:
        return 0, np.zeros(0, np.uint16)
    begin = min(row[0] for row in rows)
    lines = np.zeros(max(row[0] for row in rows) - begin, np.uint16)
    for (address, file, line, is_end), (following, *_) in itertools.pairwise(rows):
        if file == _SOURCE and not is_end and line < 1 << 16:
            lines[address - begin : max(following, address) - begin] = line
    return begin, lines


class _Program:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._minimum = self._line_base = self._line_range = self._opcode_base = 0
        self._operands: list[int] = []

    def rows(self) -> Iterator[Row]:
        """Yield the table's rows."""
        while self._at < len(self._data):
            length = self._number("I")
            end = self._at + length
            if self._number("H") != 4:
                self._at = end
                continue
            yield from self._unit(end)
            self._at = end

    def _unit(self, end: int) -> Iterator[Row]:
        files = self._header()
        address, file, line = 0, 1, 1
        while self._at < end:
            opcode = self._number("B")
            if opcode >= self._opcode_base:
                step = opcode - self._opcode_base
                address += step // self._line_range * self._minimum
                line += self._line_base + step % self._line_range
                yield address, files[file], line, False
            elif opcode == _EXTENDED:
                size = self._leb()
                after = self._at + size
                kind = self._number("B")
                if kind == _END_SEQUENCE:
                    yield address, files[file], line, True
                    address, file, line = 0, 1, 1
                elif kind == _SET_ADDRESS:
                    address = self._number("Q")
                self._at = after
            elif opcode == _COPY:
                yield address, files[file], line, False
            elif opcode == _SET_FILE:
                file = self._leb()
            elif opcode == _ADVANCE_LINE:
                line += self._leb(is_signed=True)
            else:
                address += self._advance(opcode)

    def _header(self) -> list[str]:
        """Read a unit's header, leave the position at its program, and return its files, by number from 1."""
        length = self._number("I")
        program = self._at + length
        values = struct.unpack_from("<BBBbBB", self._data, self._at)
        self._minimum, _, _, self._line_base, self._line_range, self._opcode_base = values
        self._at += 6
        self._operands = [0, *self._data[self._at : self._at + self._opcode_base - 1]]
        self._at += self._opcode_base - 1
        while self._text():  # include directories
            pass
        files = [""]
        while name := self._text():
            files.append(name.rsplit("/", 1)[-1])
            for _ in range(3):
                self._leb()
        self._at = program
        return files

    def _advance(self, opcode: int) -> int:
        """Read the operands of any other standard opcode, and return how far it moves the address."""
        if opcode == _ADVANCE_PC:
            return self._leb() * self._minimum
        if opcode == _CONST_ADD_PC:
            return (255 - self._opcode_base) // self._line_range * self._minimum
        if opcode == _FIXED_ADVANCE_PC:
            return self._number("H")
        for _ in range(self._operands[opcode]):
            self._leb()
        return 0

    def _number(self, code: str) -> int:
        (value,) = struct.unpack_from("<" + code, self._data, self._at)
        self._at += struct.calcsize(code)
        return int(value)

    def _text(self) -> str:
        end = self._data.index(b"\0", self._at)
        text = self._data[self._at : end].decode(errors="replace")
        self._at = end + 1
        return text

    def _leb(self, *, is_signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value - (1 << shift) if is_signed and byte & 0x40 else value
