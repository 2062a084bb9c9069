"""Anthropic Messages, as a server speaks it (`POST /v1/messages`)."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.cassette.apis.base import SIDES, blocks, calls_of, model_of, pieces, response_id, stop_word, written
from turnlog.cassette.conversation import PlayedConversation, Side
from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart, Usage
from turnlog.model.codec import to_json
from turnlog.model.message import StopReason
from turnlog.providers.body import Json, fields, objects, text, word
from turnlog.providers.request_parts import arguments_object, arguments_text, proof

_STOP_WORDS: dict[StopReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "content_filter": "refusal",
    "pause": "pause_turn",
    "context_window": "model_context_window_exceeded",
}

_DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


def wants_stream(body: Json, _path: str) -> bool:
    """As the request says."""
    return body.get("stream") is True


def read(body: Json, conversation: PlayedConversation) -> None:
    """Tell the conversation what a request says. Other roles are the system's."""
    for turn in objects(body.get("messages")):
        side = SIDES.get(text(turn.get("role")))
        if side is not None:
            for block in blocks(turn.get("content")):
                _read_block(block, side, conversation)


def _read_block(block: Json, side: Side, conversation: PlayedConversation) -> None:
    kind = block.get("type")
    if kind == "text":
        conversation.text(side, text(block.get("text")))
    elif kind == "tool_use":
        arguments = bytes(to_json(block.get("input"))).decode()
        conversation.call(word(block.get("id")), text(block.get("name")), arguments)
    elif kind == "tool_result":
        _read_result(block, conversation)
    elif kind in ("image", "document"):
        conversation.file("image/*" if kind == "image" else "application/*")


def _read_result(block: Json, conversation: PlayedConversation) -> None:
    content = blocks(block.get("content"))
    texts = [text(piece.get("text")) for piece in content if piece.get("type") == "text"]
    conversation.result(word(block.get("tool_use_id")), "\n".join(texts))
    for piece in content:
        if piece.get("type") in ("image", "document"):
            _read_block(piece, "user", conversation)


def answer(message: Message, body: Json) -> Json:
    """The body of the response to a request."""
    return {
        "id": response_id(message),
        "type": "message",
        "role": "assistant",
        "model": model_of(message, body),
        "content": _content(message, body),
        "stop_reason": stop_word(message, _STOP_WORDS),
        "stop_sequence": None,
        "usage": _usage(message.usage or Usage()),
    }


def _content(message: Message, body: Json) -> list[Json]:
    """The blocks. Thinking is included if the request asks for it, as the API does."""
    thinks = text(fields(body.get("thinking")).get("type")) not in ("", "disabled")
    content = [block for part in message.parts if (block := _block(part, thinks)) is not None]
    return content or [{"type": "text", "text": ""}]


def _block(part: Part, thinks: bool) -> Json | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ToolCallPart):
        return {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": arguments_object(part)}
    if not isinstance(part, ReasoningPart) or not thinks:
        return None
    if (data := proof(part, "data")) is not None:
        return {"type": "redacted_thinking", "data": data}
    return {"type": "thinking", "thinking": part.text, "signature": proof(part, "signature") or ""}


def _usage(usage: Usage) -> Json:
    """The API always has numbers: what the recording does not know is 0."""
    return {
        "input_tokens": usage.input or 0,
        "cache_creation_input_tokens": written(usage),
        "cache_read_input_tokens": usage.cache_read or 0,
        "output_tokens": (usage.output or 0) + (usage.reasoning or 0),
    }


def events(message: Message, body: Json) -> Iterator[Json]:
    """The events of the response, in order."""
    whole = answer(message, body)
    usage = whole["usage"]
    began: Json = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": began}
    written_as = {call.tool_call_id: arguments_text(call) for call in calls_of(message)}
    for index, block in enumerate(whole["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _began(block)}
        for delta in _deltas(block, written_as):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _began(block: Json) -> Json:
    empty: Json = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in block.items()}


def _deltas(block: Json, written_as: dict[str, str]) -> Iterator[Json]:
    if block["type"] == "tool_use":
        # The arguments as they were written; those that are no object are wrapped.
        exact = written_as[block["id"]]
        same = exact.lstrip().startswith("{") and "_raw" not in block["input"]
        for piece in pieces(exact if same else bytes(to_json(block["input"])).decode()):
            yield {"type": "input_json_delta", "partial_json": piece}
        return
    if block["type"] in _DELTAS:
        kind, field = _DELTAS[block["type"]]
        for piece in pieces(block[field]):
            yield {"type": kind, field: piece}
    if block.get("signature"):
        yield {"type": "signature_delta", "signature": block["signature"]}


def failure(reason: str, status: int) -> Json:
    """The body of an error."""
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    return {"type": "error", "error": {"type": kind, "message": reason}}
