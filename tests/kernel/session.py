"""A running kernel, and what one cell of it gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

TIMEOUT = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Cell:
    """What one cell gave: the reply, and its messages in order."""

    reply: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    @property
    def text(self) -> str:
        """Everything that is printed, in plain text."""
        parts = [c["text"] for c in self.of("stream")]
        parts += [
            c["data"].get("text/plain", "") for c in (*self.of("execute_result"), *self.of("display_data"))
        ]
        return "".join(parts)

    @property
    def error(self) -> str:
        """The traceback without colours; empty when the cell ended well."""
        return _COLOUR.sub("", "\n".join(line for c in self.of("error") for line in c["traceback"]))


class Session:
    """A kernel with its client."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    @classmethod
    @contextmanager
    def start(cls, name: str, *, cwd: Path, **options: Any) -> Iterator[Session]:
        manager, client = start_new_kernel(kernel_name=name, cwd=str(cwd), startup_timeout=TIMEOUT, **options)
        try:
            yield cls(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)

    def run(self, code: str, **options: Any) -> Cell:
        """Run one cell to its end."""
        messages: list[dict[str, Any]] = []
        reply = self.client.execute_interactive(
            code, output_hook=messages.append, timeout=TIMEOUT, allow_stdin=False, **options
        )
        return Cell(reply["content"], messages)

    def value(self, expression: str) -> Any:
        """Evaluate an expression there and bring its value here, where its repr says it all."""
        import ast

        reply = self.client.execute_interactive(
            "", user_expressions={"value": expression}, silent=True, store_history=False, timeout=TIMEOUT
        )
        found = reply["content"]["user_expressions"]["value"]
        assert found["status"] == "ok", found
        return ast.literal_eval(found["data"]["text/plain"])

    def complete(self, code: str, position: int | None = None) -> list[str]:
        return self.client.complete(code, position, reply=True, timeout=TIMEOUT)["content"]["matches"]
