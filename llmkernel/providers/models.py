"""Model ids, effort levels, limits and prices: dated defaults (``models.toml``) under the user's own file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from llmkernel.errors import ConfigurationError
from llmkernel.providers.base import Usage

_DATED_ID = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """What a model costs, in USD per million tokens.

    Attributes
    ----------
    input, output : float
    cached_input, cache_write : float or None
        None where the price is not known: a reply that used the cache then has no known cost.
    long_input_tokens : int or None
        Above this many input tokens the whole request costs `long_input_factor` and `long_output_factor`
        times as much.
    date : datetime.date or None
        When the price was read.
    source : str
        Where it was read.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    long_input_tokens: int | None = None
    long_input_factor: float = 1.0
    long_output_factor: float = 1.0
    date: date | None = None
    source: str = ""

    def cost_usd(self, usage: Usage) -> float | None:
        """Return the cost of `usage`, None where a needed price is not known."""
        parts = (
            (usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens, self.input),
            (usage.cached_tokens, self.cached_input),
            (usage.cache_write_tokens, self.cache_write),
        )
        is_long = self.long_input_tokens is not None and usage.input_tokens > self.long_input_tokens
        total = usage.output_tokens * self.output * (self.long_output_factor if is_long else 1.0)
        for tokens, price in parts:
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0) * (self.long_input_factor if is_long else 1.0)
        return total / _MILLION


@dataclass(frozen=True)
class Model:
    """What is known of one model; None or empty where it is not known.

    Attributes
    ----------
    efforts : tuple of str
        Effort levels that the model takes.
    effort : str or None
        The level that is asked for when a request names none; None leaves it to the provider.
    thinking : str or None
        ``adaptive`` asks the provider `claude` for summaries of the reasoning.
    reply_tokens : int or None
        Limit of a reply when a request sets none.
    """

    id: str
    provider: str
    efforts: tuple[str, ...] = ()
    effort: str | None = None
    thinking: str | None = None
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    reply_tokens: int | None = None
    price: Price | None = None


@dataclass(frozen=True)
class ModelTable:
    """The models of all providers."""

    models: Mapping[str, Model] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    def default(self, provider: str) -> str | None:
        """Return the model that `provider` uses when none is named."""
        return self.defaults.get(provider)

    def of(self, provider: str) -> tuple[str, ...]:
        """Return the ids known for `provider`."""
        return tuple(m.id for m in self.models.values() if m.provider == provider)

    def find(self, model: str) -> Model | None:
        """Return what is known of `model`; an id with a date at its end is the one without."""
        return self.models.get(model) or self.models.get(_DATED_ID.sub("", model))


def cost_usd(usage: Usage, model: str) -> float | None:
    """Return what `usage` cost on `model` in USD, None where the price is not known."""
    known = load_models().find(model)
    return known.price.cost_usd(usage) if known and known.price else None


def user_models_path() -> Path:
    """Return the user's file: ``$LLMKERNEL_MODELS``, else ``models.toml`` in the configuration folder."""
    if named := os.environ.get("LLMKERNEL_MODELS"):
        return Path(named).expanduser()
    from platformdirs import user_config_dir

    return Path(user_config_dir("llmkernel", appauthor=False)) / "models.toml"


def load_models() -> ModelTable:
    """Return the table: the package's defaults with the user's file merged over them, key by key.

    Raises
    ------
    ConfigurationError
        The user's file is malformed, or ``$LLMKERNEL_MODELS`` names a file that is not there.
    """
    path = user_models_path()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        if os.environ.get("LLMKERNEL_MODELS"):
            raise ConfigurationError(
                "The file that LLMKERNEL_MODELS names cannot be read.",
                received=str(path),
                next_step="Correct the variable, or unset it to use the defaults.",
            ) from None
        return _load(None, 0)
    return _load(path, stamp)


@lru_cache(maxsize=8)
def _load(path: Path | None, _stamp: int) -> ModelTable:
    packaged = resources.files("llmkernel.providers").joinpath("models.toml").read_text("utf-8")
    data = tomllib.loads(packaged)
    if path is None:
        return _table(data, "models.toml of the package", packaged)
    try:
        text = path.read_text("utf-8")
        user = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = str(error).replace("at end of document", f"at line {text.count(chr(10)) + 1}, the last one")
        raise ConfigurationError(
            f"{path} is not valid TOML: {what}.", next_step="Correct that line."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", next_step="Make it readable for you, or remove it."
        ) from None
    _check(user, path, text)
    return _table(_merge(data, user), str(path), text)


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


_NUMBER = (int, float)
_MODEL_TYPES: dict[str, tuple[type, ...]] = {
    "provider": (str,),
    "efforts": (list,),
    "effort": (str,),
    "thinking": (str,),
    "context_tokens": (int,),
    "max_output_tokens": (int,),
    "reply_tokens": (int,),
    "price": (dict,),
}
_PRICE_TYPES: dict[str, tuple[type, ...]] = {
    "input": _NUMBER,
    "output": _NUMBER,
    "cached_input": _NUMBER,
    "cache_write": _NUMBER,
    "long_input_tokens": (int,),
    "long_input_factor": _NUMBER,
    "long_output_factor": _NUMBER,
    "date": (date,),
    "source": (str,),
}


def _check(data: Mapping[str, Any], path: Path, text: str) -> None:
    """Refuse unknown keys and wrong types by name and line, before anything is merged."""

    def refuse(key: str, rule: str, value: object = None) -> None:
        line = next((n for n, row in enumerate(text.splitlines(), 1) if key in row), 1)
        received = None if value is None else repr(value)
        raise ConfigurationError(
            f"{path}, line {line}: `{key}` cannot be used.",
            rule=rule,
            received=received,
            next_step="Correct or remove that line.",
        )

    def check(table: object, types: Mapping[str, tuple[type, ...]], name: str) -> None:
        if not isinstance(table, Mapping):
            refuse(name, "A table of keys.", table)
            return
        for key, value in table.items():
            if key not in types:
                refuse(key, f"One of {', '.join(types)}.")
            # bool is an int to Python, but not a number of tokens or dollars.
            if isinstance(value, bool) or not isinstance(value, types[key]):
                refuse(key, f"A value of type {' or '.join(t.__name__ for t in types[key])}.", value)
            if isinstance(value, int | float) and value < 0:
                refuse(key, "Not negative.", value)

    for key in data:
        if key not in ("defaults", "models"):
            refuse(key, "The top level holds the tables `defaults` and `models`.")
    defaults = data.get("defaults", {})
    check(defaults, dict.fromkeys(defaults if isinstance(defaults, Mapping) else (), (str,)), "defaults")
    models = data.get("models", {})
    check(models, dict.fromkeys(models if isinstance(models, Mapping) else (), (dict,)), "models")
    for name, model in models.items():
        check(model, _MODEL_TYPES, name)
        check(model.get("price", {}), _PRICE_TYPES, "price")
        if not all(isinstance(e, str) for e in model.get("efforts", [])):
            refuse("efforts", "A list of strings.", model["efforts"])


def _table(data: Mapping[str, Any], origin: str, text: str) -> ModelTable:
    models: dict[str, Model] = {}
    for name, entry in data.get("models", {}).items():
        values = dict(entry)
        price = values.pop("price", None)
        line = next((n for n, row in enumerate(text.splitlines(), 1) if name in row), 1)
        if "provider" not in values:
            raise ConfigurationError(
                f"{origin}, line {line}: model `{name}` needs `provider`.",
                next_step='Add a line such as provider = "claude".',
            )
        if price is not None and not {"input", "output"} <= price.keys():
            raise ConfigurationError(
                f"{origin}, line {line}: the price of `{name}` needs `input` and `output`.",
                next_step="Add both, or remove the price.",
            )
        values["efforts"] = tuple(values.get("efforts", ()))
        models[name] = Model(id=name, price=Price(**price) if price else None, **values)
    return ModelTable(models, dict(data.get("defaults", {})))
