"""Which line of the `.cu` file an instruction belongs to, from the module's DWARF line table.

The table is a program for a small state machine (DWARF 4, section 6.2); only what finds a line is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from llmkernel.devices.cpu.elf import read_elf

_SOURCE = "kernel.cu"


@lru_cache(maxsize=8)
def _rows(module: bytes) -> tuple[tuple[int, str, int, bool], ...]:
    try:
        section = read_elf(module).sections.get(".debug_line", (0, b""))[1]
        return tuple(_Program(section).rows())
    except (ValueError, IndexError, struct.error):
        return ()  # a line is a help, never worth an error of its own


def source_line(module: bytes, address: int) -> int:
    """Return the 1-based line for an address relative to the module's base; 0 when it is not from the source."""
    previous: tuple[int, str, int, bool] | None = None
    best = 0
    for row in _rows(module):
        if previous and not previous[3] and previous[0] <= address < row[0] and previous[1] == _SOURCE:
            best = previous[2]
        previous = row
    return best


class _Program:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def rows(self) -> Iterator[tuple[int, str, int, bool]]:
        """Yield (address, file name, line, is end of a sequence)."""
        while self._at < len(self._data):
            length = self._number("I")
            end = self._at + length
            if self._number("H") != 4:
                self._at = end
                continue
            yield from self._unit(end)
            self._at = end

    def _unit(self, end: int) -> Iterator[tuple[int, str, int, bool]]:
        header_length = self._number("I")
        program = self._at + header_length
        minimum, _, _, line_base, line_range, opcode_base = struct.unpack_from(
            "<BBBbBB", self._data, self._at
        )
        self._at += 6
        operands = [0, *self._data[self._at : self._at + opcode_base - 1]]
        self._at += opcode_base - 1
        while self._text():  # include directories
            pass
        files = [""]
        while name := self._text():
            files.append(name.rsplit("/", 1)[-1])
            for _ in range(3):
                self._leb()
        self._at = program
        address, file, line = 0, 1, 1
        while self._at < end:
            opcode = self._number("B")
            if opcode >= opcode_base:
                step = opcode - opcode_base
                address += step // line_range * minimum
                line += line_base + step % line_range
                yield address, files[file], line, False
            elif opcode == 0:
                size = self._leb()
                after = self._at + size
                extended = self._number("B")
                if extended == 1:
                    yield address, files[file], line, True
                    address, file, line = 0, 1, 1
                elif extended == 2:
                    address = self._number("Q")
                self._at = after
            elif opcode == 1:
                yield address, files[file], line, False
            elif opcode == 2:
                address += self._leb() * minimum
            elif opcode == 3:
                line += self._leb(is_signed=True)
            elif opcode == 4:
                file = self._leb()
            elif opcode == 8:
                address += (255 - opcode_base) // line_range * minimum
            elif opcode == 9:
                address += self._number("H")
            else:
                for _ in range(operands[opcode]):
                    self._leb()

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
