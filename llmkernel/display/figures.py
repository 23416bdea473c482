"""Numbers as words: times, ratios, bytes, tokens and money, the same on every surface."""

from __future__ import annotations

from typing import Any

# Unit name and how many of it make a millisecond.
Unit = tuple[str, float]
_UNITS: tuple[tuple[float, Unit], ...] = ((1e3, ("s", 1e-3)), (0.1, ("ms", 1.0)), (0.0, ("µs", 1e3)))


def significant(value: Any, digits: int = 3) -> str:
    """Return a number with `digits` digits, without exponent between 1e-4 and 1e7; text as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    if value != value or abs(value) == float("inf"):
        return str(value)
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:.0f}"
    text = f"{value:.{digits}g}"
    if "e" in text:  # 999.6 rounds up to 1e+03
        return f"{value:.0f}"
    missing = digits - len(text.replace(".", "").replace("-", "").lstrip("0"))
    if missing > 0:
        text = (text if "." in text else text + ".") + "0" * missing
    return text


def time_unit(milliseconds: float) -> Unit:
    """Choose the unit in which a table that is about `milliseconds` is printed."""
    return next(unit for floor, unit in _UNITS if abs(milliseconds) >= floor)


def time(milliseconds: float | None, unit: Unit | None = None) -> str:
    """Return a time with its unit."""
    if milliseconds is None:
        return "–"
    name, factor = unit or time_unit(milliseconds)
    return f"{significant(milliseconds * factor)} {name}"


def seconds(value: float) -> str:
    """Return a wall time: ``0.12 s``, ``4.3 s``, ``2 min 05 s``."""
    if value >= 60:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest:02d} s"
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"


def ratio(value: float | None) -> str:
    """Return ``2.03 ×``."""
    return "–" if value is None else f"{significant(value)} ×"


def interval(low: float | None, high: float | None) -> str:
    """Return ``1.97–2.03``, or an empty string when an end is unknown."""
    return "" if low is None or high is None else f"{significant(low)}–{significant(high)}"


def size(count: float | None) -> str:
    """Return bytes with a decimal unit, as bandwidths are quoted."""
    if count is None:
        return "–"
    value = float(count)
    for name in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {name}" if name == "B" else f"{significant(value)} {name}"
        value /= 1000
    return f"{significant(value)} TB"


def grouped(count: int) -> str:
    """Return an integer with thin groups: ``12 345``."""
    return f"{count:,}".replace(",", "\u202f")


def count_of(count: float, noun: str) -> str:
    """Return a large count in words: ``336 million operations``."""
    for floor, word in ((1e12, "trillion "), (1e9, "billion "), (1e6, "million ")):
        if count >= floor:
            return f"{significant(count / floor)} {word}{noun}"
    return f"{grouped(round(count))} {noun}"


def money(usd: float | None) -> str:
    """Return ``0.0123 USD``; empty when the price is not known."""
    if usd is None:
        return ""
    return f"{usd:.4f} USD" if usd < 1 else f"{usd:.2f} USD"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return ``1 check``, ``3 checks``."""
    return f"{count} {noun if count == 1 else (nouns or noun + 's')}"
