"""The parsers, each with the only errors that may come out of it, and with words that lead into it."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.expressions import parse_expression
from llmkernel.candidate.header import parse_header
from llmkernel.candidate.lexer import expand_macros, tokenize
from llmkernel.candidate.parameters import parse_kernels
from llmkernel.candidate.reply import extract_source
from llmkernel.candidate.rules import check_rules
from llmkernel.devices.cpu.diagnostics import parse_diagnostics
from llmkernel.devices.cpu.includes import refuse_foreign_includes
from llmkernel.devices.cpu.lines import line_table, source_line
from llmkernel.devices.cpu.shared_memory import rewrite_shared
from llmkernel.devices.cpu.unsupported import refuse_unsupported
from llmkernel.devices.cuda.diagnostics import clean_log, parse_log, parse_resources
from llmkernel.devices.cuda.sanitizer import parse_log as parse_sanitizer_log
from llmkernel.devices.plan import Buffer, LaunchPlan
from llmkernel.errors import (
    CandidateError,
    DeviceError,
    HeaderError,
    RecordError,
    ReferenceProblem,
    ReplyError,
    UsageError,
)
from llmkernel.evaluation.state import keeps_state
from llmkernel.evaluation.worker.errors import error_from_dict
from llmkernel.evaluation.worker.protocol import FrameError, read_frame
from llmkernel.extension import MAGICS
from llmkernel.magics.ask_options import parse_ask
from llmkernel.magics.parsing import parse_line
from llmkernel.problem.shapes import symbolic_dims
from llmkernel.prompts.redaction import redact
from llmkernel.records.ledger import environment_differences
from llmkernel.records.names import safe_folder_name
from llmkernel.records.notebook import find_in_notebook, records_in_notebook
from llmkernel.records.record import MIME_TYPE, Record
from tests.fuzz import words
from tests.unit.records.strategies import SOURCE, make_record

ROGUES = Path(__file__).parents[1] / "rogues"


@dataclass(frozen=True)
class Target:
    """One parser.

    Attributes
    ----------
    name : str
    parse : callable
        Takes text, or bytes where `is_binary`.
    own : tuple of type
        What may be raised; anything else is a defect.
    words : tuple of str
        Pieces of what it reads, for hostile texts.
    examples : tuple of str
        Whole texts that it reads.
    is_binary : bool
    """

    name: str
    parse: Callable[[Any], object]
    own: tuple[type[Exception], ...] = ()
    words: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    is_binary: bool = False

    def __call__(self, data: str | bytes) -> Exception | None:
        """Parse; return the parser's own error, if there is one. Any other is raised."""
        try:
            self.parse(data)
        except self.own as error:
            return error
        return None


@cache
def sources() -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(ROGUES.glob("*.cu")))


_PLAN = LaunchPlan(
    (Buffer("x", "float32", (7,), "input"), Buffer("y", "float32", (7,), "output")), (), ("y",)
)


class _Annotation:
    """What a jaxtyping annotation is to us: something with a `dim_str`."""

    def __init__(self, text: str) -> None:
        self.dim_str = text


def _shapes(text: str) -> object:
    """Annotate three arrays with three lines."""

    def reference(*_: Any) -> None: ...

    lines = [*text.split("\n"), "", ""][:3]
    reference.__annotations__ = {name: _Annotation(line) for name, line in zip("xyz", lines, strict=True)}
    return symbolic_dims(reference, {"x": (3, 4), "y": (4,), "z": ()}, taken=("x", "y", "z"))


def _preprocess(text: str) -> object:
    refuse_unsupported(text)
    refuse_foreign_includes(text)
    rewritten = rewrite_shared(text)
    assert rewritten.count("\n") == text.count("\n"), "lines keep their numbers"
    return keeps_state(text)


def _record(text: str) -> object:
    record = Record.from_json(text.encode(errors="surrogatepass"))
    environment_differences(record.environment, {})
    again = Record.from_json(record.to_json())
    assert again == record
    return (
        record.read_report(),
        record.read_domain(),
        record.key,
        record.digest,
        safe_folder_name(record.name),
    )


def _output(text: str) -> object:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return Record.from_output(data)


def _notebook(text: str) -> object:
    with tempfile.NamedTemporaryFile("w", suffix=".ipynb", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
        file.flush()
        found = records_in_notebook(file.name)
        return [find_in_notebook(file.name, record.key) for record, _ in found]


def _lines(text: str) -> object:
    """Give one line to each magic; an error of one must not keep it from the others."""
    first: UsageError | None = None
    for magics in MAGICS:
        for kinds in magics.magics.values():
            for attribute in kinds.values():
                magic = getattr(magics, attribute) if isinstance(attribute, str) else attribute
                try:
                    if attribute == "ask":
                        parse_ask(magic, text, None)
                    else:
                        parse_line(magic, text)
                except UsageError as error:
                    first = first or error
    if first is not None:
        str(first)
        raise first
    return None


def _logs(text: str) -> object:
    return (
        parse_diagnostics(text, ["k"]),
        parse_log(clean_log(text), SOURCE),
        parse_resources(text),
        parse_sanitizer_log(text, _PLAN),
    )


def _frames(data: bytes) -> object:
    stream = io.BytesIO(data)
    while True:
        header, _ = read_frame(stream)
        if isinstance(header.get("error"), dict):
            str(error_from_dict(header["error"]))


def _module(data: bytes) -> object:
    return source_line(data, 64), line_table(data)


def _notebook_text() -> str:
    output = {"output_type": "display_data", "data": {MIME_TYPE: make_record().to_output(SOURCE)}}
    return json.dumps({"cells": [{"cell_type": "code", "outputs": [output, output]}], "nbformat": 4})


def all_targets() -> tuple[Target, ...]:
    headers = tuple("\n".join(line for line in s.split("\n") if line.startswith("//!")) for s in sources())
    replies = tuple(f"Here it is:\n\n```cuda\n{s}```\n\nIt is fast.\n" for s in sources()[:40])
    expressions = ("ceil_div(N, 256) * max(1, M // 2)", "x.stride(0) % 4 == 0 and not tma_ok(x)")
    lines = ("softmax --name s --shapes 'M=3,N=4;M=1'", "rollback softmax 2026", "--fix why?")
    output = json.dumps(make_record().to_output(SOURCE))
    return (
        Target("reply", extract_source, (ReplyError,), (*words.REPLY, *words.C[:40]), replies),
        Target("header", parse_header, (HeaderError,), words.HEADER, headers),
        Target("expression", parse_expression, (HeaderError,), words.HEADER, expressions),
        Target("parameters", parse_kernels, (CandidateError,), words.C, sources()),
        Target("candidate", parse_candidate, (CandidateError,), (*words.C, *words.HEADER), sources()),
        Target("rules", check_rules, (CandidateError,), words.C, sources()),
        Target("lexer", lambda text: expand_macros(tokenize(text)), (), words.C, sources()),
        Target("cpu preprocessing", _preprocess, (CandidateError, DeviceError), words.C, sources()),
        Target("record", _record, (RecordError,), words.JSON, (make_record().to_json(),)),
        Target("output", _output, (RecordError,), words.JSON, (output,)),
        Target(
            "notebook", _notebook, (RecordError,), (*words.JSON, json.dumps(MIME_TYPE)), (_notebook_text(),)
        ),
        Target("lines", _lines, (UsageError,), words.LINE, lines),
        Target(
            "shapes",
            _shapes,
            (ReferenceProblem,),
            words.SHAPES,
            ("N M\nM\n", "*batch N\n#N\n...", "3 n=4\n_"),
        ),
        Target("logs", _logs, (), words.LOG),
        Target("redaction", redact, (), (*words.LINE, *words.SECRETS), ("OPENAI_API_KEY=sk-" + "a1" * 24,)),
        Target("frames", _frames, (FrameError, EOFError), is_binary=True),
        Target("module", _module, (), is_binary=True),
    )
