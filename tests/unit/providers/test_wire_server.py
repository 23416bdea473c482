"""The local server as a process of its own, as notebook tests use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llmkernel.providers.registry import get_provider
from tests.unit.providers.support import REQUEST, last, make
from tests.wire.scripts import Script, anthropic_error, load_scripts, refusal, reply

ROOT = Path(__file__).parents[3]


def test_the_server_runs_as_a_process(tmp_path, monkeypatch):
    script = tmp_path / "replies.json"
    scripts = [reply("first"), reply("second", thinking="hm")]
    script.write_text(json.dumps([s.to_dict() for s in scripts]), "utf-8")

    with subprocess.Popen(
        [sys.executable, "-m", "tests.wire.server", "--script", str(script)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        provider = make("claude", None, monkeypatch, base_url=url)
        texts = [last(provider.stream(REQUEST)).text for _ in range(2)]
        server.stdin.close()
        count = int(server.stdout.readline())

    assert (texts, count, server.returncode) == (["first", "second"], 2, 0)


LIMIT = anthropic_error(429, "rate_limit_error", "slow", retry_after="1")


@pytest.mark.parametrize("script", [Script(), reply("x", chunk=2), refusal(), LIMIT])
def test_scripts_survive_a_file(script):
    assert load_scripts(json.dumps([script.to_dict()])) == [script]


def test_the_environment_sends_claude_to_the_server(claude_wire):
    claude_wire.queue(reply("x"))

    assert last(get_provider().stream(REQUEST)).text == "x"
