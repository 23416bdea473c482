"""Notebooks as Markdown: ``jupyter nbconvert --to llmkernel-markdown``."""

from __future__ import annotations

from nbconvert.exporters import MarkdownExporter
from traitlets.config import Config

__all__ = ["ReportMarkdownExporter"]


class ReportMarkdownExporter(MarkdownExporter):  # type: ignore[misc] # nbconvert is not typed
    """nbconvert's Markdown, with an output's own Markdown where it has one.

    ``--to markdown`` prefers an output's HTML, which most readers of Markdown show without its style.
    """

    export_from_notebook = "Markdown with reports"

    @property
    def default_config(self) -> Config:
        """What nbconvert sets, with ``text/markdown`` first."""
        config = super().default_config
        order = config.NbConvertBase.display_data_priority
        config.NbConvertBase.display_data_priority = [
            "text/markdown",
            *(kind for kind in order if kind != "text/markdown"),
        ]
        return config
