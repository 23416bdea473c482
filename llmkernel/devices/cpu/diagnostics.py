"""Compiler output in the terms of the `.cu` file: its lines, its names, no paths of this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmkernel.devices.base import Diagnostic
from llmkernel.errors import CompileError

MAX_LOG = 16 * 1024
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# The lines of a file that a compiler quotes below a message.
_SNIPPET = re.compile(r"^\s*\d*\s*\|.*\n?", re.MULTILINE)
_PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s*(?P<rest>.*)$")
_SEVERITY = re.compile(
    r"^(?P<severity>fatal error|error|warning|note|sorry, unimplemented):\s*(?P<message>.*)$"
)
_PATH = re.compile(r"(?<![\w<])(?:/[\w.+-]+)+/([\w.+-]+)")
_SOURCE = "kernel.cu"
_LAUNCH = "<launch>"


def parse_diagnostics(log: str, kernels: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Return the errors and warnings of a g++ or clang log, in its order.

    An error inside a header gets the line of the `.cu` file that led there; one in the launch glue names the
    kernel that the launch header asks for.
    """
    found: list[Diagnostic] = []
    led_here = 0  # the source line that the messages around a header's error mention
    waiting: list[int] = []  # indices of diagnostics that still have no line of the source
    for text in _ANSI.sub("", log).splitlines():
        place = _PLACE.match(text)
        if not place:
            continue
        name, line, column = place["file"].rsplit("/", 1)[-1], int(place["line"]), int(place["column"] or 0)
        message = _SEVERITY.match(place["rest"])
        if name == _SOURCE and (not message or message["severity"] == "note"):
            led_here = line
            # clang says afterwards where an instantiation came from; g++ says so before.
            for index in waiting:
                found[index] = Diagnostic(found[index].severity, line, 0, found[index].message)
            waiting.clear()
        if not message or message["severity"] == "note":
            continue
        severity = "warning" if message["severity"] == "warning" else "error"
        said = tidy(message["message"])
        if name == _SOURCE:
            found.append(Diagnostic(severity, line, column, said))
        elif name == _LAUNCH:
            kernel = kernels[line - 1] if 0 < line <= len(kernels) else "?"
            found.append(Diagnostic(severity, 0, 0, f"launching {kernel}: {said}"))
        else:
            found.append(Diagnostic(severity, led_here, 0, said))
            if not led_here:
                waiting.append(len(found) - 1)
        led_here = 0 if name == _SOURCE else led_here
    return tuple(dict.fromkeys(found))


def tidy(message: str) -> str:
    """Return a message without this machine's paths and this device's inner names."""
    message = _PATH.sub(r"\1", message)
    message = message.replace("cpu_device::", "").replace("static thread_local", "__shared__")
    return re.sub(r"\bcpu_device_entry_\w+", "the launch", message)


def compile_error(diagnostics: tuple[Diagnostic, ...], log: str, code: int) -> CompileError:
    """Return the error for a compiler that ended with `code`."""
    errors = [d for d in diagnostics if d.severity == "error"]
    log = tidy(_SNIPPET.sub("", _ANSI.sub("", log)))
    if len(log) > MAX_LOG:
        log = log[:MAX_LOG] + "\n… (log cut here)"
    if errors:
        first = errors[0]
        return CompileError(
            f"The source does not compile ({len(errors)} error{'s' if len(errors) > 1 else ''}).",
            diagnostics=diagnostics,
            log=log,
            received=f"line {first.line}: {first.message}" if first.line else first.message,
            next_step="Correct the lines that the diagnostics name.",
        )
    ended = f"signal {-code}" if code < 0 else f"exit status {code}"
    return CompileError(
        f"The compiler failed without a diagnostic ({ended}).",
        diagnostics=diagnostics,
        log=log,
        received=log.strip()[-300:] or None,
        next_step="Simplify the source: it may need more memory than a compilation is given.",
    )
