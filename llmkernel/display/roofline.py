"""A roofline plot: what memory and arithmetic of the device allow, and what was reached.

The model is that of Williams, Waterman and Patterson (CACM 52(4), 2009): operations a second against operations a byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llmkernel.display import figures
from llmkernel.display.clean import one_line
from llmkernel.display.markup import Markup, tag
from llmkernel.evaluation.report import Timing

_WIDTH, _HEIGHT = 560, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 14, 26, 38
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True)
class Roofline:
    """What the plot is drawn from.

    Attributes
    ----------
    intensity : float
        Operations a byte that must move.
    bandwidth : float
        Bytes a second.
    peak : float or None
        Operations a second; None where no rate was measured.
    reached : tuple of (str, float)
        Label and operations a second, the kernel first.
    """

    intensity: float
    bandwidth: float
    peak: float | None
    reached: tuple[tuple[str, float], ...]

    def allowed(self, intensity: float) -> float:
        """Return the operations a second that the device allows at an intensity."""
        slope = self.bandwidth * intensity
        return slope if self.peak is None else min(slope, self.peak)


def read_roofline(timing: Timing) -> Roofline | None:
    """Return what can be drawn of a timing; None for emulation, and where bytes, operations or bandwidth are unknown."""
    limits = timing.device.get("roofline")
    if timing.is_emulation or not timing.operations or not timing.bytes_moved or not isinstance(limits, dict):
        return None
    bandwidth = _positive(limits.get("bandwidth_bytes_per_s"))
    rates = limits.get("operations_per_s")
    known = [r for r in map(_positive, rates.values()) if r] if isinstance(rates, dict) else []
    rows = [timing.kernel, *(b for b in timing.baselines if b.label == timing.best_baseline)]
    reached = tuple(
        (one_line(row.label, 40), 1e3 * timing.operations / row.median_ms)
        for row in rows
        if _positive(row.median_ms)
    )
    if bandwidth is None or len(reached) != len(rows):
        return None
    return Roofline(timing.operations / timing.bytes_moved, bandwidth, max(known, default=None), reached)


def _positive(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value > 0 else None


def rate_text(rate: float, unit: str = "op/s") -> str:
    """Return ``1.25 Top/s``."""
    floor, prefix = next((p for p in _PREFIXES if rate >= p[0]), _PREFIXES[-1])
    return f"{figures.significant(rate / floor)} {prefix}{unit}"


def roofline_sentence(roof: Roofline) -> str:
    """Return what the plot shows in words."""
    label, rate = roof.reached[0]
    allowed = roof.allowed(roof.intensity)
    bound = "memory" if roof.peak is None or allowed < roof.peak else "arithmetic"
    text = (
        f"{figures.significant(roof.intensity)} operations a byte: bound by {bound}; {label} reaches {rate_text(rate)} of "
        f"the {rate_text(allowed)} that are possible there"
    )
    return text + "".join(f", {name} {rate_text(value)}" for name, value in roof.reached[1:])


def roofline_words(timing: Timing) -> str:
    """Return the plot in words, empty where it cannot be drawn."""
    roof = read_roofline(timing)
    return "" if roof is None else f"Roofline: {roofline_sentence(roof)}."


def roofline_figure(timing: Timing) -> Markup | None:
    """Return the plot with its sentence, or None where it cannot be drawn."""
    roof = read_roofline(timing)
    if roof is None:
        return None
    plot = _Plot(roof)
    drawing = tag(
        "svg", *plot.parts(), role="img", aria_label=f"Roofline: {roofline_sentence(roof)}",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=_WIDTH, height=_HEIGHT,
    )  # fmt: skip
    legend = "filled: this kernel; ring: the best baseline; line: what the device allows, as measured"
    return tag("div", drawing, tag("p", f"{roofline_sentence(roof)}; {legend}.", cls="meta"), cls="roof")


class _Plot:
    """Both axes are logarithmic."""

    def __init__(self, roof: Roofline) -> None:
        self.roof = roof
        ridge = roof.intensity if roof.peak is None else roof.peak / roof.bandwidth
        self.x_low, self.x_high = _decades(min(roof.intensity, ridge) / 3, max(roof.intensity, ridge) * 4)
        rates = [rate for _, rate in roof.reached]
        top = max(*rates, roof.allowed(10**self.x_high))
        self.y_low, self.y_high = _decades(min(*rates, roof.allowed(roof.intensity)) / 3, top * 1.2)

    def x(self, intensity: float) -> float:
        """Return the abscissa in pixels."""
        share = (math.log10(intensity) - self.x_low) / (self.x_high - self.x_low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, rate: float) -> float:
        """Return the ordinate in pixels; what is below the axis stands on it."""
        share = max((math.log10(rate) - self.y_low) / (self.y_high - self.y_low), 0.0)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def parts(self) -> Iterator[Markup]:
        """Yield axes, roof and points."""
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        grid = []
        for power in range(self.x_low, self.x_high + 1):
            x = self.x(10.0**power)
            grid.append(f"M{x} {_TOP}V{bottom}")
            anchor = "end" if power == self.x_high else "middle"
            yield _text(x, bottom + 15, figures.significant(10.0**power, 1), anchor)
        for power in range(self.y_low, self.y_high + 1):
            y = self.y(10.0**power)
            grid.append(f"M{_LEFT} {y}H{right}")
            yield _text(_LEFT - 6, y + 4, _rate_tick(10.0**power), "end")
        yield _text((_LEFT + right) / 2, _HEIGHT - 5, "operations a byte", "middle")
        yield _text(0, 12, "operations a second", "start")
        yield tag("path", d="".join(grid), stroke="currentColor", stroke_opacity="0.15", fill="none")
        yield tag("path", d=self._roof(), stroke="currentColor", stroke_width="2", fill="none")
        x = self.x(self.roof.intensity)
        reach = f"M{x} {bottom}V{self.y(self.roof.allowed(self.roof.intensity))}"
        yield tag(
            "path", d=reach, stroke="currentColor", stroke_dasharray="3 3", stroke_opacity="0.5", fill="none"
        )
        for i, (_, rate) in reversed(list(enumerate(self.roof.reached))):
            if i:
                yield tag(
                    "circle",
                    cx=x,
                    cy=self.y(rate),
                    r="6",
                    fill="none",
                    stroke="currentColor",
                    stroke_width="2",
                )
            else:
                yield tag("circle", cx=x, cy=self.y(rate), r="5", fill="currentColor", cls="mine")

    def _roof(self) -> str:
        roof, low, high = self.roof, 10.0**self.x_low, 10.0**self.x_high
        # The slope leaves the frame below: begin where it enters.
        start = max(low, 10.0**self.y_low / roof.bandwidth)
        points = [(start, roof.allowed(start))]
        if roof.peak is not None and start < roof.peak / roof.bandwidth < high:
            points.append((roof.peak / roof.bandwidth, roof.peak))
        points.append((high, roof.allowed(high)))
        return "M" + "L".join(f"{self.x(a)} {self.y(b)}" for a, b in points)


def _decades(low: float, high: float) -> tuple[int, int]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first, max(last, first + 1)


def _rate_tick(rate: float) -> str:
    return rate_text(rate, "").strip().replace(".00", "").replace(".0", "")


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return tag(
        "text", text, x=round(x, 1), y=round(y, 1), text_anchor=anchor, fill="currentColor", font_size="11"
    )
