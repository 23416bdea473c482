"""The provider `codex`: OpenAI's Responses API, streaming, nothing stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llmkernel.providers.base import Event, Reply, Request, Started, StopReason, Thinking, Usage
from llmkernel.providers.keys import Key
from llmkernel.providers.models import cost_usd
from llmkernel.providers.remote import RemoteProvider, begin, count, create_or_drop
from llmkernel.providers.translate import Call, from_body, stream_cut

# Codes of `response.failed` with which the provider declines, in place of failing.
_REFUSAL_CODES = frozenset(
    {"bio_policy", "misalignment_policy_violation", "cyber_policy", "content_policy_violation"}
)


class CodexProvider(RemoteProvider):
    """Replies from OpenAI's Responses API, or from a server that speaks it (``OPENAI_BASE_URL``)."""

    name: ClassVar[str] = "codex"
    sdk: ClassVar[str] = "openai"
    key_variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    base_url_variable: ClassVar[str] = "OPENAI_BASE_URL"
    default_base_url: ClassVar[str] = "https://api.openai.com/v1"

    def _client(self, key: Key | None) -> Any:
        import openai

        return openai.OpenAI(**self._client_options(key))

    def _events(self, request: Request, key: Key | None, call: Call) -> Iterator[Event]:
        # The raw events, not the SDK's accumulated response: that one turns a failed, an incomplete and a
        # truncated stream into the same RuntimeError.
        with (
            self._client(key) as client,
            # Summaries of reasoning are for verified organisations and reasoning models only.
            create_or_drop(client.responses.create, self._body(request), "summar", _drop_summary) as stream,
        ):
            begin(stream, call)
            yield from _Reader(call).read(stream)

    def _body(self, request: Request) -> dict[str, Any]:
        reasoning = {"summary": "auto"}
        if effort := self.effort(request):
            reasoning["effort"] = effort
        body: dict[str, Any] = {
            "model": self.model(request),
            "instructions": request.system,
            "input": [{"role": m.role, "content": m.text} for m in request.messages],
            "store": False,
            "stream": True,
            "reasoning": reasoning,
            # Requests with the same stable part are sent to where it is cached.
            "prompt_cache_key": f"llmkernel-{hashlib.sha256(request.system.encode()).hexdigest()[:32]}",
        }
        if tokens := self.reply_tokens(request):
            body["max_output_tokens"] = tokens
        return body


@dataclass
class _Reader:
    """Turns the events of one Responses stream into ours."""

    call: Call
    model: str = ""
    refusal: list[str] = field(default_factory=list)

    def read(self, stream: Any) -> Iterator[Event]:
        self.model = self.call.model
        for event in stream:
            match event.type:
                case "response.created":
                    self.model = event.response.model or self.model
                    yield Started(self.model)
                case "response.output_text.delta":
                    yield self.call.add(event.delta)
                case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                    yield Thinking(event.delta)
                case "response.output_item.added" if event.item.type == "reasoning":
                    yield Thinking()
                case "response.refusal.delta":
                    self.refusal.append(event.delta)
                case "response.completed":
                    yield self._completed(event.response)
                    return
                case "response.incomplete":
                    yield self._incomplete(event.response)
                    return
                case "response.failed":
                    yield self._failed(event.response)
                    return
                case "error":
                    raise from_body(_plain(event), self.call)
        raise stream_cut(self.call, "the stream ended without `response.completed`")

    def _completed(self, response: Any) -> Reply:
        if self.refusal:
            return self._reply(response, "refusal", {"category": "", "explanation": "".join(self.refusal)})
        return self._reply(response, "end", {})

    def _incomplete(self, response: Any) -> Reply:
        reason = getattr(response.incomplete_details, "reason", None)
        if reason == "max_output_tokens":
            return self._reply(response, "max_tokens", {})
        if reason == "content_filter":
            explanation = "".join(self.refusal)
            return self._reply(
                response, "refusal", {"category": "content_filter", "explanation": explanation}
            )
        raise stream_cut(self.call, f"the response is incomplete: {reason or 'no reason given'}")

    def _failed(self, response: Any) -> Reply:
        error = _plain(response.error) if response.error else {}
        if error.get("code") in _REFUSAL_CODES:
            details = {"category": error["code"], "explanation": error.get("message") or ""}
            return self._reply(response, "refusal", details)
        raise from_body(error, self.call)

    def _reply(self, response: Any, stop_reason: StopReason, details: dict[str, Any]) -> Reply:
        model = response.model or self.model
        used = response.usage
        usage = Usage(
            input_tokens=count(used, "input_tokens"),
            cached_tokens=count(used, "input_tokens_details", "cached_tokens"),
            cache_write_tokens=count(used, "input_tokens_details", "cache_write_tokens"),
            output_tokens=count(used, "output_tokens"),
            reasoning_tokens=count(used, "output_tokens_details", "reasoning_tokens"),
        )
        text = self.call.partial
        return Reply(text, stop_reason, model, usage, self.call.request_id, cost_usd(usage, model), details)


def _drop_summary(body: dict[str, Any]) -> None:
    del body["reasoning"]["summary"]
    if not body["reasoning"]:
        del body["reasoning"]


def _plain(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name, None) for name in ("type", "code", "message")}
