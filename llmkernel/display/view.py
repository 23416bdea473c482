"""What a report says, whatever the surface: words, order and figures of HTML, Markdown and text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from llmkernel.display import figures
from llmkernel.display.clean import clean, display_width, one_line
from llmkernel.display.error_map import shows_of
from llmkernel.display.timing_rows import timing_sentence
from llmkernel.evaluation.report import CheckResult, Report

Kind = Literal["good", "bad", "unsure", "quiet"]

# Symbol, words and kind of each check status, in the order in which a reader needs them.
STATUSES: dict[str, tuple[str, str, Kind]] = {
    "failed": ("✗", "failed", "bad"),
    "warning": ("!", "warning", "unsure"),
    "not_run": ("○", "not run", "quiet"),
    "passed": ("✓", "passed", "good"),
    "not_applicable": ("–", "not applicable", "quiet"),
}
_POLICIES = {
    "derived": "from the reference’s own error",
    "user": "the user’s own",
    "exact": "exact agreement",
}
_EVIDENCE_FIRST: tuple[str, ...] = ("workload", "sizes", "family", "result", "argument", "index", "indices")
_EVIDENCE_FIRST += ("got", "expected", "count", "examples", "pattern")
MAX_WORKLOADS = 60
MAX_EVIDENCE = 16
MAX_CHECKS = 40
MAX_EVIDENCED = 6
MAX_EXAMPLES = 4
MAX_SENTENCES = 40


@dataclass(frozen=True)
class Verdict:
    """Symbol, word and kind of an outcome; `word` alone carries the meaning."""

    symbol: str
    word: str
    kind: Kind


def verdict(report: Report) -> Verdict:
    """Return how the outcome of `report` is written."""
    word = report.outcome.replace("_", " ")
    if report.outcome == "passed":
        return Verdict(
            "✓", f"{word} at the user’s tolerance" if is_tolerance_users_own(report) else word, "good"
        )
    if report.outcome in ("inconclusive", "unverified"):
        return Verdict("?", word, "unsure")
    return Verdict("⊘" if report.outcome == "rejected" else "✗", word, "bad")


def ordered_checks(report: Report) -> list[CheckResult]:
    """Return the checks, failed ones first, each group in the order in which it ran."""
    order = list(STATUSES)
    return sorted(report.checks, key=lambda check: order.index(check.status))


def shows_evidence(check: CheckResult, place: int) -> bool:
    """Return whether the check in `place` of `ordered_checks` is shown with its evidence."""
    return bool(check.evidence) and check.status in ("failed", "warning") and place < MAX_EVIDENCED


def checks_summary(checks: Sequence[CheckResult]) -> str:
    """Return ``1 failed, 13 passed, 2 not run``."""
    counts = Counter(str(check.status) for check in checks)
    order = ("failed", "passed", "warning", "not_run", "not_applicable")
    return ", ".join(f"{counts[s]} {STATUSES[s][1]}" for s in order if counts[s]) or "none"


def evidence_items(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of each piece of evidence: where, then got and expected, then the rest."""
    keys = [k for k in _EVIDENCE_FIRST if k in evidence]
    # The map is drawn, and what the compiler says has a section of its own.
    keys += [k for k in evidence if k not in keys and k not in ("map", "diagnostics", "log")]
    if isinstance(evidence.get("workload"), str):  # it names both
        keys = [k for k in keys if k not in ("sizes", "family")]
    items: list[tuple[str, str]] = []
    for key in keys[:MAX_EVIDENCE]:
        value = evidence[key]
        if (
            key == "examples"
            and isinstance(value, list | tuple)
            and all(isinstance(e, Mapping) for e in value)
        ):
            items += [_example(example) for example in value[:MAX_EXAMPLES]]
        elif key == "count" and isinstance(evidence.get("total"), int):
            items.append(
                (
                    shows_of(evidence.get("map")),
                    f"{value_text(value)} of {figures.plural(evidence['total'], 'element')}",
                )
            )
        elif key != "total" or "count" not in evidence:
            items.append((one_line(key.replace("_", " "), 40), value_text(value)))
    return [(label, text) for label, text in items if text]


def _example(example: Mapping[str, Any]) -> tuple[str, str]:
    """Return ``at [0, 5]`` and ``got 1.5, expected 2``."""
    index = example.get("index", example.get("indices"))
    rest = [
        f"{one_line(k, 30)} {value_text(v, 60)}" for k, v in example.items() if k not in ("index", "indices")
    ]
    return (f"at {value_text(index, 40)}" if index is not None else "example"), one_line(", ".join(rest), 200)


def value_text(value: Any, limit: int = 160) -> str:
    """Return JSON-able data as a short line: numbers with their digits, indices in brackets, ``M=127``."""
    if isinstance(value, str):
        return one_line(value, limit)
    if isinstance(value, bool) or value is None:
        return "–" if value is None else "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.9g}" if isinstance(value, float) else str(value)
    if isinstance(value, Mapping):
        parts = [f"{k}={value_text(v, 60)}" for k, v in list(value.items())[:12]]
        return one_line(", ".join(parts) + (", …" if len(value) > 12 else ""), limit)
    if isinstance(value, Sequence):
        parts = [value_text(v, 60) for v in list(value)[:8]]
        return one_line("[" + ", ".join(parts) + (", …" if len(value) > 8 else "") + "]", limit)
    return one_line(value, limit)


# Workloads and tolerance


def workload_name(workload: Mapping[str, Any]) -> str:
    """Return ``M=127, N=1023 · heavy tails · yours``."""
    sizes = workload.get("sizes")
    parts = [value_text(sizes) if sizes else "", one_line(workload.get("family", "") or "", 60)]
    layout = one_line(workload.get("layout") or "", 40)
    parts.append(f"{layout} inputs" if layout not in ("", "contiguous") else "")
    parts.append("your own inputs" if workload.get("is_users_own") else "")
    return " · ".join(p for p in parts if p) or "–"


def is_right(workload: Mapping[str, Any]) -> bool:
    """Return whether a draw passed."""
    return workload.get("outcome") == "passed"


def _burden(workload: Mapping[str, Any]) -> float:
    error, allowed = workload.get("error"), workload.get("allowed")
    if not isinstance(error, int | float) or not isinstance(allowed, int | float):
        return -1.0
    if error != error:
        return float("inf")
    return error / allowed if allowed else (float("inf") if error else 0.0)


def ordered_workloads(report: Report) -> list[Mapping[str, Any]]:
    """Return the draws, wrong ones first, then those that come closest to what is allowed."""
    return sorted(report.workloads, key=lambda w: (is_right(w), -_burden(w)))


def error_unit(report: Report) -> tuple[float, str]:
    """Return by what errors are divided and the unit's name: eps of the dtype where the report names it."""
    eps = report.tolerance.get("eps")
    return (float(eps), "eps") if isinstance(eps, int | float) and eps > 0 else (1.0, "")


def in_unit(value: Any, unit: tuple[float, str]) -> str:
    """Return an error in `unit`, without its name."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return figures.significant(value / unit[0], 2) if is_number else value_text(value, 40)


def error_text(workload: Mapping[str, Any], unit: tuple[float, str]) -> str:
    """Return ``error 3.1 of allowed 9.6 eps, the reference's own 2.4``."""
    error, allowed, own = workload.get("error"), workload.get("allowed"), workload.get("reference_error")
    if error is None:
        return ""
    if error == 0 and not allowed:
        return "exact"
    text = f"error {in_unit(error, unit)}" + (
        "" if allowed is None else f" of allowed {in_unit(allowed, unit)}"
    )
    text += f" {unit[1]}" if unit[1] else ""
    return text + ("" if own is None else f", the reference’s own {in_unit(own, unit)}")


def workloads_summary(report: Report) -> str:
    """Return one sentence about all draws."""
    total = len(report.workloads)
    if not total:
        return "no workload was run"
    wrong = sum(not is_right(w) for w in report.workloads)
    text = figures.plural(total, "workload") + (", all right" if not wrong else f", {wrong} wrong")
    worst = ordered_workloads(report)[0]
    detail = error_text(worst, error_unit(report))
    return f"{text}; worst: {detail} ({workload_name(worst)})" if detail else text


def is_tolerance_users_own(report: Report) -> bool:
    """Return whether the user, not the policy, said what is allowed."""
    return report.tolerance.get("policy") == "user"


def tolerance_items(report: Report) -> list[tuple[str, str]]:
    """Return label and text of the tolerance: policy and reason first, then its figures."""
    items = [(k, one_line(report.tolerance[k], 600)) for k in ("policy", "reason") if report.tolerance.get(k)]
    unit = error_unit(report)
    for key, value in list(report.tolerance.items())[:MAX_EVIDENCE]:
        if key in ("policy", "reason"):
            continue
        label = "greatest error" if key == "error" else one_line(key.replace("_", " "), 40)
        is_error = unit[1] and key in ("error", "allowed", "reference_error", "floor")
        items.append((label, f"{in_unit(value, unit)} {unit[1]}" if is_error else value_text(value)))
    return items


def notices(report: Report) -> list[str]:
    """Return what must be read before anything else, one sentence each."""
    lines = []
    if is_tolerance_users_own(report):
        reason = one_line(report.tolerance.get("reason", "") or "", 400)
        lines.append("The tolerance is the user’s own" + (f": {reason}" if reason else ""))
    if report.outcome == "unverified":
        lines.append("Unverified: there is no reference, and nothing says that these results are right")
    if report.level == "quick" and report.is_passed:
        lines.append("Quick check only: the user’s own inputs, once")
    if report.timing is not None and report.timing.is_suspect:
        lines.append(timing_sentence(report.timing))
    return lines + [one_line(w, 400) for w in report.warnings[:12]]


# Compile, fault, provenance


def resource_rows(report: Report) -> list[tuple[str, str, str, str, str]]:
    """Return kernel, registers, spills, static shared memory and occupancy of each compiled kernel."""
    rows = []
    kernels = report.compile.get("kernels") or {}
    for name, value in list(kernels.items())[:32]:
        data = value if isinstance(value, Mapping) else {}
        occupancy = data.get("occupancy")
        rows.append(
            (
                one_line(name, 120),
                value_text(data.get("registers")),
                figures.size(data.get("spill_bytes")),
                figures.size(data.get("static_shared_bytes")),
                "–" if not isinstance(occupancy, int | float) else f"{100 * occupancy:.0f} %",
            )
        )
    return rows


def kernels_sentence(report: Report) -> str:
    """Return the kernels' names where the device cannot tell what they use; empty where it can."""
    rows = resource_rows(report)
    if any(cell != "–" for row in rows for cell in row[1:]):
        return ""
    return "Kernels: " + ", ".join(row[0] for row in rows) if rows else ""


def compile_sentence(report: Report) -> str:
    """Return architecture, seconds and number of diagnostics."""
    data = report.compile
    parts = [f"for {one_line(data['arch'], 80)}"] if data.get("arch") else []
    if isinstance(data.get("seconds"), int | float):
        parts.append(
            f"in {figures.seconds(data['seconds'])}" + (" (from the cache)" if data.get("is_cached") else "")
        )
    found = Counter(str(d.get("severity", "error")) for d in diagnostics(report))
    parts += [figures.plural(found[s], s) for s in ("error", "warning") if found[s]]
    verb = "Not compiled" if report.outcome == "not_compiled" else "Compiled"
    colon = "" if parts and parts[0].startswith(("for ", "in ")) else ":"
    return f"{verb}{colon} {', '.join(parts)}" if parts else ""


def diagnostics(report: Report) -> list[Mapping[str, Any]]:
    """Return the compiler's messages in its order."""
    return [d for d in report.compile.get("diagnostics") or () if isinstance(d, Mapping)]


def device_text(report: Report) -> str:
    """Return ``NVIDIA H200 (sm_90a)``."""
    device = report.device
    name = one_line(device.get("name") or device.get("device") or "", 80)
    arch = one_line(device.get("arch") or "", 20)
    text = f"{name} ({arch})" if name and arch and arch != "host" else name
    return f"{text}, emulation" if device.get("device") == "cpu" and text else text


def flat_facts(data: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return label and text of nested data, for the details at the end of a report."""
    items: list[tuple[str, str]] = []
    for key, value in list(data.items())[:60]:
        label = one_line(f"{prefix}{str(key).replace('_', ' ')}", 60)
        if isinstance(value, Mapping) and not prefix:
            items += flat_facts(value, f"{label} · ")
        else:
            items.append((label, value_text(value)))
    return items


def stages_text(report: Report) -> str:
    """Return ``compile 0.08 s, quick 0.2 s, total 3.1 s``."""
    return ", ".join(
        f"{one_line(k, 20)} {figures.seconds(v)}"
        for k, v in report.seconds.items()
        if isinstance(v, int | float)
    )


def diagnostic_text(item: Mapping[str, Any]) -> str:
    """Return ``line 25, column 47: error: …`` on one line."""
    number, column = one_line(item.get("line") or "", 12), one_line(item.get("column") or "", 12)
    place = f"line {number}" + (f", column {column}" if column else "") + ": " if number else ""
    return f"{place}{one_line(item.get('severity', 'error'), 20)}: {one_line(item.get('message', ''), 1000)}"


def diagnostic_block(item: Mapping[str, Any], source: str | None) -> str:
    """Return a diagnostic with its line of `source` and a mark below its column, where they are known."""
    text, number, column = diagnostic_text(item), item.get("line"), item.get("column")
    if not isinstance(number, int) or number < 1 or not source or len(source) > 1_000_000:
        return text
    lines = source.split("\n")
    if number > len(lines):
        return text
    line = clean(lines[number - 1][:240]).expandtabs(4)
    text += f"\n{number:>5} | {line}"
    if isinstance(column, int) and 0 < column <= len(lines[number - 1][:240]):
        # The mark stands where the cleaned and expanded prefix ends.
        prefix = clean(lines[number - 1][: column - 1]).expandtabs(4)
        text += f"\n      | {' ' * display_width(prefix)}^"
    return text


def tolerance_summary(report: Report) -> str:
    """Return what was allowed and by whose rule: ``9.6 eps, from the reference’s own error``."""
    data = report.tolerance
    policy = one_line(data.get("policy") or "", 80)
    rule = _POLICIES.get(policy, policy)
    if data.get("has_oracle") is False:
        rule += ", which does not run in float64"
    allowed, unit = data.get("allowed"), error_unit(report)
    if policy == "exact" or not isinstance(allowed, int | float) or isinstance(allowed, bool):
        return rule
    figure = f"{allowed:g} relative" if policy == "user" else f"{in_unit(allowed, unit)} {unit[1]}".rstrip()
    return f"{figure}, {rule}" if rule else figure


def json_able(value: Any) -> Any:
    """Return `value` as JSON has it, so that a bundle never breaks a notebook's file."""
    return json.loads(json.dumps(value, default=str, allow_nan=True), parse_constant=str)
