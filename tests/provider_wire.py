"""Replies, streams and errors as OpenAI, Gemini and Anthropic document them."""

from __future__ import annotations

import json
from typing import Any

from provider_messages import Protocol, Reply, Request, tokens_of

REFUSAL = "I can't help with that."


def _counts(request: Request, reply: Reply) -> tuple[int, int]:
    return tokens_of(request.text), 0 if reply.refusal else tokens_of(reply.text)


# ── OpenAI: https://platform.openai.com/docs/api-reference/chat ───────────────────────────────────────────────


def _openai_usage(request: Request, reply: Reply) -> dict[str, Any]:
    asked, said = _counts(request, reply)
    details = {"cached_tokens": reply.cached_tokens}
    total = asked + said
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": total, "prompt_tokens_details": details}


def _openai_call(request: Request, text: str) -> list[dict[str, Any]]:
    function = {"name": request.tool, "arguments": text}
    return [{"index": 0, "id": "call_1", "type": "function", "function": function}]


def _openai_whole(request: Request, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    finish = reply.finish
    if reply.refusal:
        message |= {"content": None, "refusal": REFUSAL}
    elif request.tool:
        message |= {"content": None, "tool_calls": _openai_call(request, reply.text)}
        finish = "tool_calls" if finish == "stop" else finish
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return _openai_frame(request, "chat.completion", [choice]) | {"usage": _openai_usage(request, reply)}


def _openai_frame(request: Request, kind: str, choices: list[Any]) -> dict[str, Any]:
    # `provider` is OpenRouter's own field.
    frame = {"id": "chatcmpl-1", "object": kind, "created": 1_790_000_000, "provider": "Stand-in"}
    return frame | {"model": request.model, "choices": choices}


def _openai_chunk(request: Request, delta: dict[str, Any], finish: str | None = None) -> list[tuple[str, Any]]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return [("", _openai_frame(request, "chat.completion.chunk", [choice]))]


def _openai_first(request: Request, reply: Reply) -> list[tuple[str, Any]]:
    refused = _openai_chunk(request, {"refusal": REFUSAL}) if reply.refusal else []
    return _openai_chunk(request, {"role": "assistant", "content": ""}) + refused


def _openai_piece(request: Request, text: str) -> list[tuple[str, Any]]:
    return _openai_chunk(request, {"tool_calls": _openai_call(request, text)} if request.tool else {"content": text})


def _openai_last(request: Request, reply: Reply) -> list[tuple[str, Any]]:
    events = _openai_chunk(request, {}, reply.finish)
    if request.body.get("stream_options", {}).get("include_usage"):
        frame = _openai_frame(request, "chat.completion.chunk", []) | {"usage": _openai_usage(request, reply)}
        events.append(("", frame))
    return events


# ── Gemini: https://ai.google.dev/api/generate-content ────────────────────────────────────────────────────────

_GEMINI_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def _gemini_whole(request: Request, reply: Reply) -> dict[str, Any]:
    asked, said = _counts(request, reply)
    usage = {"promptTokenCount": asked, "candidatesTokenCount": said, "totalTokenCount": asked + said}
    usage |= {"cachedContentTokenCount": reply.cached_tokens} if reply.cached_tokens else {}
    frame = {"usageMetadata": usage, "modelVersion": request.model, "responseId": "response-1"}
    if reply.refusal:
        return {"promptFeedback": {"blockReason": "SAFETY"}} | frame
    return _gemini_candidate(request, reply.text, _GEMINI_FINISH[reply.finish]) | frame


def _gemini_candidate(request: Request, text: str, finish: str = "") -> dict[str, Any]:
    part: dict[str, Any] = {"text": text}
    if request.tool and text:
        part = {"functionCall": {"name": request.tool, "args": json.loads(text)}}
    candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


def _gemini_first(request: Request, reply: Reply) -> list[tuple[str, Any]]:
    return []


def _gemini_piece(request: Request, text: str) -> list[tuple[str, Any]]:
    return [("", _gemini_candidate(request, text) | {"modelVersion": request.model})]


def _gemini_last(request: Request, reply: Reply) -> list[tuple[str, Any]]:
    whole = _gemini_whole(request, reply)
    if not reply.refusal:
        whole |= _gemini_candidate(request, "", _GEMINI_FINISH[reply.finish])
    return [("", whole)]


# ── Anthropic: https://docs.anthropic.com/en/api/messages ─────────────────────────────────────────────────────

_ANTHROPIC_STOP = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def _anthropic_usage(request: Request, reply: Reply) -> dict[str, int]:
    asked, said = _counts(request, reply)
    # Anthropic counts what it read from its cache apart from `input_tokens`.
    return {
        "input_tokens": asked - reply.cached_tokens,
        "output_tokens": said,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _anthropic_whole(request: Request, reply: Reply) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}]
    stop = "refusal" if reply.refusal else _ANTHROPIC_STOP[reply.finish]
    if reply.refusal:
        content = []
    elif request.tool:
        content = [{"type": "tool_use", "id": "toolu_1", "name": request.tool, "input": json.loads(reply.text)}]
        stop = "tool_use"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": request.model}
    usage = _anthropic_usage(request, reply)
    return head | {"content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _anthropic_first(request: Request, reply: Reply) -> list[tuple[str, Any]]:
    message = _anthropic_whole(request, reply) | {"content": [], "stop_reason": None}
    message["usage"] = message["usage"] | {"output_tokens": 1}
    block: dict[str, Any] = {"type": "text", "text": ""}
    if request.tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": request.tool, "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    events: list[tuple[str, Any]] = [("message_start", {"type": "message_start", "message": message})]
    return events if reply.refusal else [*events, ("content_block_start", start), ("ping", {"type": "ping"})]


def _anthropic_piece(request: Request, text: str) -> list[tuple[str, Any]]:
    delta = {"type": "text_delta", "text": text}
    if request.tool:
        delta = {"type": "input_json_delta", "partial_json": text}
    return [("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})]


def _anthropic_last(request: Request, reply: Reply) -> list[tuple[str, Any]]:
    whole = _anthropic_whole(request, reply)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    end = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    stop = [("content_block_stop", {"type": "content_block_stop", "index": 0})]
    return [*([] if reply.refusal else stop), ("message_delta", end), ("message_stop", {"type": "message_stop"})]


WHOLE = {"openai": _openai_whole, "gemini": _gemini_whole, "anthropic": _anthropic_whole}
STREAM = {
    "openai": (_openai_first, _openai_piece, _openai_last),
    "gemini": (_gemini_first, _gemini_piece, _gemini_last),
    "anthropic": (_anthropic_first, _anthropic_piece, _anthropic_last),
}


# ── errors as the providers word them ─────────────────────────────────────────────────────────────────────────


def error_reply(protocol: Protocol, status: int, message: str, request: Request, reply: Reply | None = None) -> Reply:
    overflow = reply is not None and reply.overflow
    headers = dict(reply.headers) if reply is not None else {}
    shown = f"{request.key[:3]}***"
    body: dict[str, Any]
    if protocol == "openai":
        known = {
            400: ("invalid_request_error", None, "Invalid request."),
            401: ("invalid_request_error", "invalid_api_key", f"Incorrect API key provided: {shown}."),
            403: ("invalid_request_error", None, "Your account is not allowed to use this."),
            404: ("invalid_request_error", "model_not_found", f"The model `{request.model}` does not exist."),
            429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
        }
        kind, code, words = known.get(status, ("server_error", None, "The server had an error."))
        if overflow:
            code, words = "context_length_exceeded", "This model's maximum context length is 8192 tokens."
        body = {"error": {"message": message or words, "type": kind, "param": None, "code": code}}
    elif protocol == "anthropic":
        names = {
            400: ("invalid_request_error", "messages: at least one message is required"),
            401: ("authentication_error", "invalid x-api-key"),
            403: ("permission_error", "Your API key may not use this."),
            404: ("not_found_error", f"model: {request.model}"),
            429: ("rate_limit_error", "This request would exceed your rate limit."),
            529: ("overloaded_error", "Overloaded"),
        }
        kind, words = names.get(status, ("api_error", "Internal server error"))
        if overflow:
            words = "prompt is too long: 210000 tokens > 200000 maximum"
        body = {"type": "error", "error": {"type": kind, "message": message or words}, "request_id": "req_1"}
    else:
        states = {
            400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
            401: ("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            403: ("PERMISSION_DENIED", "The caller does not have permission."),
            404: ("NOT_FOUND", f"models/{request.model} is not found for API version v1beta."),
            429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
            503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        }
        state, words = states.get(status, ("INTERNAL", "An internal error has occurred."))
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
        if overflow:
            words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
        wrong_key = status == 401
        status = 400 if wrong_key else status  # Gemini answers a wrong key with 400
        body = {"error": {"code": status, "message": message or words, "status": state}}
        body["error"] |= {"details": details} if wrong_key else {}
    return Reply(status=status, json=body, headers=headers, hang_s=reply.hang_s if reply is not None else 0.0)
