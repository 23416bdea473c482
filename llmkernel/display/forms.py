"""How a report shows itself, in a notebook and printed: importing this module says so to `llmkernel.evaluation.report`."""

from __future__ import annotations

from typing import Any

from llmkernel.evaluation.report import Report, show_reports_by


def forms(report: Report) -> dict[str, Any]:
    """Return the MIME bundle of a report about which nothing else is known."""
    from llmkernel.display.bundle import report_bundle

    return report_bundle(report, origin="")


show_reports_by(forms)
