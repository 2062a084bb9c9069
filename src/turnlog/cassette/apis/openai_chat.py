"""OpenAI Chat Completions, as a server speaks it (`POST /v1/chat/completions`)."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.cassette.apis.base import (
    SIDES,
    blocks,
    calls_of,
    completion_tokens,
    model_of,
    openai_failure,
    pieces,
    prompt_tokens,
    reasoning_of,
    response_id,
    stop_word,
    text_of,
)
from turnlog.cassette.conversation import PlayedConversation, Side
from turnlog.model import Message, ToolCallPart, Usage
from turnlog.model.message import StopReason
from turnlog.providers.body import Json, fields, objects, text, word
from turnlog.providers.request_parts import arguments_text

_STOP_WORDS: dict[StopReason, str] = {
    "stop": "stop",
    "length": "length",
    "context_window": "length",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}

_FILES = {"image_url": "image/*", "input_audio": "audio/*", "file": "application/*"}


def wants_stream(body: Json, _path: str) -> bool:
    """As the request says."""
    return body.get("stream") is True


def read(body: Json, conversation: PlayedConversation) -> None:
    """Tell the conversation what a request says. Other roles are the system's."""
    for message in objects(body.get("messages")):
        role = text(message.get("role"))
        if role == "tool":
            output = "\n".join([text(block.get("text")) for block in blocks(message.get("content"))])
            conversation.result(word(message.get("tool_call_id")), output)
        elif role in SIDES:
            _read_message(message, SIDES[role], conversation)


def _read_message(message: Json, side: Side, conversation: PlayedConversation) -> None:
    for block in blocks(message.get("content")):
        kind = text(block.get("type"))
        if kind in _FILES:
            conversation.file(_FILES[kind])
        conversation.text(side, text(block.get("text")) or text(block.get("refusal")))
    for call in objects(message.get("tool_calls")):
        called = fields(call.get("function")) or fields(call.get("custom"))
        arguments = text(called.get("arguments")) or text(called.get("input"))
        conversation.call(word(call.get("id")), text(called.get("name")), arguments)


def answer(message: Message, body: Json) -> Json:
    """The body of the response to a request."""
    answer: Json = {"role": "assistant", "content": text_of(message) or None}
    if reasoning := reasoning_of(message):
        answer["reasoning_content"] = reasoning
    if calls := calls_of(message):
        answer["tool_calls"] = [_call(call) for call in calls]
    choice = {"index": 0, "message": answer, "finish_reason": stop_word(message, _STOP_WORDS), "logprobs": None}
    return {**_head(message, body, "chat.completion"), "choices": [choice], **_usage(message.usage)}


def _head(message: Message, body: Json, kind: str) -> Json:
    return {"id": response_id(message), "object": kind, "created": 0, "model": model_of(message, body)}


def _call(call: ToolCallPart) -> Json:
    function = {"name": call.tool_name, "arguments": arguments_text(call)}
    return {"id": call.tool_call_id, "type": "function", "function": function}


def _usage(usage: Usage | None) -> Json:
    """Nothing where the recording does not know it."""
    if usage is None or usage.total is None:
        return {}
    prompt, completion = prompt_tokens(usage), completion_tokens(usage)
    details: Json = {"prompt_tokens_details": {"cached_tokens": usage.cache_read or 0}}
    if usage.reasoning is not None:
        details["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"usage": {**counts, **details}}


def events(message: Message, body: Json) -> Iterator[Json | str]:
    """The events of the response, in order, and the mark of their end."""
    head = _head(message, body, "chat.completion.chunk")
    for delta in _deltas(message):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop_word(message, _STOP_WORDS)}]}
    usage = _usage(message.usage)
    if usage and fields(body.get("stream_options")).get("include_usage"):
        yield {**head, "choices": [], **usage}
    yield "[DONE]"


def _deltas(message: Message) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(reasoning_of(message)):
        yield {"reasoning_content": piece}
    for piece in pieces(text_of(message)):
        yield {"content": piece}
    for index, call in enumerate(calls_of(message)):
        whole = _call(call)
        function = whole["function"]
        yield {"tool_calls": [{**whole, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


failure = openai_failure
