"""axe-core, which judges a page by the Web Content Accessibility Guidelines."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import pytest

_RUN = """
async ([selector, rules]) => {
  // The order of headings is the notebook's: what stands above a report is not ours.
  const options = {resultTypes: ['violations'], rules: {'heading-order': {enabled: false}}};
  if (rules.length) options.runOnly = {type: 'rule', values: rules};
  return (await axe.run(selector, options)).violations.flatMap(rule =>
    rule.nodes.map(node => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}
"""
_FOLD = """
([selector, open]) => document.querySelectorAll(`${selector} details`).forEach(part => { part.open = open; })
"""


def violations(page: Any, selector: str, rules: Sequence[str] = ()) -> list[str]:
    """Return what axe-core finds inside the elements of `selector`, unfolded: rule, element and reason.

    All of its rules are asked, or those named.
    """
    pytest.importorskip("axe_playwright_python", reason="axe-core comes with axe-playwright-python")
    if not page.evaluate("'axe' in window"):
        page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    page.evaluate(_FOLD, [selector, True])
    found = list(page.evaluate(_RUN, [selector, list(rules)]))
    page.evaluate(_FOLD, [selector, False])
    return found
