"""What every piece of HTML of ours must be, checked with the standard library's parser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"br", "hr", "col"}
ALLOWED = {
    "div",
    "style",
    "h3",
    "h4",
    "p",
    "span",
    "strong",
    "b",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
}
ALLOWED |= {"table", "colgroup", "col", "thead", "tbody", "tr", "th", "td", "details", "summary"}
DRAWN = {"svg", "rect", "path", "circle", "text"}
ALLOWED |= DRAWN
ATTRIBUTES = {"class", "style", "role", "aria-label", "aria-hidden", "scope", "open", "tabindex", "colspan"}
# As the parser writes them; a drawing refers to nothing and holds numbers and words only.
DRAWING = {
    "d",
    "width",
    "height",
    "x",
    "y",
    "cx",
    "cy",
    "r",
    "viewbox",
    "preserveaspectratio",
    "shape-rendering",
}
DRAWING |= {
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
    "text-anchor",
}
DRAWING |= {"font-size"}
DRAWING_VALUE = re.compile(r"^[\w .-]+$")
STYLE_VALUE = re.compile(r"^(?:(?:width|left):\d+(?:\.\d+)?%;?)+$|^counter-reset:l \d+$")


class Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.text: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.sheets: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        for name, value in attrs:
            if tag in DRAWN and name in DRAWING:
                assert DRAWING_VALUE.match(value or ""), value
                continue
            assert name in ATTRIBUTES, (tag, name)
            if name == "style":
                assert STYLE_VALUE.match(value), value
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag, tag

    def handle_data(self, data):
        (self.sheets if self.stack and self.stack[-1] == "style" else self.text).append(data)

    def handle_comment(self, data):
        raise AssertionError(f"comment {data!r}")

    def handle_decl(self, decl):
        raise AssertionError(f"declaration {decl!r}")

    def unknown_decl(self, data):
        raise AssertionError(f"declaration {data!r}")

    def handle_pi(self, data):
        raise AssertionError(f"instruction {data!r}")


def check_html(html: str) -> Checker:
    """Fail unless `html` nests well and holds allowed elements and attributes only."""
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.stack == []
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]", html)
    for sheet in checker.sheets:
        assert "url(" not in sheet
        assert "@import" not in sheet
        assert "://" not in sheet
        assert sheet.count("{") == sheet.count("}")
    return checker


def visible_text(html: str) -> str:
    """Return the text that is left when a host drops every tag and the style sheet, on one line."""
    return re.sub("[ \n\u00a0]+", " ", "".join(check_html(html).text)).strip()
