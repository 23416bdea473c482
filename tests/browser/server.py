"""A Jupyter server of the test's own: its own directories, our kernel, nothing of the person who runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

TOKEN = "for-this-test-only"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/")
_START_S = 60
_SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
FOLLOWS_BROWSER = {"@jupyterlab/apputils-extension/themes": {"adaptive-theme": True}}


class JupyterServer:
    """JupyterLab or Notebook 7 on the loopback interface; a context manager.

    Parameters
    ----------
    application : str
        ``jupyterlab`` or ``notebook``.
    root : Path
        The notebooks' folder.
    state : Path
        Where settings, workspaces and the log go; a new folder makes a server that remembers nothing.
    environment : mapping
        All variables of the server, and so of its kernels.
    settings : mapping
        Values by the name of their plug-in, such as `FOLLOWS_BROWSER`: light or dark as the browser prefers.
    """

    def __init__(
        self,
        application: str,
        root: Path,
        state: Path,
        environment: Mapping[str, str],
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        folder, workspaces = state / "settings", state / "workspaces"
        for name, values in {**_SETTINGS, **(settings or {})}.items():
            path = folder / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values), encoding="utf-8")
        root.mkdir(exist_ok=True)
        self._command = [
            *(sys.executable, "-m", application, "--no-browser", "--allow-root"),
            *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={root}"),
            f"--IdentityProvider.token={TOKEN}",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.extension_manager=readonly",
        ]
        self._environment = {
            **environment,
            "JUPYTERLAB_SETTINGS_DIR": str(folder),
            "JUPYTERLAB_WORKSPACES_DIR": str(workspaces),
        }
        self._log = state / "server.log"
        self._root = root
        self._is_ready = threading.Event()
        self._port = 0

    def url(self, path: str) -> str:
        """Return the address of `path`, with the token."""
        mark = "&" if "?" in path else "?"
        return f"http://127.0.0.1:{self._port}/{quote(path, safe='/?=&')}{mark}token={TOKEN}"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self._is_ready.wait(_START_S)
        if not self._port:
            self.__exit__()
            raise RuntimeError(f"The server did not start:\n{self._log.read_text('utf-8')[-3000:]}")
        return self

    def __exit__(self, *_: object) -> None:
        # It ends its kernels before itself.
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(5)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._log.open("w", encoding="utf-8") as log, self._process.stderr as lines:
            for line in lines:
                log.write(line)
                log.flush()
                if not self._port and (found := _ADDRESS.search(line)):
                    self._port = int(found[1])
                    self._is_ready.set()
        self._is_ready.set()
