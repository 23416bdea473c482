"""Reasoning that a server leaves in the text, between ``<think>`` tags, before the reply."""

from __future__ import annotations

from dataclasses import dataclass

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass
class ThinkingTags:
    """Splits streamed text into reasoning and reply; only tags at the very beginning count.

    The reasoning may hold fenced code, which must not be taken for the candidate.
    """

    _state: str = "start"
    _held: str = ""

    def feed(self, text: str) -> tuple[str, str]:
        """Return the reasoning and the reply that are certain after `text`."""
        self._held += text
        if self._state == "start":
            begin = self._held.lstrip()
            if begin.startswith(_OPEN):
                self._state, self._held = "thinking", begin[len(_OPEN) :]
            elif not _OPEN.startswith(begin):
                self._state = "reply"
        if self._state == "thinking":
            return self._thinking()
        if self._state == "reply":
            held, self._held = self._held, ""
            return "", held
        return "", ""

    def flush(self) -> tuple[str, str]:
        """Return what is left at the end of the stream."""
        held, self._held = self._held, ""
        return (held, "") if self._state == "thinking" else ("", held)

    def _thinking(self) -> tuple[str, str]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "reply", ""
            return thought, rest
        # A tag that has only begun to arrive is held back.
        keep = next((n for n in range(len(_CLOSE) - 1, 0, -1) if self._held.endswith(_CLOSE[:n])), 0)
        cut = len(self._held) - keep
        thought, self._held = self._held[:cut], self._held[cut:]
        return thought, ""
