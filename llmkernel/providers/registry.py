"""Which providers there are, and which one is meant."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from llmkernel.errors import ProviderError
from llmkernel.prompts.redaction import redact
from llmkernel.providers.base import Provider
from llmkernel.providers.errors import UnknownProviderError
from llmkernel.providers.models import load_models
from llmkernel.providers.settings import ProviderSettings

GROUP = "llmkernel.providers"
OFFLINE = "library"

# In the order in which a default is looked for. Known without metadata, so that a source tree works too.
_BUILT_IN: Mapping[str, str] = {
    "claude": "llmkernel.providers.claude:ClaudeProvider",
    "codex": "llmkernel.providers.codex:CodexProvider",
    "openai-compatible": "llmkernel.providers.openai_compatible:OpenAICompatibleProvider",
    OFFLINE: "llmkernel.providers.library:LibraryProvider",
}

# What people call them: makers, products, servers.
_SYNONYMS: Mapping[str, str] = {
    **dict.fromkeys(("anthropic", "opus", "sonnet", "haiku"), "claude"),
    **dict.fromkeys(("openai", "gpt", "chatgpt"), "codex"),
    **dict.fromkeys(
        ("ollama", "vllm", "llama.cpp", "lmstudio", "openrouter", "gemini", "mistral", "groq", "local"),
        "openai-compatible",
    ),
    **dict.fromkeys(("offline", "none", "builtin"), OFFLINE),
}


def available_providers() -> tuple[str, ...]:
    """Return the names of all providers: the built-in ones, then third parties' by name."""
    return (*_BUILT_IN, *sorted(_third_party()))


def configured_providers() -> tuple[str, ...]:
    """Return the names of the providers that have what they need, the offline `library` among them."""
    return tuple(name for name in available_providers() if name == OFFLINE or _is_configured(name))


def default_provider(*, config: Any = None) -> str:
    """Return the provider that is used when a cell names none.

    The configured one (``config.provider``), else the first built-in one that has a key, else `library`.
    """
    chosen = getattr(config, "provider", None)
    if chosen and chosen != "auto":
        return str(chosen)
    return next((name for name in _BUILT_IN if name != OFFLINE and _is_configured(name)), OFFLINE)


def provider_class(name: str) -> type[Provider]:
    """Return the class of the provider `name`.

    Raises
    ------
    UnknownProviderError
    ProviderError
        A third party's provider cannot be imported, or is not a `Provider`.
    """
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        loaded: Any = getattr(import_module(module), attribute)
    else:
        loaded = _load(name)
    cls: type[Provider] = loaded
    return cls


def get_provider(name: str | None = None, *, model: str | None = None, config: Any = None) -> Provider:
    """Return the provider `name`, or the one that `model` means, or the default one.

    Parameters
    ----------
    name : str, optional
    model : str, optional
        Id of the model that will be asked; where neither `name` nor `config` has a provider, it is the model's.
    config : object, optional
        Anything with some of the attributes `provider`, `model`, `effort`, `max_tokens`, `base_url`,
        `connect_timeout_s`, `read_timeout_s`, `max_retries`, `max_wait_s`; absent and None ones take their
        defaults. `model`, `effort` and `base_url` belong to `config.provider`: another one does not get them.

    Raises
    ------
    UnknownProviderError
    """
    chosen = name or _provider_of(model, config) or default_provider(config=config)
    settings = ProviderSettings.from_config(config)
    configured = getattr(config, "provider", None)
    if configured and configured not in ("auto", chosen):
        settings = ProviderSettings.from_config(_Without(config, ("model", "effort", "base_url")))
    cls: Callable[..., Provider] = provider_class(chosen)
    if "settings" in inspect.signature(cls).parameters:
        return cls(settings=settings)
    return cls()


def _provider_of(model: str | None, config: Any) -> str | None:
    if model is None or getattr(config, "provider", None):
        return None
    known = load_models().find(model)
    if known is not None:
        return known.provider
    if default_provider(config=config) != OFFLINE:
        return None
    raise UnknownProviderError(
        f"No provider is known for the model `{model}`.",
        rule="The offline library has no models, and no other provider is configured.",
        received=redact(model),
        next_step="Name its provider too: --provider claude, codex or openai-compatible.",
    )


class _Without:
    """A view of a configuration that hides some attributes."""

    def __init__(self, config: Any, hidden: tuple[str, ...]) -> None:
        self._config = config
        self._hidden = hidden

    def __getattr__(self, name: str) -> Any:
        return None if name in self._hidden else getattr(self._config, name, None)


def _third_party() -> dict[str, EntryPoint]:
    # A built-in name is never taken over by another package: it would receive that provider's keys.
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in _BUILT_IN}


def _load(name: str) -> type[Provider]:
    found = _third_party()
    if name not in found:
        names = available_providers()
        near = difflib.get_close_matches(name.lower(), [*_SYNONYMS, *names], n=1, cutoff=0.6)
        close = [_SYNONYMS.get(word, word) for word in near]
        raise UnknownProviderError(
            f"There is no provider `{name}`.",
            rule=f"One of {', '.join(names)}.",
            received=redact(name),
            next_step=f"Did you mean `{close[0]}`?" if close else "Install the package that provides it.",
        )
    point = found[name]
    try:
        loaded = point.load()
    except Exception as error:  # noqa: BLE001 - a third party's module may raise anything on import
        raise ProviderError(
            f"The provider `{name}` cannot be loaded.",
            received=redact(f"{type(error).__name__}: {error}"),
            next_step=f"Repair or uninstall the package that registers {point.value}.",
        ) from None
    if not (isinstance(loaded, type) and issubclass(loaded, Provider)):
        raise ProviderError(
            f"The provider `{name}` is not a Provider.",
            rule="A subclass of llmkernel.providers.base.Provider.",
            received=point.value,
            next_step="Correct or uninstall the package that registers it.",
        )
    return loaded


def _is_configured(name: str) -> bool:
    try:
        return provider_class(name).is_configured()
    except ProviderError as error:
        warnings.warn(str(error), stacklevel=3)
        return False
