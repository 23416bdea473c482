"""A real HTTP server on the loopback interface that speaks the Messages, Responses and chat protocols.

It is driven by a queue of `Script`s, one a request, and records what it received. In tests, use the fixture
`wire_server` (`tests.wire.fixtures`); for a notebook in another process::

    python -m tests.wire.server --script replies.json     # prints the port, serves until its stdin closes
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.wire.protocols import PROTOCOLS
from tests.wire.scripts import CUT, SILENCE, Script, load_scripts

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class _State:
    scripts: deque[Script] = field(default_factory=deque)
    requests: list[ReceivedRequest] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


class WireServer:
    """The server; a context manager. With `tls` it speaks HTTPS.

    Attributes
    ----------
    requests : list of ReceivedRequest
        In order of arrival.
    hung_up : threading.Event
        Set when a client closed its connection before the end of a reply.
    """

    def __init__(self, scripts: Iterable[Script] = (), tls: ssl.SSLContext | None = None) -> None:
        self._state = _State(deque(scripts))
        state = self._state

        class Handler(_Handler):
            pass

        Handler.state = state
        self._http = _Server(("127.0.0.1", 0), Handler)
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """The address without a path: what ``ANTHROPIC_BASE_URL`` takes."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The address that ``OPENAI_BASE_URL`` and OpenAI-compatible clients take."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[ReceivedRequest]:
        return self._state.requests

    @property
    def hung_up(self) -> threading.Event:
        return self._state.hung_up

    def queue(self, *scripts: Script) -> None:
        """Answer the next requests with `scripts`, in order."""
        self._state.scripts.extend(scripts)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Take a client that hangs up between requests as the normal thing it is here."""
        if not isinstance(sys.exception(), ConnectionError | ssl.SSLError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    state: _State
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's word
        pass

    def do_GET(self) -> None:
        self._send_json(404, {"error": {"type": "not_found_error", "message": "Not Found"}})

    def do_CONNECT(self) -> None:
        # A proxy that refuses: what a client sees that was sent here by HTTPS_PROXY.
        self._record({})
        self.send_response(407, "Proxy Authentication Required")
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.close_connection = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        with self.state.lock:
            self._record(body)
            script = self.state.scripts.popleft() if self.state.scripts else None
        path = urlsplit(self.path).path  # absolute where a client takes this server for a proxy
        if path not in PROTOCOLS:
            self._send_html(
                404, "<html><head><title>404 Not Found</title></head><body>nginx model</body></html>"
            )
        elif script is None:
            # Not a status that is retried: a test that queued too little fails at once.
            message = "the wire server has no script left"
            self._send_json(400, {"error": {"type": "invalid_request_error", "message": message}})
        elif script.status != 200 and isinstance(script.error, str):
            self._send_html(script.status, script.error, script.headers)
        elif script.status != 200:
            self._send_json(script.status, script.error, script.headers)
        else:
            self._stream(script, path, body)

    def _record(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.state.requests.append(ReceivedRequest(self.command, self.path, headers, body))

    def _stream(self, script: Script, path: str, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", script.content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", "req_wire")
        self.send_header("x-request-id", "req_wire")
        for name, value in script.headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            acts = PROTOCOLS[path](script, body) if script.raw is None else [script.raw.encode()]
            for act in acts:
                if isinstance(act, bytes):
                    self._send_body(act, split=script.split_bytes)
                elif isinstance(act, float):
                    self._wait(act)
                elif act == SILENCE:
                    self._wait(_PATIENCE_S)
                    return
                elif act == CUT:
                    self._reset()
                    return
            self.wfile.write(b"0\r\n\r\n")
        except (ConnectionError, TimeoutError):
            self.state.hung_up.set()
            self.close_connection = True

    def _send_body(self, data: bytes, *, split: bool) -> None:
        parts = [bytes([b]) for b in data] if split and not data.isascii() else [data]
        for part in parts:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        """Wait, but notice at once that the client closed its end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.state.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.02))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError
        if self.state.stopping.is_set():
            raise ConnectionAbortedError

    def _reset(self) -> None:
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send_json(self, status: int, body: Any, headers: Any = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _send_html(self, status: int, text: str, headers: Any = None) -> None:
        self._send(status, text.encode(), "text/html", headers)

    def _send(self, status: int, data: bytes, content_type: str, headers: Any) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("request-id", "req_wire")
        self.send_header("x-request-id", "req_wire")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def main(argv: list[str] | None = None) -> int:
    """Serve the scripts of a file until stdin closes; print the port first, the number of requests last."""
    parser = argparse.ArgumentParser(prog="python -m tests.wire.server", description=main.__doc__)
    parser.add_argument(
        "--script", type=Path, required=True, help="JSON: a list of objects with the fields of Script"
    )
    options = parser.parse_args(argv)
    with WireServer(load_scripts(options.script.read_text("utf-8"))) as server:
        print(server.port, flush=True)
        sys.stdin.read()
        print(len(server.requests), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
