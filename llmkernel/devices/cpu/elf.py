"""What a linked candidate contains, read from its ELF file before it is ever loaded.

A candidate that is only device code has no initialisers and needs nothing from outside but the runner's
functions and mathematics. Anything else is refused here; the sandbox stands behind this check.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from llmkernel.devices.base import Diagnostic
from llmkernel.devices.cpu.lexing import blank_comments, line_of
from llmkernel.errors import CompileError

_SHT_SYMTAB, _SHT_RELA, _SHT_DYNSYM = 2, 4, 11
_PT_LOAD, _PT_TLS = 1, 7
_PF_W = 2
_INITIALISERS = {".init_array", ".preinit_array", ".ctors", ".init", ".fini_array", ".dtors", ".fini"}
_R_X86_64_IRELATIVE = 37
_STT_OBJECT, _STT_TLS, _STT_GNU_IFUNC = 1, 6, 10
# What a block may have at all; the dynamic part comes on top and is checked at the launch.
MAX_STATIC_SHARED = 227 * 1024

_FUNCTIONS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround
    modf nan nearbyint nextafter pow remainder remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma
    trunc y0 y1 yn
"""
_MATHS = frozenset(name + suffix for name in _FUNCTIONS.split() for suffix in ("", "f"))
_LIBRARY = frozenset({"memcpy", "memmove", "memset", "memcmp", "printf", "__assert_fail", "__tls_get_addr"})
# What the compiler's own checks call; the runner has them.
_HOOKS = ("__tsan_", "__wrap_mem")
_CHECKS = frozenset({"__ubsan_handle_type_mismatch_v1_abort"})


@dataclass(frozen=True)
class Variable:
    """A variable of the module: its place in the thread-local memory, or its address from the base."""

    name: str
    begin: int
    nbytes: int
    is_thread_local: bool


@dataclass(frozen=True)
class Elf:
    """The parts of an ELF file that matter here.

    Attributes
    ----------
    sections : dict of str to (address, bytes)
    undefined : tuple of str
        Dynamic symbols that the loader must find elsewhere.
    thread_local_bytes : int
    thread_local_symbols : dict of str to int
        Mangled name to size.
    runs_code_when_loaded : bool
        Through initialisers or indirect functions.
    variables : tuple of Variable
    writable_begin : int
        Address of the first byte of writable memory, from the base.
    """

    sections: dict[str, tuple[int, bytes]]
    undefined: tuple[str, ...]
    thread_local_bytes: int
    thread_local_symbols: dict[str, int]
    runs_code_when_loaded: bool
    variables: tuple[Variable, ...]
    writable_begin: int


def read_elf(data: bytes) -> Elf:
    """Read a 64-bit little-endian ELF file that a linker of ours has just written."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    program_at, section_at = struct.unpack_from("<QQ", data, 32)
    program_size, program_count, section_size, section_count, names_index = struct.unpack_from(
        "<5H", data, 54
    )
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", data, section_at + i * section_size) for i in range(section_count)
    ]

    def contents(header: tuple[int, ...]) -> bytes:
        return b"" if header[1] == 8 else data[header[4] : header[4] + header[5]]

    names = contents(headers[names_index])
    sections = {_text(names, h[0]): (h[3], contents(h)) for h in headers}
    runs_code = any(name in sections for name in _INITIALISERS)
    undefined: list[str] = []
    shared: dict[str, int] = {}
    variables: list[Variable] = []
    for header in headers:
        if header[1] == _SHT_RELA:
            kinds = {info & 0xFFFFFFFF for _, info, _ in struct.iter_unpack("<QQq", contents(header))}
            runs_code |= _R_X86_64_IRELATIVE in kinds
        if header[1] in (_SHT_SYMTAB, _SHT_DYNSYM):
            strings = contents(headers[header[6]])
            for name, info, _, section, begin, size in struct.iter_unpack("<IBBHQQ", contents(header)):
                runs_code |= info & 15 == _STT_GNU_IFUNC
                if section == 0 and name and header[1] == _SHT_DYNSYM:
                    undefined.append(_text(strings, name))
                if section != 0 and info & 15 in (_STT_TLS, _STT_OBJECT):
                    symbol, is_local = _text(strings, name), info & 15 == _STT_TLS
                    variables.append(Variable(_variable_name(symbol), begin, size, is_local))
                    if is_local:
                        shared[symbol] = size
    segments = [
        struct.unpack_from("<IIQQQQQQ", data, program_at + i * program_size) for i in range(program_count)
    ]
    thread_local = sum(s[6] for s in segments if s[0] == _PT_TLS)
    writable = min((s[3] for s in segments if s[0] == _PT_LOAD and s[1] & _PF_W), default=0)
    return Elf(sections, tuple(undefined), thread_local, shared, runs_code, tuple(variables), writable)


def check_module(elf: Elf, source: str, *, is_checked: bool = False) -> None:
    """Raise unless the candidate is nothing but device code, in checked mode with the hooks of the compiler's.

    Raises
    ------
    llmkernel.errors.CompileError
        With the line of the source that names what is missing, where it can be found.
    """
    diagnostics = []
    for symbol in elf.undefined:
        is_ours = symbol.startswith(("cpu_device_", *(_HOOKS if is_checked else ())))
        if is_ours or symbol in _MATHS | _LIBRARY | _CHECKS:
            continue
        name = _plain_name(symbol)
        match = re.search(rf"\b{re.escape(name)}\b", blank_comments(source))
        line = line_of(source, match.start()) if match else 0
        diagnostics.append(Diagnostic("error", line, 0, f"{name} is declared but is no device function"))
    if elf.runs_code_when_loaded:
        diagnostics.append(
            Diagnostic(
                "error", 0, 0, "a variable or function of the file needs code to run before the first launch"
            )
        )
    _check_static_shared(elf, source)
    if diagnostics:
        first = diagnostics[0]
        raise CompileError(
            "The source is not device code alone.",
            diagnostics=tuple(diagnostics),
            log="\n".join(f"{d.line}: {d.message}" for d in diagnostics),
            rule="Functions are defined in the file or are CUDA's; variables have constant initialisers.",
            received=first.message,
            next_step="Define the function in the file, or initialise the variable inside a kernel.",
        )


def _check_static_shared(elf: Elf, source: str) -> None:
    """Raise where the arrays of one function are more than a block may have."""
    by_function: dict[str, tuple[int, str]] = {}
    for symbol, size in elf.thread_local_symbols.items():
        # _ZZ6kernelPfE4tile is `tile` of the function _Z6kernelPf.
        function, _, rest = (
            symbol.removeprefix("_ZZ").rpartition("E") if symbol.startswith("_ZZ") else ("", "", symbol)
        )
        used, largest = by_function.get(function, (0, ""))
        by_function[function] = (used + size, max(largest, f"{size:012d}{rest}"))
    for used, largest in by_function.values():
        if used <= MAX_STATIC_SHARED:
            continue
        name = re.sub(r"^\d+", "", largest[12:])
        match = re.search(rf"__shared__[^;]*\b{re.escape(name)}\b", blank_comments(source))
        line = line_of(source, match.start()) if match else 0
        message = f"too much static shared memory: {used} bytes, the limit is {MAX_STATIC_SHARED}"
        raise CompileError(
            "A kernel uses too much static shared memory.",
            diagnostics=(Diagnostic("error", line, 0, message),),
            log=f"{line}: {message}",
            rule=f"Static shared memory is at most {MAX_STATIC_SHARED} bytes a block.",
            received=f"{used} bytes",
            next_step="Make the tiles smaller.",
        )


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _plain_name(symbol: str) -> str:
    # _Z4loopi, _ZN2ns4loopEi: the last identifier of the mangled name.
    parts = re.match(r"_ZN?[KVr]*((?:\d+\w+)+)", symbol)
    if not parts:
        return symbol
    rest, name = parts.group(1), symbol
    while match := re.match(r"(\d+)", rest):
        length = int(match.group(1))
        rest = rest[match.end() :]
        name, rest = rest[:length], rest[length:]
    return name


def variable_at(elf: Elf, offset: int, *, is_thread_local: bool) -> Variable | None:
    """Return the variable that holds a byte of the module's memory.

    Parameters
    ----------
    offset : int
        From the begin of the thread-local memory, or of the writable memory.
    """
    address = offset if is_thread_local else offset + elf.writable_begin
    for variable in elf.variables:
        is_here = variable.begin <= address < variable.begin + variable.nbytes
        if is_here and variable.is_thread_local == is_thread_local:
            return variable
    return None


def _variable_name(symbol: str) -> str:
    # The last identifier of a mangled name, in front of which stands its length.
    for match in reversed(list(re.finditer(r"\d+", symbol))):
        name = symbol[match.end() : match.end() + int(match.group())]
        if len(name) == int(match.group()) and name.isidentifier():
            return name
    return symbol
