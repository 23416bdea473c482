"""NVRTC's and ptxas's logs as data."""

from __future__ import annotations

import re
from dataclasses import replace

from llmkernel.devices.base import Diagnostic, KernelResources
from llmkernel.devices.cuda.headers import explain_include

SOURCE_NAME = "kernel.cu"
# A folder that does not exist: NVRTC searches the program's own for includes.
PROGRAM_NAME = f"/llmkernel/{SOURCE_NAME}"
LOG_LIMIT = 64 * 1024

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_HEAD = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?P<severity>catastrophic error|error|warning|remark)"
    r"(?: #[\w-]+)?: (?P<message>.*)$"
)
_PTXAS = re.compile(
    r"^ ?ptxas(?: application)? ?(?P<where>[^;]*;)? ?(?P<severity>error|fatal|warning)\s*: (?P<message>.*)$"
)
# Advice that changes speed, such as C7510: warpgroup products run one after the other.
_ADVICE = re.compile(r"^ ?ptxas info *: \(C\d+\) (?P<message>.*)$")
_NVRTC = re.compile(r"^nvrtc: (?P<severity>error|warning): (?P<message>.*)$")
_AT_LINE = re.compile(r" at line (\d+)(?: of \"?([^\"]*)\"?)?")
_MISSING = re.compile(r'cannot open source file "([^"]+)"')
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_NOT_DEVICE = "host functions are not allowed in JIT mode"


def clean_log(log: str, directories: tuple[str, ...] = ()) -> str:
    """Return a log without terminal colours, without this machine's paths, and at most 64 KiB long."""
    text = _ANSI.sub("", log).replace("\0", "").replace("\r\n", "\n")
    text = text.replace(PROGRAM_NAME, SOURCE_NAME)
    # The longest first: `include/cccl` lies below `include`.
    for directory in sorted(directories, key=len, reverse=True):
        text = text.replace(directory.rstrip("/\\") + "/", "")
    text = text.strip()
    if len(text) > LOG_LIMIT:
        text = text[:LOG_LIMIT] + "\n… (log cut at 64 KiB)"
    return text


def parse_log(log: str, source: str = "") -> tuple[Diagnostic, ...]:
    """Read the diagnostics of a cleaned log: errors first, each in the compiler's order.

    A message inside a header is placed on the line of the candidate that led there; warnings inside headers
    are left out.

    Parameters
    ----------
    log : str
        From `clean_log`.
    source : str
        The candidate, to find the ``#include`` of a header in.
    """
    lines = log.split("\n")
    found: list[Diagnostic] = []
    for index, text in enumerate(lines):
        diagnostic = _diagnostic(text, lines[index + 1 :], source)
        if diagnostic is not None and diagnostic not in found:
            found.append(diagnostic)
    found = _without_repeated_headers(found)
    return tuple(sorted(found, key=lambda d: d.severity != "error"))


def _diagnostic(text: str, following: list[str], source: str) -> Diagnostic | None:
    head = _HEAD.match(text)
    if head is None:
        advice = _ADVICE.match(text)
        if advice is not None:
            return Diagnostic("warning", 0, 0, advice["message"].strip())
        other = _PTXAS.match(text) or _NVRTC.match(text)
        if other is None or "assembly aborted" in other["message"]:
            return None
        severity = "warning" if other["severity"] == "warning" else "error"
        if severity == "warning" and "followed by" in other["message"]:
            return None
        return Diagnostic(severity, 0, 0, other["message"].strip())
    severity = "error" if head["severity"].endswith("error") else "warning"
    block = _block(following)
    message = _message(head["message"], block)
    if head["file"] == "__nv_name_map":
        return _name_expression(message, severity)
    if head["file"].rsplit("/", 1)[-1] == SOURCE_NAME:
        return Diagnostic(severity, int(head["line"]), _column(block), message)
    if severity == "warning":
        return None
    return _inside_header(head["file"], message, block, source)


def _block(following: list[str]) -> list[str]:
    """Return the lines that belong to one message: up to an empty line."""
    block: list[str] = []
    for line in following:
        if not line.strip() or _HEAD.match(line):
            break
        block.append(line)
    return block


def _column(block: list[str]) -> int:
    # The source line and the caret below it are indented by two spaces.
    for line in block:
        if line.strip() == "^":
            return max(line.index("^") - 1, 0)
    return 0


def _message(message: str, block: list[str]) -> str:
    missing = _MISSING.search(message)
    if missing:
        return explain_include(missing[1])
    if _NOT_DEVICE in message:
        return "a function without __device__ is host code, which a candidate cannot hold: mark it __device__"
    instantiation = [line.strip() for line in block if "instantiation of" in line]
    return message.strip() + (f" (in {instantiation[0]})" if instantiation else "")


def _name_expression(message: str, severity: str) -> Diagnostic | None:
    if not message.startswith("Error in parsing name expression"):
        return Diagnostic(severity, 0, 0, f"in a kernel name of the launch header: {message}")
    return None


def _inside_header(file: str, message: str, block: list[str], source: str) -> Diagnostic:
    for line in block:
        place = _AT_LINE.search(line)
        if place and place[2] is not None and place[2].rsplit("/", 1)[-1] == SOURCE_NAME:
            return Diagnostic("error", int(place[1]), 0, f"{message} (in {file})")
    include = _responsible_include(file, source)
    if include is None:
        return Diagnostic("error", 0, 0, f"{message} (in {file})")
    name, line_number = include
    return Diagnostic("error", line_number, 0, f"{explain_include(name)} The first message: {message}")


def _responsible_include(file: str, source: str) -> tuple[str, int] | None:
    """Return the candidate's include that led to `file`, as far as can be told: name and line."""
    includes = [(m[1], source.count("\n", 0, m.start(1)) + 1) for m in _INCLUDE.finditer(source)]
    for name, line in includes:
        if file.endswith(name):
            return name, line
    folder = file.replace("\\", "/").split("/", 1)[0]
    for name, line in includes:
        if name.split("/", 1)[0] == folder:
            return name, line
    return includes[-1] if includes else None


def _without_repeated_headers(found: list[Diagnostic]) -> list[Diagnostic]:
    # A host header gives hundreds of messages: its first one says it all.
    kept: list[Diagnostic] = []
    seen: set[tuple[int, str]] = set()
    for diagnostic in found:
        head, mark, _ = diagnostic.message.partition(" The first message: ")
        if mark and (diagnostic.line, head) in seen:
            continue
        seen.add((diagnostic.line, head))
        kept.append(diagnostic)
    return kept


_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_resources(log: str) -> dict[str, KernelResources]:
    """Read ``--ptxas-options=-v`` lines: lowered kernel name to its resources."""
    found: dict[str, KernelResources] = {}
    name = ""
    for line in log.split("\n"):
        entry = _ENTRY.search(line)
        if entry:
            name = entry["name"]
            found[name] = KernelResources()
        elif name and (stack := _STACK.search(line)):
            found[name] = replace(
                found[name], local_bytes=int(stack[1]), spill_bytes=int(stack[2]) + int(stack[3])
            )
        elif name and (used := _USED.search(line)):
            shared = _SHARED.search(line)
            found[name] = replace(
                found[name], registers=int(used[1]), static_shared_bytes=int(shared[1]) if shared else 0
            )
            name = ""
    return found
