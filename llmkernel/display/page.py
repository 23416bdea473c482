"""Everything that one report is made of, and the facts about where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmkernel.display import figures, view
from llmkernel.display.clean import one_line
from llmkernel.evaluation.report import Report
from llmkernel.providers.base import Usage
from llmkernel.synthesis.events import Attempt

SOURCE_FILE = "kernel.cu of the record"
TRANSCRIPT_FILE = "transcript.jsonl of the record"
RECORD_FILE = "record.json of the record"

_ORIGINS = {
    "generated": "generated here",
    "replayed": "replayed from its record, no provider was asked",
    "by hand": "written by hand, no provider was asked",
    "library": "from the library, no provider was asked",
}


_LEVELS = {
    "quick": "quick check",
    "full": "full verification",
    "memory": "memory checks only, not verified",
}


@dataclass(frozen=True)
class Page:
    """What `llmkernel.display.bundle.report_bundle` was given; see there."""

    report: Report
    source: str | None = None
    attempts: Sequence[Attempt] = ()
    origin: str = "generated"
    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    has_record: bool = False

    @property
    def name(self) -> str:
        """Name of the callable, or ``kernel``."""
        return one_line(self.report.name, 80) or "kernel"

    @property
    def edit_command(self) -> str:
        """What opens the source in a cell below; empty where there is none, or no name to call it by."""
        # A name that is cut to be shown is no name to call it by.
        is_name = self.report.name == self.name and self.name.isidentifier()
        return f"%kernels edit {self.name}" if self.source and is_name else ""

    @property
    def origin_text(self) -> str:
        """Where the candidate came from, in words."""
        return _ORIGINS.get(self.origin, one_line(self.origin, 60))


def tokens_text(usage: Usage | None) -> str:
    """Return ``1 234 tokens in (1 000 cached), 567 out (300 reasoning)``; empty when nothing was counted."""
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return ""
    read = f"{figures.grouped(usage.input_tokens)} tokens in"
    parts = [f"{figures.grouped(usage.cached_tokens)} cached"] if usage.cached_tokens else []
    parts += (
        [f"{figures.grouped(usage.cache_write_tokens)} written to the cache"]
        if usage.cache_write_tokens
        else []
    )
    read += f" ({', '.join(parts)})" if parts else ""
    written = f"{figures.grouped(usage.output_tokens)} out"
    if usage.reasoning_tokens:
        written += f" ({figures.grouped(usage.reasoning_tokens)} reasoning)"
    return f"{read}, {written}"


def byline(page: Page) -> str:
    """Return one line: level, device, origin and who wrote it."""
    report = page.report
    level = _LEVELS.get(report.level, one_line(report.level, 40))
    names = [page.provider] if page.provider != page.origin else []
    # A provider that describes itself names its model already.
    names += [page.model] if page.model not in page.provider.split(" · ") else []
    writer = " · ".join(one_line(name, 80) for name in names if name)
    rounds = figures.plural(len(page.attempts), "attempt") if len(page.attempts) > 1 else ""
    parts = [level, view.device_text(report), page.origin_text, writer, rounds]
    return " · ".join(p for p in parts if p)


def key_figures(page: Page) -> list[tuple[str, str]]:
    """Return the few figures that stand at the top."""
    report = page.report
    items = []
    if report.checks:
        items.append(("Checks", view.checks_summary(report.checks)))
    if report.workloads:
        items.append(("Workloads", view.workloads_summary(report)))
    if report.workloads and view.tolerance_summary(report):
        items.append(("Tolerance", view.tolerance_summary(report)))
    return items


def provenance(page: Page) -> list[tuple[str, str]]:
    """Return label and text of where the candidate and the verdict came from."""
    report = page.report
    items = [
        ("origin", page.origin_text),
        ("provider", one_line(page.provider, 80)),
        ("model", one_line(page.model, 120)),
        ("tokens", tokens_text(page.usage)),
        ("money", figures.money(page.cost_usd)),
        ("wall time", view.stages_text(report)),
    ]
    known = [(label, text) for label, text in items if text]
    facts = dict(report.device)
    if report.timing is not None:
        facts["timing"] = report.timing.device
    return known + view.flat_facts({k: v for k, v in facts.items() if v not in (None, "", {})})
