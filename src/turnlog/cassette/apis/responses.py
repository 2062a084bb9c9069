"""OpenAI Responses, as a server speaks it (`POST /v1/responses`).

A request that continues from a response by its id is completed by the player, which knows what it answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from turnlog.cassette.apis.base import (
    SIDES,
    blocks,
    completion_tokens,
    model_of,
    openai_failure,
    pieces,
    prompt_tokens,
    response_id,
    stop_word,
)
from turnlog.cassette.conversation import PlayedConversation
from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart, Usage
from turnlog.model.message import StopReason
from turnlog.providers.body import Json, objects, text, word
from turnlog.providers.request_parts import arguments_text, proof

_STOP_WORDS: dict[StopReason, str] = {
    "stop": "completed",
    "tool_use": "completed",
    "refusal": "completed",
    "length": "max_output_tokens",
    "context_window": "max_output_tokens",
    "content_filter": "content_filter",
}

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_FILES = {"input_image": "image/*", "input_file": "application/*"}


def wants_stream(body: Json, _path: str) -> bool:
    """As the request says."""
    return body.get("stream") is True


def read(body: Json, conversation: PlayedConversation) -> None:
    """Tell the conversation what a request says. Other roles are the system's, other items the provider's."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    for item in items:
        kind = text(item.get("type")) or "message"
        if kind == "message":
            _read_message(item, conversation)
        elif kind in _CALLS:
            conversation.call(word(item.get("call_id")), text(item.get("name")), text(item.get(_CALLS[kind])))
        elif kind in _OUTPUTS:
            output = blocks(item.get("output"))
            joined = "\n".join([text(block.get("text")) for block in output])
            conversation.result(word(item.get("call_id")), joined)
            _read_files(output, conversation)


def _read_message(item: Json, conversation: PlayedConversation) -> None:
    side = SIDES.get(text(item.get("role")))
    if side is None:
        return
    content = blocks(item.get("content"))
    for block in content:
        conversation.text(side, text(block.get("text")) or text(block.get("refusal")))
    _read_files(content, conversation)


def _read_files(found: list[Json], conversation: PlayedConversation) -> None:
    for block in found:
        if block.get("type") in _FILES:
            conversation.file(_FILES[text(block.get("type"))])


def answer(message: Message, body: Json) -> Json:
    """The body of the response to a request."""
    stop = stop_word(message, _STOP_WORDS)
    completed = stop == "completed"
    return {
        **_head(message, body),
        "status": "completed" if completed else "incomplete",
        "incomplete_details": None if completed else {"reason": stop},
        "output": _items(message, body),
        "usage": _usage(message.usage),
    }


def _head(message: Message, body: Json) -> Json:
    return {
        "id": response_id(message),
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "model": model_of(message, body),
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _items(message: Message, body: Json) -> list[Json]:
    custom = {text(tool.get("name")) for tool in objects(body.get("tools")) if tool.get("type") == "custom"}
    return [
        _item(part, f"{response_id(message)}_{index}", custom)
        for index, part in enumerate(message.parts)
        if not isinstance(part, TextPart) or part.text
    ]


def _item(part: Part, made_id: str, custom: set[str]) -> Json:
    item_id = proof(part, "id") or made_id
    if isinstance(part, ToolCallPart):
        kind = "custom_tool_call" if part.tool_name in custom else "function_call"
        called = {"call_id": part.tool_call_id, "name": part.tool_name, _CALLS[kind]: arguments_text(part)}
        return {"id": item_id, "type": kind, "status": "completed", **called}
    if isinstance(part, ReasoningPart):
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        sealed = proof(part, "encrypted_content")
        return {"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": sealed}
    answer = part.text if isinstance(part, TextPart) else ""
    content: list[Json] = [{"type": "output_text", "text": answer, "annotations": []}]
    return {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content}


def _usage(usage: Usage | None) -> Json | None:
    """Nothing where the recording does not know it."""
    if usage is None or usage.total is None:
        return None
    prompt, completion = prompt_tokens(usage), completion_tokens(usage)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read or 0, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": prompt + completion,
    }


def events(message: Message, body: Json) -> Iterator[Json]:
    """The events of the response, in order and numbered."""
    numbers = count()
    for event in _events(message, body):
        yield {**event, "sequence_number": next(numbers)}


def _events(message: Message, body: Json) -> Iterator[Json]:
    whole = answer(message, body)
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "response": _head(message, body)}
    for index, item in enumerate(whole["output"]):
        place: Json = {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _began(item)}
        yield from _growing(item, place)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _began(item: Json) -> Json:
    empty: Json = {"arguments": "", "input": "", "summary": [], "content": [], "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}


def _growing(item: Json, place: Json) -> Iterator[Json]:
    if item["type"] == "message":
        yield from _piece(item["content"][0], {**place, "content_index": 0}, "content_part", "output_text")
    elif item["type"] == "reasoning":
        for index, piece in enumerate(item["summary"]):
            at = {**place, "summary_index": index}
            yield from _piece(piece, at, "reasoning_summary_part", "reasoning_summary_text")
    else:
        field = _CALLS[item["type"]]
        name = {"function_call": "function_call_arguments", "custom_tool_call": "custom_tool_call_input"}[item["type"]]
        for delta in pieces(item[field]):
            yield {"type": f"response.{name}.delta", **place, "delta": delta}
        yield {"type": f"response.{name}.done", **place, "name": item["name"], field: item[field]}


def _piece(piece: Json, place: Json, part: str, name: str) -> Iterator[Json]:
    logged: Json = {"logprobs": []} if name == "output_text" else {}
    yield {"type": f"response.{part}.added", **place, "part": {**piece, "text": ""}}
    for delta in pieces(piece["text"]):
        yield {"type": f"response.{name}.delta", **place, "delta": delta, **logged}
    yield {"type": f"response.{name}.done", **place, "text": piece["text"], **logged}
    yield {"type": f"response.{part}.done", **place, "part": piece}


failure = openai_failure
