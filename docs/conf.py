"""The documentation as a site: ``sphinx-build -W docs SITE``, with the extra ``docs``; nothing is run or downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from ipython_pygments_lexers import IPython3Lexer
from pygments.lexers import CudaLexer
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

project = "LLM-CUDA"
copyright = "the LLM-CUDA maintainers"  # noqa: A001 - Sphinx's word
extensions = ["myst_nb", "sphinx_external_toc", "sphinx_copybutton"]
exclude_patterns = ["**/kernels/**", "**/.ipynb_checkpoints"]

html_theme = "furo"
html_title = "LLM-CUDA"
html_favicon = "../kernelspec/logo-svg.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "../kernelspec/logo-svg.svg"
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "github-dark"

# Outputs are committed, and a test runs the notebooks again: a site can be built where no kernel can run.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_error_lexer = "text"
# The record is for notebooks; a page shows the report beside it.
suppress_warnings = ["mystnb.unknown_mime_type"]
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline"]
copybutton_exclude = ".linenos, .gp, .go"


class CellLexer(IPython3Lexer):
    """IPython, and CUDA C++ below a line that begins with ``%%cuda``."""

    name = "IPython with CUDA"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yield place, kind and text of each token."""
        if not text.startswith("%%cuda "):
            yield from super().get_tokens_unprocessed(text)
            return
        first, newline, body = text.partition("\n")
        yield from super().get_tokens_unprocessed(first + newline)
        for place, kind, value in CudaLexer().get_tokens_unprocessed(body):
            yield len(first + newline) + place, kind, value


class PairedPictures(SphinxTransform):
    """Show ``name-dark.png`` in place of ``name.png`` where the reader's theme is dark, and there is one."""

    default_priority = 200  # before images are collected

    def apply(self, **_: Any) -> None:
        """Put the dark picture beside each light one; the theme shows one of them."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for light in list(self.document.findall(nodes.image)):
            path = Path(light["uri"])
            dark = path.with_name(f"{path.stem}-dark{path.suffix}")
            if "://" in light["uri"] or not (folder / dark).is_file():
                continue
            twin = light.deepcopy()
            twin["uri"] = dark.as_posix()
            light["classes"].append("only-light")
            twin["classes"].append("only-dark")
            light.parent.insert(light.parent.index(light) + 1, twin)


def setup(app: Sphinx) -> None:
    """Register what this site adds to Sphinx."""
    for name in ("ipython", "ipython3"):
        app.add_lexer(name, CellLexer)
    app.add_transform(PairedPictures)
