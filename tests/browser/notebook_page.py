"""What a person does in a notebook: types, runs, saves, looks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.browser.accessibility import violations

REPORT = ".jp-OutputArea-output [role=region]"
_OBSERVER = r"""
() => {
  const seen = window.llmkernelStates = [];
  const look = () => document.querySelectorAll('.jp-OutputArea-output [role=region]').forEach(region => {
    const text = region.innerText.replace(/\s+/g, ' ').trim();
    if (!seen.includes(text)) seen.push(text);
  });
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
}
"""
_TEXTS = """
selector => [...document.querySelectorAll(selector)].map(region => {
  const texts = [], nodes = document.createTreeWalker(region, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) if (nodes.currentNode.parentElement.localName !== 'style') texts.push(nodes.currentNode.data);
  return texts.join(' ');
})
"""

# A script that lists the elements that reach out of a report to the right, unless inside a part that scrolls by itself.
OVERFLOW = """
report => {
  const right = report.getBoundingClientRect().right + 1;
  const out = report.scrollWidth > report.clientWidth ? ['the report itself'] : [];
  for (const element of report.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (box.width && box.right > right && !element.closest('pre, .wrap'))
      out.push(element.outerHTML.slice(0, 120));
  }
  return out;
}
"""


class NotebookPage:
    """A page of JupyterLab or Notebook 7 with one notebook in it."""

    def __init__(self, page: Any, pictures: Path) -> None:
        self.page = page
        self._pictures = pictures

    def goto(self, address: str) -> None:
        """Open `address` and wait for the notebook's cells."""
        self.page.goto(address)
        self.wait_for_cells()

    def wait_for_cells(self) -> None:
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(state="attached")

    def wait_for_idle_kernel(self, name: str = "LLM-CUDA") -> None:
        """Wait until JupyterLab's status bar says that the kernel is connected and does nothing."""
        self.page.get_by_text(f"{name} | Idle", exact=True).wait_for()

    @property
    def cells(self) -> Any:
        return self.page.locator(".jp-Notebook .jp-CodeCell")

    def type_cell(self, source: str) -> None:
        """Type `source` into the active cell, key by key, over what the editor indents by itself."""
        keyboard = self.page.keyboard
        for index, line in enumerate(source.rstrip("\n").split("\n")):
            if index:
                keyboard.press("Enter")
                keyboard.press("Shift+Home")
                keyboard.press("Delete")
            keyboard.type(line)

    def run_cell(self, source: str) -> Any:
        """Type a cell, run it with Shift+Enter, wait for its end and return the cell's locator."""
        cell = self.start_cell(source)
        self.wait_for_end(cell)
        return cell

    def start_cell(self, source: str) -> Any:
        """Type a cell and run it; do not wait."""
        active = self.page.locator(".jp-Notebook .jp-CodeCell.jp-mod-active .cm-content")
        active.click()
        self.type_cell(source)
        index = self.page.evaluate(
            "[...document.querySelectorAll('.jp-Notebook .jp-CodeCell')]"
            ".findIndex(cell => cell.classList.contains('jp-mod-active'))"
        )
        self.page.keyboard.press("Shift+Enter")
        return self.cells.nth(index)

    def start(self, cell: Any) -> None:
        """Run a cell that is there already; do not wait."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")

    def run(self, cell: Any) -> None:
        """Run a cell that is there already and wait for its end."""
        self.start(cell)
        self.wait_for_end(cell)

    def wait_for_end(self, cell: Any) -> None:
        """Wait until the cell has its execution number."""
        prompt = cell.locator(".jp-InputPrompt")
        self.page.wait_for_function(
            "prompt => /\\[\\d+\\]/.test(prompt.textContent)", arg=prompt.element_handle()
        )

    def watch_reports(self) -> None:
        """Remember every state of every report from now on."""
        self.page.evaluate(_OBSERVER)

    def watched(self) -> list[str]:
        return list(self.page.evaluate("window.llmkernelStates"))

    @property
    def report(self) -> Any:
        """The first report, scrolled to."""
        report = self.page.locator(REPORT).first
        report.wait_for(state="attached")
        report.scroll_into_view_if_needed()
        return report

    def wait_for_reports(self, count: int) -> list[str]:
        """Wait until the page shows `count` reports: notebooks are rendered cell by cell."""
        from playwright.sync_api import expect

        expect(self.page.locator(REPORT)).to_have_count(count, timeout=60_000)
        return self.reports()

    def reports(self) -> list[str]:
        """Return the text of the reports on the page, folded parts included."""
        return [re.sub(r"\s+", " ", text).strip() for text in self.page.evaluate(_TEXTS, REPORT)]

    def save(self) -> None:
        """Save with Ctrl+S and wait until the server has it."""
        with self.page.expect_response(
            lambda r: r.request.method == "PUT" and "/api/contents/" in r.url and r.ok
        ):
            self.page.keyboard.press("Control+s")

    def save_as(self, name: str) -> None:
        """Save a new notebook: JupyterLab asks for its name."""
        self.page.keyboard.press("Control+s")
        dialog = self.page.locator(".jp-Dialog")
        dialog.locator("input[type=text], input:not([type])").first.fill(name)
        dialog.locator(".jp-mod-accept").click()
        tab = self.page.locator(".lm-TabBar-tab.jp-mod-current:not(.jp-mod-dirty)", has_text=name)
        tab.wait_for()

    def picture(self, name: str, target: Any = None) -> Path:
        """Take a picture of the page, or of one element."""
        path = self._pictures / f"{name}.png"
        (target or self.page).screenshot(path=path)
        return path

    def both_themes(self) -> Iterator[str]:
        """Show the page in light, then in dark; yield what the names of its pictures end in.

        The server's theme follows the browser's (`FOLLOWS_BROWSER`).
        """
        for scheme, suffix in (("light", ""), ("dark", "-dark"), ("light", None)):
            self.page.emulate_media(color_scheme=scheme)
            theme = f"JupyterLab {scheme.title()}"
            self.page.locator(f'body[data-jp-theme-name="{theme}"]').wait_for(state="attached")
            if suffix is not None:
                yield suffix

    def pictures_of(self, name: str, cell: Any, height: int = 900) -> list[str]:
        """Take a picture of a cell in light and in dark; return what is inaccessible or cut off in its report.

        Below `height` pixels the picture ends.
        """
        flaws: list[str] = []
        cell.evaluate("cell => cell.setAttribute('data-looked-at', '')")
        for suffix in self.both_themes():
            cell.evaluate("cell => cell.scrollIntoView({block: 'start'})")
            box = cell.bounding_box()
            # Without the line that JupyterLab draws between cells.
            clip = {**box, "y": box["y"] + 2, "height": min(box["height"] - 4, height)}
            self.page.screenshot(path=self._pictures / f"{name}{suffix}.png", clip=clip)
            if cell.locator(REPORT).count():
                # In the dark only the colours are others.
                rules = ("color-contrast",) if suffix else ()
                flaws += violations(self.page, f"[data-looked-at] {REPORT}", rules)
                flaws += cell.locator(REPORT).first.evaluate(OVERFLOW)
        cell.evaluate("cell => cell.removeAttribute('data-looked-at')")
        return flaws


def source_cells(notebook: dict[str, Any]) -> Iterable[str]:
    """Return the code cells of a notebook's JSON."""
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
