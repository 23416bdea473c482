"""The events of the three protocols, for one `Script`, in the order in which the real servers send them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.wire.scripts import CLEAN_END, CUT, SILENCE, Script

# What an event generator yields beside bytes: what the server does to the connection.
Act = bytes | str | float


def sse(name: str | None, data: Any) -> bytes:
    """Return one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()


def pieces(script: Script) -> Iterator[str]:
    """Yield the text in pieces of `script.chunk` characters."""
    for start in range(0, len(script.shown), script.chunk):
        yield script.shown[start : start + script.chunk]


def _break(script: Script, next_event: bytes) -> Iterator[Act]:
    if script.broken == CUT:
        yield next_event[: len(next_event) // 2]
    yield script.broken


def messages_events(script: Script, request: dict[str, Any]) -> Iterator[Act]:
    """Yield `POST /v1/messages`."""
    usage = {
        "input_tokens": 25,
        "cache_read_input_tokens": 1200,
        "cache_creation_input_tokens": 300,
        "output_tokens": 1,
    }
    usage = usage if script.usage is None else {"input_tokens": 0, "output_tokens": 0, **script.usage}
    message = {
        "id": "msg_wire",
        "type": "message",
        "role": "assistant",
        "model": script.model or request["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield sse("message_start", {"type": "message_start", "message": message})
    yield sse("ping", {"type": "ping"})
    index = 0
    if script.thinking:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield sse("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block})
        for delta in (
            {"type": "thinking_delta", "thinking": script.thinking},
            {"type": "signature_delta", "signature": "c2lnbmF0dXJlLW9mLXRoZS13aXJl"},
        ):
            yield sse("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})
        yield sse("content_block_stop", {"type": "content_block_stop", "index": 0})
        index = 1
    if script.shown:
        block = {"type": "text", "text": ""}
        yield sse(
            "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}
        )
        for piece in pieces(script):
            yield script.delay_s
            delta = {"type": "text_delta", "text": piece}
            yield sse("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
    stop = sse("content_block_stop", {"type": "content_block_stop", "index": index})
    if script.stream_error is not None:
        yield sse("error", {"type": "error", "error": dict(script.stream_error), "request_id": "req_wire"})
        return
    if script.broken in (CUT, SILENCE, CLEAN_END):
        yield from _break(script, stop)
        return
    if script.shown or script.orphan_stop:
        yield stop
    reasons = {"end": "end_turn", "context": "model_context_window_exceeded", "content_filter": "refusal"}
    details = None
    if script.stop in ("refusal", "content_filter"):
        details = {
            "type": "refusal",
            "category": script.category or None,
            "explanation": script.explanation or None,
        }
    delta = {
        "stop_reason": reasons.get(script.stop, script.stop),
        "stop_sequence": None,
        "stop_details": details,
    }
    final = (
        {"output_tokens": 42, "output_tokens_details": {"thinking_tokens": 17}}
        if script.usage is None
        else usage
    )
    yield sse("message_delta", {"type": "message_delta", "delta": delta, "usage": final})
    yield sse("message_stop", {"type": "message_stop"})


def responses_events(script: Script, request: dict[str, Any]) -> Iterator[Act]:
    """Yield `POST /v1/responses`."""
    number = 0

    def event(kind: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return sse(kind, {"type": kind, "sequence_number": number - 1, **data})

    def response(status: str, output: list[Any], **data: Any) -> dict[str, Any]:
        return {
            "id": "resp_wire",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "model": script.model or request["model"],
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "usage": None,
            **data,
        }

    yield event("response.created", response=response("in_progress", []))
    yield event("response.in_progress", response=response("in_progress", []))
    output: list[Any] = []
    if script.thinking:
        item = {"id": "rs_wire", "type": "reasoning", "summary": []}
        place = {"item_id": "rs_wire", "output_index": 0, "summary_index": 0}
        yield event("response.output_item.added", output_index=0, item=item)
        part = {"type": "summary_text", "text": ""}
        yield event("response.reasoning_summary_part.added", **place, part=part)
        yield event("response.reasoning_summary_text.delta", **place, delta=script.thinking)
        yield event("response.reasoning_summary_text.done", **place, text=script.thinking)
        part = {"type": "summary_text", "text": script.thinking}
        yield event("response.reasoning_summary_part.done", **place, part=part)
        output.append({**item, "summary": [part]})
        yield event("response.output_item.done", output_index=0, item=output[-1])
    index = len(output)
    place = {"item_id": "msg_wire", "output_index": index, "content_index": 0}
    item = {"id": "msg_wire", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    is_refusal = script.stop == "refusal"
    if script.shown or is_refusal:
        yield event("response.output_item.added", output_index=index, item=item)
    if is_refusal:
        yield event("response.content_part.added", **place, part={"type": "refusal", "refusal": ""})
        yield event("response.refusal.delta", **place, delta=script.explanation)
        part = {"type": "refusal", "refusal": script.explanation}
        yield event("response.refusal.done", **place, refusal=script.explanation)
    elif script.shown:
        empty = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **place, part=empty)
        for piece in pieces(script):
            yield script.delay_s
            yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
        part = {**empty, "text": script.shown}
    if script.stream_error is not None:
        flat = {"code": None, "message": "", "param": None, **script.stream_error}
        flat.pop("type", None)
        yield event("error", **flat)
        return
    if script.failed is not None:
        yield event("response.failed", response=response("failed", output, error=dict(script.failed)))
        return
    if script.broken in (CUT, SILENCE, CLEAN_END):
        yield from _break(script, event("response.output_text.done", **place, text=script.shown, logprobs=[]))
        return
    if script.shown or is_refusal:
        if not is_refusal:
            yield event("response.output_text.done", **place, text=script.shown, logprobs=[])
        yield event("response.content_part.done", **place, part=part)
        output.append({**item, "status": "completed", "content": [part]})
        yield event("response.output_item.done", output_index=index, item=output[-1])
    usage: dict[str, Any] | None = {
        "input_tokens": 1525,
        "input_tokens_details": {"cached_tokens": 1200, "cache_write_tokens": 300},
        "output_tokens": 42,
        "output_tokens_details": {"reasoning_tokens": 17},
        "total_tokens": 1567,
    }
    usage = usage if script.usage is None else dict(script.usage) or None
    reasons = {
        "max_tokens": "max_output_tokens",
        "content_filter": "content_filter",
        "context": "max_output_tokens",
    }
    if script.stop in reasons:
        details = {"reason": reasons[script.stop]}
        body = response("incomplete", output, incomplete_details=details, usage=usage)
        yield event("response.incomplete", response=body)
    else:
        yield event("response.completed", response=response("completed", output, usage=usage))


def chat_events(script: Script, request: dict[str, Any]) -> Iterator[Act]:
    """Yield `POST /v1/chat/completions`."""

    def chunk(delta: dict[str, Any], finish: str | None = None, **data: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
        return sse(
            None,
            {
                "id": "chatcmpl-wire",
                "object": "chat.completion.chunk",
                "created": 1_790_000_000,
                "model": script.model or request["model"],
                "choices": choices,
                **data,
            },
        )

    yield chunk({"role": "assistant", "content": ""})
    if script.thinking:
        yield chunk({"reasoning_content": script.thinking})
    for piece in pieces(script):
        yield script.delay_s
        yield chunk({"content": piece})
    if script.stop == "refusal":
        yield chunk({"refusal": script.explanation})
    if script.stream_error is not None:
        yield sse(None, {"error": dict(script.stream_error)})
        return
    if script.broken in (CUT, SILENCE, CLEAN_END):
        yield from _break(script, chunk({}, "stop"))
        return
    reasons = {"max_tokens": "length", "context": "length", "content_filter": "content_filter"}
    yield chunk({}, reasons.get(script.stop, "stop"))
    wants_usage = (request.get("stream_options") or {}).get("include_usage")
    usage = {"prompt_tokens": 1525, "completion_tokens": 42, "total_tokens": 1567}
    usage = usage if script.usage is None else dict(script.usage)
    if wants_usage and usage:
        yield chunk({}, None, choices=[], usage=usage)
    yield sse(None, "[DONE]")


PROTOCOLS = {
    "/v1/messages": messages_events,
    "/v1/responses": responses_events,
    "/v1/chat/completions": chat_events,
}
