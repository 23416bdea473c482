"""What every test gets: no key, no configuration and no proxy of the person who runs it."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts a duration, also not through Hypothesis: machines are busy.
# In CI the same examples are drawn every time: a failure there is the change's, and new examples are looked for elsewhere.
settings.register_profile("no-deadline", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("no-deadline")

pytest_plugins = ["tests.wire.fixtures"]

_FOREIGN = re.compile(
    r"^(ANTHROPIC|OPENAI|OPENROUTER|LLMKERNEL)_|^(HTTPS?|ALL|NO)_PROXY$|(API_KEY|AUTH_TOKEN)$", re.IGNORECASE
)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard():
    # The processes of pytest-xdist ignore Ctrl-C, and so would what they start; tests interrupt on purpose.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path_factory):
    for name in [n for n in os.environ if _FOREIGN.search(n)]:
        monkeypatch.delenv(name)
    # The cache stays: compilers keep their own libraries there, which take long to build.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in (
        ("CONFIG", ".config"),
        ("DATA", ".local/share"),
        ("STATE", ".local/state"),
    ):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))
