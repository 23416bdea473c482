"""A profile for a notebook: a few figures, each with what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llmkernel.display.clean import one_line
from llmkernel.display.html_page import frame, table
from llmkernel.display.markup import tag
from llmkernel.display.text import wrap

if TYPE_CHECKING:
    from llmkernel.evaluation.profiling import Profile

_WIDTH = 80


def profile_bundle(name: str, signature: str, profile: Profile) -> dict[str, Any]:
    """Return the MIME bundle of a profile.

    Parameters
    ----------
    name, signature : str
        Of the kernel as the notebook calls it.
    profile : Profile

    Returns
    -------
    dict
        ``text/html`` and ``text/plain`` (80 columns).
    """
    title = f"Profile of {one_line(name, 80)} ({profile.source})"
    about = f"The kernel is {one_line(profile.kernel, 200)}." if profile.kernel else ""
    rows = [[one_line(t, 400) for t in (f.name, f.value, f.meaning)] for f in profile.figures]
    html = [tag("p", tag("strong", title)), tag("p", tag("code", one_line(signature, 600)), cls="meta")]
    html += [tag("p", about, cls="lead")] if about else []
    html += [table(["figure", "value", "what it means"], rows, label=title)] if rows else []
    html += [tag("p", one_line(note, 400), cls="meta") for note in profile.notes]
    lines = [title, f"  {one_line(signature, 600)}"]
    lines += wrap(about, _WIDTH, "  ") if about else []
    for label, value, meaning in rows:
        lines += ["", f"{label}: {value}", *wrap(meaning, _WIDTH, "  ")]
    lines += [""] if profile.notes else []
    for note in profile.notes:
        lines += wrap(one_line(note, 400), _WIDTH)
    return {"text/html": str(frame(tag("div", *html, cls="in flat"), title)), "text/plain": "\n".join(lines)}
