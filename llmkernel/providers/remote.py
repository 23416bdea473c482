"""What the providers that talk to a server share: settings, key, retries, and errors in our words."""

from __future__ import annotations

import difflib
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, ClassVar

from llmkernel.errors import ConfigurationError, LLMKernelError, ProviderError
from llmkernel.providers import network
from llmkernel.providers.base import Event, Provider, Request, Usage
from llmkernel.providers.errors import MissingKeyError, SdkMissingError
from llmkernel.providers.keys import Key, find_key, key_file
from llmkernel.providers.models import Model, cost_usd, load_models
from llmkernel.providers.retry import Clock, RetryPolicy, stream_with_retries
from llmkernel.providers.settings import ProviderSettings
from llmkernel.providers.translate import Call, not_this_protocol, proxy_error, translate

# A rule of thumb: a token of code or English is 3 to 4 bytes of UTF-8.
_BYTES_PER_TOKEN = 3.5
_TOKENS_PER_MESSAGE = 8


class RemoteProvider(Provider):
    """Base of the providers that talk to a server.

    Parameters
    ----------
    settings : ProviderSettings, optional
    clock : Clock, optional
        Time, for tests.

    Notes
    -----
    A client lives as long as one stream: an interrupt, an error or a dropped generator closes its connection.
    """

    key_variables: ClassVar[tuple[str, ...]]
    base_url_variable: ClassVar[str]
    default_base_url: ClassVar[str]
    needs_key: ClassVar[bool] = True
    sdk: ClassVar[str]

    def __init__(self, settings: ProviderSettings | None = None, clock: Clock | None = None) -> None:
        self.settings = settings or ProviderSettings()
        self._clock = clock

    @classmethod
    def is_configured(cls) -> bool:
        """Return whether a key is present; builds no client and imports no SDK."""
        return find_key(cls.name, cls.key_variables) is not None

    def base_url(self) -> str:
        """Return the address that requests go to."""
        return self.settings.base_url or os.environ.get(self.base_url_variable) or self.default_base_url

    def model(self, request: Request) -> str:
        """Return the model id that `request` is sent to."""
        if model := request.model or self.settings.model or load_models().default(self.name):
            return model
        raise ConfigurationError(
            f"No model is named for {self.name}.",
            next_step=f'Name one in the cell, the settings, or [defaults] of models.toml ({self.name} = "…").',
        )

    def effort(self, request: Request) -> str | None:
        """Return the effort that `request` is sent with, None to leave it to the provider.

        Raises
        ------
        ConfigurationError
            The model is known and does not take this effort.
        """
        known = load_models().find(self.model(request))
        effort = request.effort or self.settings.effort or (known.effort if known else None)
        if effort and known and known.efforts and effort not in known.efforts:
            close = difflib.get_close_matches(effort, known.efforts, n=1)
            raise ConfigurationError(
                f"{known.id} has no effort `{effort}`.",
                rule=f"One of {', '.join(known.efforts)}.",
                received=effort,
                next_step=f"Did you mean `{close[0]}`?" if close else None,
            )
        return effort

    def reply_tokens(self, request: Request) -> int | None:
        """Return the limit of the reply, at most what the model can give."""
        known = load_models().find(self.model(request)) or Model("", self.name)
        tokens = request.max_tokens or self.settings.max_tokens or known.reply_tokens
        return min(tokens, known.max_output_tokens) if tokens and known.max_output_tokens else tokens

    def describe(self, request: Request) -> str:
        """Return ``provider · model · effort`` as it would be used for `request`."""
        parts = (self.name, self.model(request), self.effort(request))
        return " · ".join(part for part in parts if part)

    def count_tokens(self, request: Request) -> int:
        """Return an estimate of the input tokens, right within about 30 %; opens no connection."""
        texts = (request.system, *(m.text for m in request.messages))
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return round(size / _BYTES_PER_TOKEN) + _TOKENS_PER_MESSAGE * len(texts)

    def estimate_usd(self, request: Request) -> float | None:
        """Return about what the input of `request` costs, uncached; None where the price is not known."""
        return cost_usd(Usage(input_tokens=self.count_tokens(request)), self.model(request))

    def stream(self, request: Request) -> Iterator[Event]:
        """Send `request` and yield events, the last one a `Reply`; closing the generator hangs up.

        Raises
        ------
        llmkernel.errors.ProviderError
            One class for each kind of failure, see `llmkernel.providers.errors`.
        """
        key = self._key()
        if key and self.base_url().startswith("http://") and not network.is_local(self.base_url()):
            host = network.host_of(self.base_url())
            warnings.warn(f"The key from {key.origin} goes to {host} unencrypted; use https.", stacklevel=2)
        policy = RetryPolicy(max_retries=self.settings.max_retries, max_wait_s=self.settings.max_wait_s)
        yield from stream_with_retries(lambda: self._attempt(request, key), policy, self._clock)

    @abstractmethod
    def _client(self, key: Key | None) -> Any:
        """Return the SDK's client; the only place where the key's value is taken out."""

    @abstractmethod
    def _events(self, request: Request, key: Key | None, call: Call) -> Iterator[Event]:
        """Yield the events of one attempt; whatever the SDK raises is translated by the caller."""

    def _key(self) -> Key | None:
        key = find_key(self.name, self.key_variables)
        if key is None and self.needs_key:
            raise MissingKeyError(
                f"No key for the provider `{self.name}`.",
                rule="Keys come from the environment, the keyring or the key file; never from a cell.",
                next_step=f'Set {self.key_variables[0]} before Jupyter starts, or put `{self.name} = "…"` in '
                f"{key_file()}; without a key, use the provider `library`.",
            )
        return key

    def _attempt(self, request: Request, key: Key | None) -> Iterator[Event]:
        call = Call(
            self.name,
            self.model(request),
            self.base_url(),
            key_origin=key.origin if key else "",
            read_timeout_s=self.settings.read_timeout_s,
        )
        # Raised after the handlers: an SDK's exception holds the request, and the request holds the key, so it is
        # not kept as the context of ours.
        failure: ProviderError
        if problem := network.unusable_proxy():
            raise proxy_error(call, *problem)
        try:
            network.resolve(self.base_url(), self.settings.connect_timeout_s)
            with closing(self._events(request, key, call)) as events:  # type: ignore[type-var]
                yield from events
            return
        except LLMKernelError:
            raise
        except ImportError as error:
            failure = SdkMissingError(
                f"The provider `{self.name}` needs the package `{self.sdk}`.",
                received=str(error),
                next_step=f"Run `pip install --upgrade {self.sdk}`.",
            )
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises becomes one of our errors
            failure = translate(error, call)
        raise failure

    def _client_options(self, key: Key | None) -> dict[str, Any]:
        import httpx2

        return {
            "api_key": key.value if key else None,
            "base_url": self.base_url(),
            "max_retries": 0,
            "timeout": httpx2.Timeout(
                self.settings.read_timeout_s,
                connect=self.settings.connect_timeout_s,
                read=self.settings.read_timeout_s,
            ),
        }


def create_or_drop(
    create: Callable[..., Any], body: dict[str, Any], word: str, drop: Callable[[dict[str, Any]], object]
) -> Any:
    """Send `body`; where the server refuses it for an extra that `word` names, send it once more without.

    `drop` removes the extra from `body`.
    """
    try:
        return create(**body)
    except Exception as error:
        if getattr(error, "status_code", None) != 400 or word not in str(error):
            raise
    drop(body)
    return create(**body)


def begin(stream: Any, call: Call) -> None:
    """Note that the server answers `call`, and refuse an answer that is no event stream (a login page, say)."""
    headers = stream.response.headers
    call.is_streaming = True
    call.request_id = headers.get("request-id") or headers.get("x-request-id") or ""
    content_type = headers.get("content-type", "")
    if not content_type.startswith("text/event-stream"):
        raise not_this_protocol(
            call, f"content type {content_type or 'missing'}", stream.response.status_code
        )


def count(value: Any, *names: str) -> int:
    """Return the integer found along attribute `names` of `value`, 0 where something is missing."""
    for name in names:
        value = getattr(value, name, None)
    return value if isinstance(value, int) else 0
