"""The stop button, wherever in a magic it strikes: one line, and no frames of this package or of an import."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def stops_in_one_line(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a magic's method: an interrupt that nothing inside has explained is explained here.

    Rendering the traceback of an interrupt within an import takes IPython a second.
    """

    @functools.wraps(magic)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return magic(*args, **kwargs)
        except KeyboardInterrupt as error:
            told = ["KeyboardInterrupt: the cell was stopped; nothing was assigned."]
            vars(error).setdefault("_render_traceback_", lambda: told)
            raise

    return run
