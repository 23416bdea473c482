"""The provider `claude`: Anthropic's Messages API, streaming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from llmkernel.providers.base import Event, Reply, Request, Started, StopReason, Thinking, Usage
from llmkernel.providers.keys import Key
from llmkernel.providers.models import cost_usd, load_models
from llmkernel.providers.remote import RemoteProvider, begin, count
from llmkernel.providers.translate import Call, not_this_protocol, stream_cut

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}
# The API requires a limit; this one is for models that models.toml does not know.
_REPLY_TOKENS = 32_000


class ClaudeProvider(RemoteProvider):
    """Replies from Anthropic's Messages API, or from a server that speaks it (``ANTHROPIC_BASE_URL``)."""

    name: ClassVar[str] = "claude"
    sdk: ClassVar[str] = "anthropic"
    key_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    base_url_variable: ClassVar[str] = "ANTHROPIC_BASE_URL"
    default_base_url: ClassVar[str] = "https://api.anthropic.com"

    def _client(self, key: Key | None) -> Any:
        import anthropic

        options = self._client_options(key)
        if key and key.origin == "$ANTHROPIC_AUTH_TOKEN":
            options["auth_token"] = options.pop("api_key")
        return anthropic.Anthropic(**options)

    def _events(self, request: Request, key: Key | None, call: Call) -> Iterator[Event]:
        # The raw events, not the SDK's accumulated message: that one reports a truncated stream as a message,
        # and fails on a refusal whose content block stops without having started.
        with (
            self._client(key) as client,
            client.messages.create(stream=True, **self._body(request)) as stream,
        ):
            begin(stream, call)
            yield from _Reader(call).read(stream)

    def _body(self, request: Request) -> dict[str, Any]:
        model = self.model(request)
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": self.reply_tokens(request) or _REPLY_TOKENS,
            "messages": [{"role": m.role, "content": m.text} for m in request.messages],
        }
        if request.system:
            body["system"] = [
                {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
            ]
        known = load_models().find(model)
        if known and known.thinking:
            body["thinking"] = {"type": known.thinking, "display": "summarized"}
        if effort := self.effort(request):
            body["output_config"] = {"effort": effort}
        return body


@dataclass
class _Reader:
    """Turns the events of one Messages stream into ours."""

    call: Call
    model: str = ""
    stop_reason: str | None = None
    stop_details: Any = None
    input_usage: Any = None
    output_usage: Any = None

    def read(self, stream: Any) -> Iterator[Event]:
        self.model = self.call.model
        for event in stream:
            match event.type:
                case "message_start":
                    self.model = getattr(event.message, "model", None) or self.model
                    self.input_usage = getattr(event.message, "usage", None)
                    yield Started(self.model)
                case "content_block_start":
                    yield from self._block(event.content_block)
                case "content_block_delta":
                    yield from self._delta(event.delta)
                case "message_delta":
                    self.stop_reason = event.delta.stop_reason or self.stop_reason
                    self.stop_details = getattr(event.delta, "stop_details", None) or self.stop_details
                    self.output_usage = event.usage or self.output_usage
        # The stop reason is looked at before the text.
        if self.stop_reason is None:
            raise stream_cut(self.call)
        if self.stop_reason not in _STOP_REASONS:
            raise not_this_protocol(self.call, f"stop reason `{self.stop_reason}`")
        yield self._reply()

    def _block(self, block: Any) -> Iterator[Event]:
        if block.type == "thinking":
            yield Thinking(getattr(block, "thinking", "") or "")
        elif block.type == "redacted_thinking":
            yield Thinking()
        elif block.type == "text" and block.text:
            yield self.call.add(block.text)

    def _delta(self, delta: Any) -> Iterator[Event]:
        # A signature_delta seals the reasoning for the provider; it is nothing to show or keep.
        if delta.type == "text_delta" and delta.text:
            yield self.call.add(delta.text)
        elif delta.type == "thinking_delta" and delta.thinking:
            yield Thinking(delta.thinking)

    def _reply(self) -> Reply:
        assert self.stop_reason is not None
        usage = self._usage()
        details: dict[str, Any] = {}
        if self.stop_reason == "refusal":
            details["category"] = getattr(self.stop_details, "category", None) or ""
            details["explanation"] = getattr(self.stop_details, "explanation", None) or ""
        elif self.stop_reason == "model_context_window_exceeded":
            details["limit"] = "context"
        return Reply(
            self.call.partial,
            _STOP_REASONS[self.stop_reason],
            self.model,
            usage,
            self.call.request_id,
            cost_usd(usage, self.model),
            details,
        )

    def _usage(self) -> Usage:
        # The counts of message_delta are cumulative and final where they are present.
        def final(name: str) -> int:
            return count(self.output_usage, name) or count(self.input_usage, name)

        cached, written = final("cache_read_input_tokens"), final("cache_creation_input_tokens")
        return Usage(
            input_tokens=final("input_tokens") + cached + written,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=final("output_tokens"),
            reasoning_tokens=count(self.output_usage, "output_tokens_details", "thinking_tokens"),
        )
