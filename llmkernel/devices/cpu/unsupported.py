"""Constructs that this device refuses by name, before a compiler sees the source."""

from __future__ import annotations

import re

from llmkernel.devices.cpu.lexing import blank_comments, line_of
from llmkernel.errors import UnsupportedFeatureError

# Name, what it looks like in code, and the headers that bring it.
_FEATURES: tuple[tuple[str, str, str], ...] = (
    ("inline PTX (asm)", r"\b(?:asm|__asm|__asm__)\b", r"cuda/ptx"),
    ("dynamic parallelism (<<<…>>>)", r"<<<", r"cuda_device_runtime_api\.h"),
    ("cub, thrust, cute or cutlass", r"\b(?:cub|thrust|cute|cutlass)\s*::", r"(?:cub|thrust|cute|cutlass)/"),
    ("asynchronous barriers (cuda::barrier)", r"\bcuda\s*::\s*barrier\b", r"cuda/(?:std/)?barrier"),
    (
        "asynchronous pipelines (cuda::pipeline)",
        r"\bcuda\s*::\s*(?:pipeline|make_pipeline)\b",
        r"cuda/pipeline",
    ),
    (
        "asynchronous copies (memcpy_async)",
        r"(?<!__pipeline_)\bmemcpy_async\b|\bcp_async\w*",
        r"cooperative_groups/memcpy_async\.h",
    ),
    (
        "textures and surfaces",
        r"\bcuda(?:Texture|Surface)Object_t\b|\b(?:texture|surface)\s*<|\b(?:tex|surf)[123]D\w*\s*[<(]",
        r"(?:texture|surface)_\w+\.h",
    ),
    (
        "thread block clusters",
        r"\b(?:this_cluster|cluster_group|__cluster_dims__)\b|\bcluster\s*\.\s*sync\b",
        r"(?!)",
    ),
    ("tensor maps (TMA)", r"\bCUtensorMap\b", r"cudaTypedefs\.h"),
    ("grid-wide synchronization", r"\bthis_grid\s*\(\s*\)\s*\.\s*sync\b|\bgrid\s*\.\s*sync\b", r"(?!)"),
    ("fp8, fp6 and fp4 types", r"\b__nv_fp[468]\w*", r"cuda_fp[468]\.h"),
    ("coalesced_threads()", r"\bcoalesced_(?:threads|group)\b", r"(?!)"),
    ("curand", r"\bcurand\w*", r"curand\w*\.h"),
)
_CODE = tuple((name, re.compile(code)) for name, code, _ in _FEATURES)
_INCLUDES = tuple(
    (name, re.compile(rf"^[ \t]*#[ \t]*include[ \t]*[<\"]{h}", re.MULTILINE)) for name, _, h in _FEATURES
)


def refuse_unsupported(source: str) -> None:
    """Raise for the first construct, by line, that cannot run here.

    Raises
    ------
    llmkernel.errors.UnsupportedFeatureError
        With `feature` and `line`.
    """
    found: list[tuple[int, str]] = []
    for text, patterns in (
        (blank_comments(source), _CODE),
        (blank_comments(source, keeps_strings=True), _INCLUDES),
    ):
        for name, pattern in patterns:
            match = pattern.search(text)
            if match:
                found.append((line_of(source, match.start()), name))
    if found:
        line, feature = min(found)
        raise UnsupportedFeatureError(
            f"Line {line} uses {feature}, which the cpu device cannot run.",
            feature=feature,
            line=line,
            rule="The cpu device runs portable CUDA C++; docs/guide/cpu-device.md lists what it leaves out.",
            received=source.splitlines()[line - 1].strip()[:120],
            next_step="Use a portable construct there, or run on the cuda device.",
        )
