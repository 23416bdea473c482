"""Constructs that this device refuses by name, before a compiler sees the source."""

from __future__ import annotations

import re

from llmkernel.devices.cpu.lexing import blank_comments, line_of
from llmkernel.errors import UnsupportedFeatureError

_FEATURES: tuple[tuple[str, str], ...] = (
    ("inline PTX (asm)", r"\b(?:asm|__asm|__asm__)\b"),
    ("dynamic parallelism (<<<…>>>)", r"<<<"),
    (
        "cub, thrust, cute or cutlass",
        r"\b(?:cub|thrust|cute|cutlass)\s*::|#\s*include\s*[<\"](?:cub|thrust|cute|cutlass)/",
    ),
    (
        "asynchronous barriers (cuda::barrier)",
        r"\bcuda\s*::\s*(?:barrier|std\s*::\s*barrier)\b|#\s*include\s*<cuda/(?:std/)?barrier>",
    ),
    (
        "asynchronous pipelines (cuda::pipeline)",
        r"\bcuda\s*::\s*(?:pipeline|make_pipeline)\b|#\s*include\s*<cuda/pipeline>",
    ),
    ("asynchronous copies (memcpy_async)", r"(?<!__pipeline_)\bmemcpy_async\b|\bcp_async\w*"),
    (
        "textures and surfaces",
        r"\b(?:cudaTextureObject_t|cudaSurfaceObject_t)\b|\b(?:texture|surface)\s*<|\b(?:tex|surf)[123]D\w*\s*[<(]",
    ),
    (
        "thread block clusters",
        r"\b(?:this_cluster|cluster_group)\b|\b__cluster_dims__\b|\bcluster\s*\.\s*sync\b",
    ),
    ("tensor maps (TMA)", r"\bCUtensorMap\b"),
    (
        "grid-wide synchronization",
        r"\bthis_grid\s*\(\s*\)\s*\.\s*sync\b|\bgrid\s*\.\s*sync\b|\bcooperative_groups\s*::\s*sync\s*\(\s*grid",
    ),
    ("fp8, fp6 and fp4 types", r"\b__nv_fp[468]\w*|\bcuda_fp[468]\.h"),
    ("coalesced_threads()", r"\bcoalesced_threads\b|\bcoalesced_group\b"),
    ("curand", r"\bcurand\w*"),
)
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _FEATURES)


def refuse_unsupported(source: str) -> None:
    """Raise for the first construct, by line, that cannot run here.

    Raises
    ------
    llmkernel.errors.UnsupportedFeatureError
        With `feature` and `line`.
    """
    blanked = blank_comments(source)
    with_includes = blank_comments(source, keeps_strings=True)
    found: list[tuple[int, str]] = []
    for name, pattern in _PATTERNS:
        text = with_includes if "include" in pattern.pattern or r"\.h" in pattern.pattern else blanked
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
