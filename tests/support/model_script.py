"""Responses of a scripted model, as Anthropic's API streams them."""

from __future__ import annotations

from typing import Any

from support.provider_streams import sse

Event = dict[str, Any]


def block(index: int, start: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def model_response(id: str, stop: str, *blocks: list[Event]) -> bytes:
    message: Event = {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return sse(
        [
            {"type": "message_start", "message": message},
            *[event for each in blocks for event in each],
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ],
        named=True,
    )


def model_text(index: int, text: str) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})


def model_thought(index: int) -> list[Event]:
    deltas = ({"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "c2ln"})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def model_call(index: int, id: str, name: str, arguments: str = '{"path": "a"}') -> list[Event]:
    start: Event = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return block(index, start, {"type": "input_json_delta", "partial_json": arguments})
