"""The provider `openai-compatible`: chat completions at a base URL (Ollama, vLLM, llama.cpp, OpenRouter…)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llmkernel.errors import ConfigurationError
from llmkernel.providers import network
from llmkernel.providers.base import Event, Reply, Request, Started, StopReason, Thinking, Usage
from llmkernel.providers.keys import Key, find_key
from llmkernel.providers.models import cost_usd, load_models
from llmkernel.providers.remote import RemoteProvider, begin, count, create_or_drop
from llmkernel.providers.thinking_tags import ThinkingTags
from llmkernel.providers.translate import Call, not_this_protocol, stream_cut

_FINISH_REASONS: dict[str, StopReason] = {"stop": "end", "length": "max_tokens", "content_filter": "refusal"}
_OPENROUTER = "openrouter.ai"


class OpenAICompatibleProvider(RemoteProvider):
    """Replies from any server that speaks OpenAI's chat completions.

    The address comes from the settings or ``LLMKERNEL_OPENAI_BASE_URL``, the model from the settings or
    ``LLMKERNEL_OPENAI_MODEL``. A key is optional; ``OPENAI_API_KEY`` is never sent there, because the
    server is not OpenAI's.
    """

    name: ClassVar[str] = "openai-compatible"
    sdk: ClassVar[str] = "openai"
    key_variables: ClassVar[tuple[str, ...]] = ("LLMKERNEL_OPENAI_API_KEY",)
    base_url_variable: ClassVar[str] = "LLMKERNEL_OPENAI_BASE_URL"
    default_base_url: ClassVar[str] = ""
    needs_key: ClassVar[bool] = False

    @classmethod
    def is_configured(cls) -> bool:
        """Return whether ``LLMKERNEL_OPENAI_BASE_URL`` is set; builds no client and imports no SDK."""
        return bool(os.environ.get(cls.base_url_variable))

    def base_url(self) -> str:
        """Return the address that requests go to.

        Raises
        ------
        ConfigurationError
            None is set.
        """
        if url := super().base_url():
            return url
        raise ConfigurationError(
            "No base URL is set for the provider `openai-compatible`.",
            next_step=f"Set {self.base_url_variable}, for example http://localhost:11434/v1 for Ollama.",
        )

    def model(self, request: Request) -> str:
        """Return the model id that `request` is sent to."""
        named = request.model or self.settings.model or os.environ.get("LLMKERNEL_OPENAI_MODEL")
        if named or (named := load_models().default(self.name)):
            return named
        missing = (
            "" if self.settings.base_url or os.environ.get(self.base_url_variable) else self.base_url_variable
        )
        raise ConfigurationError(
            f"No model is named for {self.name}.",
            next_step="Name one: --model, or LLMKERNEL_OPENAI_MODEL"
            + (
                f"; and set {missing} to the server's address, such as http://localhost:11434/v1."
                if missing
                else "."
            ),
        )

    def _key(self) -> Key | None:
        host = network.host_of(self.base_url())
        is_openrouter = host == _OPENROUTER or host.endswith("." + _OPENROUTER)
        variables = (*self.key_variables, "OPENROUTER_API_KEY") if is_openrouter else self.key_variables
        return find_key(self.name, variables)

    def _client(self, key: Key | None) -> Any:
        import openai

        options = self._client_options(key)
        # The SDK insists on a key; servers without one ignore it. Its other headers name an OpenAI account.
        options["api_key"] = options["api_key"] or "none"
        omit = openai.Omit()
        options["default_headers"] = {"OpenAI-Organization": omit, "OpenAI-Project": omit}
        return openai.OpenAI(**options)

    def _events(self, request: Request, key: Key | None, call: Call) -> Iterator[Event]:
        # An older server refuses the request for its usage: its tokens stay unknown.
        with self._client(key) as client:
            create = client.chat.completions.create
            stream = create_or_drop(create, self._body(request), "stream_options", _drop_usage)
            with closing(stream):
                begin(stream, call)
                yield from _Reader(call).read(stream)

    def _body(self, request: Request) -> dict[str, Any]:
        messages = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": m.role, "content": m.text} for m in request.messages]
        body: dict[str, Any] = {
            "model": self.model(request),
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tokens := self.reply_tokens(request):
            body["max_tokens"] = tokens
        if effort := self.effort(request):
            body["reasoning_effort"] = effort
        return body


@dataclass
class _Reader:
    """Turns the chunks of one chat completion into our events."""

    call: Call
    model: str = ""
    finish_reason: str | None = None
    usage: Any = None
    tags: ThinkingTags = field(default_factory=ThinkingTags)
    refusal: list[str] = field(default_factory=list)

    def read(self, stream: Any) -> Iterator[Event]:
        for chunk in stream:
            if not self.model:
                self.model = getattr(chunk, "model", None) or self.call.model
                yield Started(self.model)
            self.usage = getattr(chunk, "usage", None) or self.usage
            for choice in getattr(chunk, "choices", None) or ():
                yield from self._choice(choice)
        yield from self._text(self.tags.flush())
        if self.finish_reason is None:
            raise stream_cut(self.call, "the stream ended without a finish reason")
        if self.finish_reason not in _FINISH_REASONS:
            raise not_this_protocol(self.call, f"finish reason `{self.finish_reason}`")
        yield self._reply()

    def _text(self, split: tuple[str, str]) -> Iterator[Event]:
        thought, text = split
        if thought:
            yield Thinking(thought)
        if text:
            yield self.call.add(text)

    def _choice(self, choice: Any) -> Iterator[Event]:
        delta = choice.delta
        # vLLM and llama.cpp say reasoning_content, Ollama and OpenRouter say reasoning.
        if thought := getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None):
            yield Thinking(str(thought))
        if text := getattr(delta, "content", None):
            yield from self._text(self.tags.feed(text))
        if refusal := getattr(delta, "refusal", None):
            self.refusal.append(refusal)
        self.finish_reason = choice.finish_reason or self.finish_reason

    def _reply(self) -> Reply:
        assert self.finish_reason is not None
        stop_reason = "refusal" if self.refusal else _FINISH_REASONS[self.finish_reason]
        details: dict[str, Any] = {}
        if stop_reason == "refusal":
            category = "content_filter" if self.finish_reason == "content_filter" else ""
            details = {"category": category, "explanation": "".join(self.refusal)}
        usage = Usage(
            input_tokens=count(self.usage, "prompt_tokens"),
            cached_tokens=count(self.usage, "prompt_tokens_details", "cached_tokens"),
            cache_write_tokens=count(self.usage, "prompt_tokens_details", "cache_write_tokens"),
            output_tokens=count(self.usage, "completion_tokens"),
            reasoning_tokens=count(self.usage, "completion_tokens_details", "reasoning_tokens"),
        )
        cost = cost_usd(usage, self.model) if self.usage else None
        return Reply(self.call.partial, stop_reason, self.model, usage, self.call.request_id, cost, details)


def _drop_usage(body: dict[str, Any]) -> None:
    del body["stream_options"]
