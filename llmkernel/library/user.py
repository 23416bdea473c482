"""The user's own library: accepted kernels kept for other notebooks, found by behaviour as the shipped ones are.

``<data folder>/library/<name>/`` holds ``kernel.cu`` and ``entry.json``. What a kernel computes is recorded as examples
(inputs and results), never as code: looking a kernel up executes nothing that was stored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llmkernel.errors import LLMKernelError
from llmkernel.library.entry import Array
from llmkernel.library.header_text import rename
from llmkernel.library.matching import Match, keyword_score, relative_error
from llmkernel.library.probe import Probe, draw_array
from llmkernel.problem.dtypes import DTYPES, dtype_name

VERSION = 1
MAX_EXAMPLE_BYTES = 1 << 20
_FAMILIES = ((1.0, 0.0), (3e-3, 0.0), (1.0, 50.0))

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UserEntry:
    """An accepted kernel of the user's.

    Attributes
    ----------
    name : str
        Of its folder.
    title : str
    source : str
        The accepted candidate.
    keywords : tuple of str
    examples : tuple of (inputs, results)
        What the reference gave when the kernel was accepted, host arrays and numbers.
    """

    name: str
    title: str
    source: str
    keywords: tuple[str, ...]
    examples: tuple[tuple[tuple[Any, ...], tuple[Array, ...]], ...]

    def match(self, probe: Probe, words: str) -> Match | None:
        """Return a match when the problem's reference gives the recorded results for the recorded inputs."""
        if probe.changes_inputs:
            return None
        worst = 0.0
        for number, (inputs, results) in enumerate(self.examples):
            if not _fits(inputs, probe):
                return None
            got = probe.run(("user", self.name, number), [_copied(v) for v in inputs])
            if got is None or len(got) != len(results):
                return None
            for a, b in zip(got, results, strict=True):
                if a.shape != b.shape or a.dtype != b.dtype:
                    return None
                error = relative_error(a, b)
                if not error <= 30 * DTYPES[dtype_name(b.dtype)].eps:
                    return None
                worst = max(worst, error)
        if not self.examples:
            return None
        score = keyword_score(self.keywords, words)
        source = rename(self.source, probe.problem.signature.name)
        return Match(self.name, self.title, source, worst, agrees_on_special=True, score=score, is_own=True)


def user_folder() -> Path:
    """Return the folder of the user's library; it need not exist."""
    from platformdirs import user_data_path

    return user_data_path("llmkernel") / "library"


def extra_entries(folder: Path | None = None) -> tuple[UserEntry, ...]:
    """Return the kernels in the user's library; one that cannot be read is skipped and logged."""
    root = folder or user_folder()
    found = []
    for path in sorted(root.glob("*/entry.json")) if root.is_dir() else ():
        try:
            found.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError, LLMKernelError) as error:
            log.warning("library entry %s cannot be read: %s", path.parent.name, error)
    return tuple(found)


def add_to_user_library(problem: Any, source: str, *, folder: Path | None = None) -> Path:
    """Keep an accepted kernel for other notebooks.

    Parameters
    ----------
    problem : llmkernel.problem.problem.Problem
        What it was verified against.
    source : str
        The accepted candidate.
    folder : Path, optional
        Default: `user_folder`.

    Returns
    -------
    Path
        The entry's folder. A kernel that is kept already is written again.
    """
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    target = (folder or user_folder()) / f"{problem.name}-{digest}"
    target.mkdir(parents=True, exist_ok=True)
    title = " ".join(problem.intent.split())[:100] or f"{problem.signature}"
    data = {
        "version": VERSION,
        "title": title,
        "signature": str(problem.signature),
        "keywords": sorted(set(re.findall(r"[a-z]{4,}", f"{problem.name} {problem.intent[:2000]}".lower())))[
            :20
        ],
        "examples": [
            {"inputs": [_to_json(v) for v in inputs], "results": [_to_json(r) for r in results]}
            for inputs, results in _examples(problem)
        ],
    }
    _write(target / "kernel.cu", source)
    _write(target / "entry.json", json.dumps(data, indent=1) + "\n")
    return target


def _examples(problem: Any) -> Iterator[tuple[list[Any], list[Array]]]:
    from llmkernel.problem.signature import ArraySpec
    from llmkernel.problem.workloads import probe_sizes

    probe = Probe(problem)
    size = 0
    for number, sizes in enumerate((*probe_sizes(problem.sizes), dict(problem.sizes))):
        for scale, shift in _FAMILIES:
            rng = np.random.default_rng([number, int(shift)])
            inputs = []
            for spec, leaf in zip(problem.signature.inputs, probe.leaves, strict=True):
                if isinstance(spec, ArraySpec):
                    shape = tuple(d.evaluate(sizes) for d in spec.dims)
                    if np.prod(shape, dtype=np.int64) * 16 > MAX_EXAMPLE_BYTES:
                        return
                    inputs.append(draw_array(rng, leaf.dtype, shape, scale, shift))
                else:
                    inputs.append(leaf.value)
            results = probe.run(("kept", number, scale, shift), [_copied(v) for v in inputs])
            if results is None:
                continue
            size += sum(v.nbytes for v in (*inputs, *results) if isinstance(v, np.ndarray))
            if size > MAX_EXAMPLE_BYTES:
                return
            yield inputs, results
        if size and number:
            return


def _fits(inputs: Sequence[Any], probe: Probe) -> bool:
    if len(inputs) != len(probe.leaves):
        return False
    for value, leaf in zip(inputs, probe.leaves, strict=True):
        if isinstance(value, np.ndarray):
            if leaf.shape is None or len(leaf.shape) != value.ndim or dtype_name(value.dtype) != leaf.dtype:
                return False
        elif leaf.shape is not None or isinstance(value, float) != isinstance(leaf.value, float):
            return False
    return True


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _to_json(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    raw = base64.b64encode(np.ascontiguousarray(value).reshape(-1).view(np.uint8).tobytes()).decode("ascii")
    return {"dtype": dtype_name(value.dtype), "shape": list(value.shape), "data": raw}


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        if not isinstance(value, bool | int | float):
            raise TypeError(f"not a number: {value!r}")
        return value
    raw = np.frombuffer(base64.b64decode(value["data"], validate=True), np.uint8)
    return raw.view(DTYPES[value["dtype"]].numpy).reshape(value["shape"]).copy()


def _read(path: Path) -> UserEntry:
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']}, this package reads {VERSION}")
    examples = tuple(
        (tuple(_from_json(v) for v in e["inputs"]), tuple(np.asarray(_from_json(r)) for r in e["results"]))
        for e in data["examples"]
    )
    source = (path.parent / "kernel.cu").read_text(encoding="utf-8")
    return UserEntry(
        path.parent.name, str(data["title"]), source, tuple(map(str, data["keywords"])), examples
    )


def _write(path: Path, text: str) -> None:
    # Another notebook may read at the same time: it finds the old file or the new one.
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
