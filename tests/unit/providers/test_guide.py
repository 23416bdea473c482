"""The guide says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import llmkernel.providers
from llmkernel.providers import errors
from llmkernel.providers.base import Message, Reply, Request
from llmkernel.providers.models import load_models
from llmkernel.providers.registry import available_providers
from llmkernel.providers.retry import RetryPolicy
from llmkernel.providers.settings import ProviderSettings

GUIDE = (Path(__file__).parents[3] / "docs/guide/providers.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n[0].isupper()])
def test_every_error_is_explained(name):
    assert f"`{name}`" in GUIDE


def test_every_built_in_provider_is_named():
    for name in available_providers():
        assert f"`{name}`" in GUIDE


def test_every_variable_that_is_read_is_named():
    root = Path(llmkernel.providers.__file__).parent
    source = "\n".join(p.read_text("utf-8") for p in root.glob("*.py"))

    read = set(re.findall(r"\b(?:ANTHROPIC|OPENAI|OPENROUTER|LLMKERNEL)_[A-Z_]+\b", source))

    assert {name for name in read if name not in GUIDE} == set()


def test_the_numbers_are_the_defaults():
    policy, settings = RetryPolicy(), ProviderSettings()

    assert f"beyond {policy.max_wait_s:.0f} s" in GUIDE
    assert policy.max_retries == settings.max_retries == 4
    assert policy.max_connection_retries == 2
    assert f"may take {settings.connect_timeout_s:.0f} s" in GUIDE
    assert f"may take {settings.read_timeout_s:.0f} s" in GUIDE


def test_the_example_models_file_is_one(tmp_path, monkeypatch):
    path = tmp_path / "models.toml"
    path.write_text(next(b for b in blocks("toml") if "[defaults]" in b), "utf-8")
    monkeypatch.setenv("LLMKERNEL_MODELS", str(path))

    assert load_models().find("qwen3-coder").reply_tokens == 16000


def test_the_example_provider_works():
    names = {}
    exec(blocks("python")[0], names)

    *_, reply = names["EchoProvider"]().stream(Request("", (Message("user", "hello"),)))

    assert reply == Reply("hello", "end", "echo")
