"""Rules against host code: a candidate is device code; its launch header is the only thing that launches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from llmkernel.candidate.cxx_declarations import Declaration
from llmkernel.candidate.rules import Finding, Source, rule, words

_HEADER_LAUNCHES = "Launch from the `//!` header."
# Device-side calls of the runtime's name space.
_DEVICE_RUNTIME = frozenset(("cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"))
_HOST_LIBRARY = re.compile(
    r"cuda[A-Z]\w*|cu(?:Init|Ctx|Mem|Module|Launch|Stream|Event|Device|TensorMapEncode|TensorMapReplace|Func|Library"
    r"|Graph|Array|Tex|Driver|Link|Occupancy|Profiler|Get)\w*|nvrtc[A-Z]\w*|cublas\w*|cudnn\w*|cufft[A-Z]\w*"
    r"|curand[A-Z]\w*|nccl[A-Z]\w*"
)
_HOST_STD = words(
    """
    vector string map set list deque unordered_map unordered_set cout cerr cin endl thread mutex
    unique_ptr shared_ptr make_unique make_shared function ifstream ofstream fstream chrono ostream
    exception runtime_error async future filesystem
    """
)
_SYSTEM_CALLS = words(
    """
    system popen fopen freopen fork vfork execv execve execvp execl execlp execle dlopen dlsym mmap
    mprotect syscall socket getenv setenv ptrace pthread_create posix_spawn posix_spawnp _exit _Exit
    quick_exit atexit sigaction setjmp longjmp unlink chmod exit abort
    """
)
_PYTHON_LIBRARIES = frozenset(
    ("torch", "at", "c10", "pybind11", "py", "PYBIND11_MODULE", "TORCH_LIBRARY", "TORCH_LIBRARY_IMPL")
)
_LIBC = (
    words(
        """
    malloc free calloc realloc memcpy memmove memset memcmp printf fprintf puts strlen strcpy strcmp
    read write open close exit abort main _start _init _fini signal kill raise select poll send recv
    """
    )
    | _SYSTEM_CALLS
)
_CLASS_WORDS = frozenset(("struct", "class", "union", "enum", "using", "typedef", "concept", "static_assert"))
_DEVICE_WORDS = frozenset(("__device__", "__global__", "constexpr", "consteval"))


@rule("no-kernel", "a candidate holds at least one `__global__` function", "Write the kernel in CUDA C++.")
def no_kernel(source: Source) -> Iterator[Finding]:
    """No `__global__` anywhere in the code."""
    if not any(t.text == "__global__" for t in source.tokens):
        yield Finding(1, "The source has no `__global__` function.")


@rule("python-code", "a candidate is one CUDA C++ file", "Leave Python out of the block.")
def python_code(source: Source) -> Iterator[Finding]:
    """Statements that only Python has."""
    tokens = source.raw
    for i, token in enumerate(tokens[:-1]):
        is_first = i == 0 or tokens[i - 1].line < token.line
        if not is_first or tokens[i + 1].kind != "name":
            continue
        follower = tokens[i + 2].text if i + 2 < len(tokens) else ""
        is_import = (token.text == "import" and follower in ("", ".", ",", "as")) or (
            token.text == "import" and tokens[i + 2].line > token.line
        )
        is_from = token.text == "from" and (follower in (".", "import"))
        is_def = token.text == "def" and follower == "("
        if is_import or is_from or is_def:
            yield Finding(token.line, f"`{token.text} {tokens[i + 1].text}` is Python.")


@rule(
    "launch-in-code", "only the launch header launches kernels; kernels launch no kernels", _HEADER_LAUNCHES
)
def launch_in_code(source: Source) -> Iterator[Finding]:
    """`<<<` outside the header."""
    for token in source.tokens:
        if token.text == "<<<":
            yield Finding(token.line, "The code launches a kernel with `<<<…>>>`.")


@rule("main-function", "a candidate has no host code", _HEADER_LAUNCHES)
def main_function(source: Source) -> Iterator[Finding]:
    """Find a `main`."""
    for token, before, _ in source.calls():
        if token.text in ("main", "WinMain") and before in ("int", "void", "auto"):
            yield Finding(token.line, f"The code defines `{token.text}`.")


@rule(
    "host-call", "memory, streams and modules belong to the launcher", "Declare buffers in the launch header."
)
def host_call(source: Source) -> Iterator[Finding]:
    """Functions of the CUDA runtime, driver and host libraries."""
    for token, before, _ in source.calls():
        if before in (".", "->"):
            continue
        if _HOST_LIBRARY.fullmatch(token.text) and token.text not in _DEVICE_RUNTIME:
            yield Finding(token.line, f"The code calls the host function `{token.text}`.")


@rule(
    "system-call", "a candidate reaches no files, processes or sockets", "Compute from the arguments alone."
)
def system_call(source: Source) -> Iterator[Finding]:
    """Functions of the operating system."""
    for token, before, qualifier in source.calls():
        if before in (".", "->") or (
            before == "::" and qualifier not in ("", "std", ";", "{", "}", "(", "=", ",")
        ):
            continue
        if token.text in _SYSTEM_CALLS:
            yield Finding(token.line, f"The code calls `{token.text}`.")


@rule(
    "host-library",
    "host containers, threads and streams do not exist on a device",
    "Use arrays and registers.",
)
def host_library(source: Source) -> Iterator[Finding]:
    """Names of the C++ standard library that only a host has."""
    tokens = source.tokens
    for i in range(2, len(tokens)):
        is_std = tokens[i - 1].text == "::" and tokens[i - 2].text == "std"
        is_cuda_std = is_std and i > 3 and tokens[i - 3].text == "::" and tokens[i - 4].text == "cuda"
        if is_std and not is_cuda_std and tokens[i].text in _HOST_STD:
            yield Finding(tokens[i].line, f"`std::{tokens[i].text}` is host code.")


@rule("python-binding", "the launcher binds kernels to Python", _HEADER_LAUNCHES)
def python_binding(source: Source) -> Iterator[Finding]:
    """Names of PyTorch's C++ API and of pybind11."""
    tokens = source.tokens
    for token, follower in pairwise(tokens):
        is_macro = token.text.isupper() and follower.text == "("
        if token.kind == "name" and token.text in _PYTHON_LIBRARIES and (follower.text == "::" or is_macro):
            yield Finding(token.line, f"`{token.text}` belongs to a Python extension.")


@rule(
    "host-function",
    "every function is `__device__` or `__global__`; others are host code",
    "Write `__device__` before the function, or remove it.",
)
def host_function(source: Source) -> Iterator[Finding]:
    """Functions that run on the host."""
    macros = {m[1] for d in source.directives if (m := re.match(r"#\s*define\s+(\w+)\(", d.text))}
    for declaration in source.declarations:
        end = _function_name(declaration)
        if end is None:
            continue
        name = declaration.tokens[end].text
        texts = {t.text for t in declaration.tokens[: end + 1]}
        if texts & _CLASS_WORDS or texts & macros or 'operator""' in texts:
            continue
        # Words in capitals may be macros of a header, such as a spelling of `__device__`.
        if not texts & _DEVICE_WORDS and not any(t.isupper() and len(t) > 2 for t in texts):
            yield Finding(declaration.tokens[0].line, f"`{name}` is a host function.")


def _function_name(declaration: Declaration) -> int | None:
    """Return the index of the name when the declaration defines a function."""
    tokens = declaration.tokens
    if not declaration.has_body or not tokens:
        return None
    for i, (before, token) in enumerate(pairwise(tokens)):
        if before.text == "=":
            return None
        if token.text == "(" and before.kind == "name" and not before.text.startswith("__"):
            return i
    return None


@rule(
    "c-linkage",
    '`extern "C"` is for kernels; it may not declare or replace functions of the host',
    'Use `extern "C"` only before `__global__`, under a name that no C library has.',
)
def c_linkage(source: Source) -> Iterator[Finding]:
    """`extern "C"` that reaches the C library."""
    for declaration in source.declarations:
        if not declaration.is_c_linkage or not declaration.tokens:
            continue
        texts = [t.text for t in declaration.tokens]
        name = next((a for a, b in pairwise(texts) if b == "(" and not a.startswith("__")), "")
        line = declaration.tokens[0].line
        if name in _LIBC:
            yield Finding(line, f"`{name}` is a function of the C library.")
        elif "(" in texts and not {"__global__", "__device__"} & set(texts) and texts[0] not in _CLASS_WORDS:
            yield Finding(line, f'`extern "C"` declares the host function `{name}`.')
