"""Google Gemini, as a server speaks it (`POST …:generateContent`, `…:streamGenerateContent`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnlog.cassette.apis.base import model_of, pieces, prompt_tokens, response_id, stop_word
from turnlog.cassette.conversation import PlayedConversation, Side
from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart, Usage
from turnlog.model.codec import to_json
from turnlog.model.message import StopReason
from turnlog.providers.body import Json, fields, objects, text, word
from turnlog.providers.request_parts import arguments_object, proof

_STOP_WORDS: dict[StopReason, str] = {
    "stop": "STOP",
    "tool_use": "STOP",
    "length": "MAX_TOKENS",
    "context_window": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
}

_SIDES: dict[str, Side] = {"user": "user", "function": "user", "": "user", "model": "assistant"}
_TOLD = ("output", "error", "result", "content")
"""Where a response that is one text has it."""


def wants_stream(_body: Json, path: str) -> bool:
    """As the address says."""
    return ":streamGenerateContent" in path


def read(body: Json, conversation: PlayedConversation) -> None:
    """Tell the conversation what a request says."""
    for content in objects(body.get("contents")):
        side = _SIDES.get(text(content.get("role")))
        if side is not None:
            for part in objects(content.get("parts")):
                _read_part(part, side, conversation)


def _read_part(part: Json, side: Side, conversation: PlayedConversation) -> None:
    if part.get("thought") is True:
        return
    conversation.text(side, text(part.get("text")))
    if "functionCall" in part:
        call = fields(part["functionCall"])
        arguments = bytes(to_json(call.get("args"))).decode()
        conversation.call(word(call.get("id")), text(call.get("name")), arguments)
    if "functionResponse" in part:
        found = fields(part["functionResponse"])
        conversation.result(word(found.get("id")), _output_text(found.get("response")), text(found.get("name")))
        for piece in objects(found.get("parts")):
            _read_part(piece, side, conversation)
    for name in ("inlineData", "fileData"):
        if name in part and side == "user":
            conversation.file(text(fields(part[name]).get("mimeType")) or "application/*")


def _output_text(response: Any) -> str:
    """The text of a response that holds one; else its JSON."""
    found = fields(response)
    texts = [found[name] for name in _TOLD if isinstance(found.get(name), str)]
    return texts[0] if texts else bytes(to_json(response)).decode()


def answer(message: Message, body: Json) -> Json:
    """The body of the response to a request."""
    return _response(message, body, _parts(message, body), ends=True)


def _response(message: Message, body: Json, parts: list[Json], *, ends: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    ending = {"finishReason": stop_word(message, _STOP_WORDS)} if ends else {}
    ids = {"responseId": response_id(message), "modelVersion": model_of(message, body)}
    return {"candidates": [{**candidate, **ending}], **(_usage(message.usage) if ends else {}), **ids}


def _parts(message: Message, body: Json) -> list[Json]:
    """The parts. Thoughts are included if the request asks for them, as the API does; signatures always."""
    config = fields(fields(body.get("generationConfig")).get("thinkingConfig"))
    thinks = config.get("includeThoughts") is True
    parts = [found for part in message.parts if (found := _part(part, thinks)) is not None]
    return parts or [{"text": ""}]


def _part(part: Part, thinks: bool) -> Json | None:
    signature = proof(part, "thought_signature")
    signed = {"thoughtSignature": signature} if signature is not None else {}
    if isinstance(part, TextPart):
        return {"text": part.text, **signed}
    if isinstance(part, ToolCallPart):
        call = {"id": part.tool_call_id, "name": part.tool_name, "args": arguments_object(part)}
        return {"functionCall": call, **signed}
    return {"text": part.text, "thought": True, **signed} if isinstance(part, ReasoningPart) and thinks else None


def _usage(usage: Usage | None) -> Json:
    """Nothing where the recording does not know it."""
    if usage is None or usage.total is None:
        return {}
    counts = {
        "promptTokenCount": prompt_tokens(usage),
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.reasoning,
        "toolUsePromptTokenCount": usage.tool_prompt,
        "totalTokenCount": usage.total,
    }
    return {"usageMetadata": {name: count for name, count in counts.items() if count is not None}}


def events(message: Message, body: Json) -> Iterator[Json]:
    """The events of the response, in order: each is a response with the next parts."""
    grown = [piece for part in _parts(message, body) for piece in _pieces(part)]
    for part in grown[:-1]:
        yield _response(message, body, [part], ends=False)
    yield _response(message, body, grown[-1:], ends=True)


def _pieces(part: Json) -> list[Json]:
    """A part as deltas bring it; a signature comes with the last of them."""
    if not part.get("text"):
        return [part]
    unsigned = {name: value for name, value in part.items() if name != "thoughtSignature"}
    texts = pieces(part["text"])
    return [*[{**unsigned, "text": piece} for piece in texts[:-1]], {**part, "text": texts[-1]}]


def failure(reason: str, status: int) -> Json:
    """The body of an error."""
    kind = "NOT_FOUND" if status == 404 else "INVALID_ARGUMENT"
    return {"error": {"code": status, "message": reason, "status": kind}}
