"""From inside a worker's sandbox, by native code: every attempt is refused, and nothing outside the scratch changes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from llmkernel.sandbox import landlock, seccomp
from llmkernel.sandbox.environment import needed_only, with_package

from .traces import snapshot

ATTEMPTS = Path(__file__).with_name("attempts.py")
pytestmark = pytest.mark.skipif(
    bool(landlock.why_unsupported())
    or landlock.version() < landlock.WITH_SIGNALS
    or not seccomp.is_available(),
    reason="this kernel has not all of the sandbox",
)


@pytest.fixture(scope="module", params=["gpu", "programs"])
def found(request, tmp_path_factory):
    """What every attempt came to, and what it left behind."""
    base = tmp_path_factory.mktemp(request.param)
    scratch, victim = base / "scratch", base / "home"
    scratch.mkdir()
    victim.mkdir()
    (victim / "secret").write_text("planted-secret")
    (victim / "secret").chmod(0o600)
    local = base / "service"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as service:
        server.setblocking(False)
        service.bind(str(local))
        service.listen()
        service.setblocking(False)
        before = snapshot(victim)
        # A parent of its own: what it does to that one must not happen to the tests.
        command = [
            "/bin/sh",
            "-c",
            '"$0" "$@"; exit $?',
            sys.executable,
            "-P",
            str(ATTEMPTS),
            request.param,
            scratch,
            victim,
        ]
        done = subprocess.run(
            [*command, str(server.getsockname()[1]), str(local)],
            env=with_package(needed_only()) | {"TMPDIR": str(scratch), "PLANTED": "x"},
            capture_output=True,
            check=False,
            start_new_session=True,
            cwd=scratch,
            timeout=60,
        )
        with pytest.raises(BlockingIOError):
            server.accept()
        with pytest.raises(BlockingIOError):
            service.accept()
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answer = json.loads(done.stdout.decode().splitlines()[-1])
    assert answer["sandbox"]["missing"] == []
    return answer["attempts"], before, snapshot(victim)


def test_every_attempt_is_refused(found):
    attempts, _, _ = found
    assert len(attempts) > 40
    assert {name: what for name, what in attempts.items() if what.startswith("done")} == {}


def test_nothing_of_the_users_is_changed(found):
    _, before, after = found
    assert after == before
    assert not list(Path("/dev/shm").glob("llmkernel-escape-*"))
    assert not list(Path("/tmp").glob("llmkernel-escape-*"))
