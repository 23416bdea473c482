"""Which provider is meant, and where its key comes from."""

from __future__ import annotations

import subprocess
import sys
import types
from importlib.metadata import EntryPoint

import pytest

from llmkernel.errors import ConfigurationError, ProviderError
from llmkernel.providers import registry
from llmkernel.providers.base import Provider, Reply, Request
from llmkernel.providers.errors import UnknownProviderError
from llmkernel.providers.keys import Key, find_key, key_file
from llmkernel.providers.registry import (
    available_providers,
    configured_providers,
    default_provider,
    get_provider,
)

SECRET = "a-key-that-nobody-may-see-0123"


class EchoProvider(Provider):
    """A third party's provider, with a constructor of its own."""

    name = "echo"

    @classmethod
    def is_configured(cls):
        return True

    def describe(self, request):
        return "echo"

    def count_tokens(self, request):
        return 0

    def stream(self, request):
        yield Reply(request.system, "end", "echo")


@pytest.fixture
def third_party(monkeypatch):
    """Register entry points: ``name = module:attribute``."""

    def register(**points):
        found = [EntryPoint(n, v, registry.GROUP) for n, v in points.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: found if group == registry.GROUP else [])

    return register


def config(**values):
    return types.SimpleNamespace(**values)


def test_the_built_in_providers_are_known_without_metadata(third_party):
    third_party()

    assert available_providers() == ("claude", "codex", "openai-compatible", "library")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "library"),
        ({"ANTHROPIC_API_KEY": "k"}, "claude"),
        ({"ANTHROPIC_AUTH_TOKEN": "k"}, "claude"),
        ({"OPENAI_API_KEY": "k"}, "codex"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "claude"),
        ({"LLMKERNEL_OPENAI_BASE_URL": "http://localhost:1/v1"}, "openai-compatible"),
        ({"ANTHROPIC_API_KEY": "  "}, "library"),
    ],
)
def test_the_default_is_the_first_that_has_a_key(variables, expected, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert default_provider() == expected


def test_a_configured_provider_wins_over_keys(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    assert default_provider(config=config(provider="codex")) == "codex"
    assert default_provider(config=config(provider="auto")) == "claude"
    assert default_provider(config=config(provider=None)) == "claude"


def test_settings_go_to_the_provider_that_they_are_about():
    chosen = config(provider="codex", model="some-model", effort="high", max_tokens=500, read_timeout_s=7.0)
    request = Request("", ())

    assert get_provider(config=chosen).model(request) == "some-model"
    other = get_provider("claude", config=chosen)
    assert other.model(request) != "some-model"
    assert (other.settings.max_tokens, other.settings.read_timeout_s) == (500, 7.0)


def test_an_unknown_provider_gets_a_suggestion():
    with pytest.raises(UnknownProviderError) as caught:
        get_provider("Cladue")

    assert caught.value.next_step == "Did you mean `claude`?"
    assert "codex" in str(caught.value)


def test_a_third_partys_provider_is_found(third_party):
    third_party(echo=f"{__name__}:EchoProvider")

    assert "echo" in available_providers()
    assert "echo" in configured_providers()
    (reply,) = get_provider("echo").stream(Request("hello", ()))
    assert reply.text == "hello"


def test_a_third_party_cannot_take_a_built_in_name(third_party):
    third_party(claude=f"{__name__}:EchoProvider")

    assert get_provider("claude").__class__.__name__ == "ClaudeProvider"
    assert available_providers().count("claude") == 1


@pytest.mark.parametrize("value", ["no_such_module:Thing", f"{__name__}:SECRET"])
def test_a_broken_third_party_is_one_error_and_breaks_nothing_else(value, third_party):
    third_party(broken=value)

    with pytest.raises(ProviderError, match="broken"):
        get_provider("broken")
    with pytest.warns(UserWarning, match="broken"):
        assert "library" in configured_providers()


def test_asking_what_is_configured_imports_no_sdk():
    code = (
        "import sys; from llmkernel.providers.registry import configured_providers, get_provider;"
        "configured_providers(); get_provider('claude'); get_provider('codex');"
        "print(sorted({'anthropic', 'openai', 'httpx2', 'torch', 'cupy'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def write_keys(text, mode=0o600):
    path = key_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def use_keyring(monkeypatch, get_password):
    monkeypatch.setitem(sys.modules, "keyring", types.SimpleNamespace(get_password=get_password))


def test_a_key_comes_from_the_environment_then_the_keyring_then_the_file(monkeypatch):
    write_keys('claude = "from-file"\n')
    assert find_key("claude", ("SOME_VARIABLE",)).value == "from-file"

    use_keyring(
        monkeypatch,
        lambda service, name: "from-keyring" if (service, name) == ("llmkernel", "claude") else None,
    )
    assert find_key("claude", ("SOME_VARIABLE",)).value == "from-keyring"

    monkeypatch.setenv("SOME_VARIABLE", "from-environment")
    assert find_key("claude", ("SOME_VARIABLE",)) == Key("from-environment", "$SOME_VARIABLE")


@pytest.mark.parametrize("failure", [RuntimeError("no backend"), OSError("no D-Bus")])
def test_a_keyring_that_fails_is_passed_over(failure, monkeypatch):
    def get_password(service, name):
        raise failure

    use_keyring(monkeypatch, get_password)

    assert find_key("claude", ("SOME_VARIABLE",)) is None


def test_credentials_in_an_address_never_show_in_a_representation():
    chosen = config(base_url=f"https://me:{SECRET}@gateway.corp/v1")

    assert SECRET not in repr(get_provider("codex", config=chosen).settings)


def test_the_keyring_need_not_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    write_keys('claude = "from-file"\n')

    assert find_key("claude", ("SOME_VARIABLE",)).value == "from-file"


def test_a_key_never_shows_in_its_representation():
    assert SECRET not in repr(Key(SECRET, "$X"))


def test_a_key_file_that_others_can_read_is_warned_about():
    path = write_keys(f'claude = "{SECRET}"\n', 0o644)

    with pytest.warns(UserWarning, match="chmod 600") as caught:
        assert find_key("claude", ()).value == SECRET

    assert str(path) in str(caught[0].message)
    assert SECRET not in str(caught[0].message)


@pytest.mark.parametrize(
    "text", [f'claude = "{SECRET}', f"claude = {SECRET}", "claude = 3", "[claude]\nkey = 1"]
)
def test_a_malformed_key_file_is_an_error_without_the_key(text):
    path = write_keys(text)

    with pytest.raises(ConfigurationError) as caught:
        find_key("claude", ())

    assert str(path) in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("anthropic", "claude"),
        ("OpenAI", "codex"),
        ("gpt-5", "codex"),
        ("ollama", "openai-compatible"),
        ("openai_compatible", "openai-compatible"),
        ("claud", "claude"),
    ],
)
def test_what_people_call_a_provider_is_answered_with_its_name(name, meant):
    with pytest.raises(UnknownProviderError) as caught:
        get_provider(name)
    assert caught.value.next_step == f"Did you mean `{meant}`?"


def test_a_model_alone_means_its_provider(monkeypatch):
    assert get_provider(model="claude-opus-5-5").name == "claude"
    assert get_provider(model="gpt-6.2-sol").name == "codex"
    assert get_provider("codex", model="claude-opus-5-5").name == "codex"
    configured = types.SimpleNamespace(provider="openai-compatible")
    assert get_provider(model="claude-opus-5-5", config=configured).name == "openai-compatible"


def test_an_unknown_model_is_not_left_to_the_library_in_silence(monkeypatch):
    with pytest.raises(UnknownProviderError, match="qwen"):
        get_provider(model="qwen")
    monkeypatch.setenv("LLMKERNEL_OPENAI_BASE_URL", "http://localhost:1/v1")
    assert get_provider(model="qwen").name == "openai-compatible"
