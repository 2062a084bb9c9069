"""A model that follows a script: Anthropic Messages, OpenAI Responses, OpenAI chat and Gemini, as event streams;
of chat also whole answers.

Listens on 127.0.0.1 at a free port. A request that offers tools gets the script's next answer; one without (a title,
a summary) gets a short text and does not move the script. Nothing is judged here.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from script import Answer, Call, Tokens

Event = dict[str, Any]
ASIDE = Answer(text="A short talk", tokens=Tokens(input=7, cached=0, output=3, reasoning=0))
ENDED = Answer(text="(the script has ended)", tokens=Tokens(input=1, cached=0, output=1, reasoning=0))


class ModelServer(ThreadingHTTPServer):
    """Serves `answers` in order; `asked` counts the requests that took one."""

    daemon_threads = True

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.asked = 0
        self.bodies: list[dict[str, Any]] = []
        """The requests that a model answers, as they came."""
        self.models: list[str] = []
        """The model that each of them names; Gemini's are in the path."""
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_answer(self, body: dict[str, Any]) -> Answer:
        if not offers_tools(body):
            return ASIDE
        with self._lock:
            self.asked += 1
            return self.answers[self.asked - 1] if self.asked <= len(self.answers) else ENDED


def offers_tools(body: dict[str, Any]) -> bool:
    """Whether a request is part of the conversation. Grok Build asks for a title by a tool of that name."""
    listed = body.get("input")
    added = isinstance(listed, list) and any(item.get("type") == "additional_tools" for item in listed)
    return added or (bool(body.get("tools")) and "session_title" not in json.dumps(body["tools"]))


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(b'{"object":"list","data":[],"models":[]}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self._read() or b"{}")
        path = self.path.split("?")[0]
        if re.search(r"count_?tokens$", path, re.IGNORECASE):
            self._send(b'{"input_tokens":10,"totalTokens":10}', "application/json")
            return
        for ending, events in _PROTOCOLS.items():
            if path.endswith(ending):
                self.server.bodies.append(body)
                named = re.search(r"/models/(?P<name>[^:/]+):", path)
                self.server.models.append(named["name"] if named else str(body.get("model")))
                answer = self.server.next_answer(body)
                if ending == "/chat/completions" and not body.get("stream"):
                    self._send(json.dumps(_whole_chat(answer, body)).encode(), "application/json")
                    return
                self._send("".join(_lines(events(answer, body))).encode(), "text/event-stream")
                return
        self._send(b'{"error":{"message":"no such route"}}', "application/json", 404)

    def _read(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, data: bytes, media_type: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _lines(events: Iterator[Event]) -> Iterator[str]:
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n"


def _anthropic(answer: Answer, body: dict[str, Any]) -> Iterator[Event]:
    tokens = answer.tokens
    usage = {"input_tokens": tokens.input, "cache_read_input_tokens": tokens.cached, "cache_creation_input_tokens": 0}
    message = {"id": f"msg_{answer.number}", "type": "message", "role": "assistant", "model": body.get("model")}
    start = message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, (block, deltas) in enumerate(_anthropic_blocks(answer)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage | {"output_tokens": tokens.output}}
    yield {"type": "message_stop"}


def _anthropic_blocks(answer: Answer) -> Iterator[tuple[Event, list[Event]]]:
    if answer.reasoning:
        deltas = [
            {"type": "thinking_delta", "thinking": answer.reasoning},
            {"type": "signature_delta", "signature": "c2lnbmVk"},
        ]
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": answer.text}]
    for call in answer.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.tool, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": json.dumps(call.input)}]


def _responses(answer: Answer, body: dict[str, Any]) -> Iterator[Event]:
    tokens = answer.tokens
    response: Event = {"id": f"resp_{answer.number}", "object": "response", "model": body.get("model"), "output": []}
    yield {"type": "response.created", "response": response | {"status": "in_progress"}}
    items = list(_response_items(answer))
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": tokens.input + tokens.cached,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.cached + tokens.output,
    }
    yield {
        "type": "response.completed",
        "response": response | {"status": "completed", "output": items, "usage": usage},
    }


def _response_items(answer: Answer) -> Iterator[Event]:
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        yield {"type": "reasoning", "id": f"rs_{answer.number}", "summary": summary, "encrypted_content": "c2VjcmV0"}
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        yield {"type": "message", "id": f"msg_{answer.number}", "role": "assistant", "content": content}
    for call in answer.calls:
        arguments = json.dumps(call.input)
        yield {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.tool,
            "arguments": arguments,
            **({} if call.namespace is None else {"namespace": call.namespace}),
        }


def _chat(answer: Answer, body: dict[str, Any]) -> Iterator[Event]:
    tokens = answer.tokens
    base = {"id": f"chat_{answer.number}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    deltas: list[Event] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": answer.reasoning}] if answer.reasoning else []
    deltas += [{"content": answer.text}] if answer.text else []
    deltas += [{"tool_calls": [_chat_call(index, call)]} for index, call in enumerate(answer.calls)]
    for delta in deltas:
        yield base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "tool_calls" if answer.calls else "stop"
    usage = {
        "prompt_tokens": tokens.input + tokens.cached,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.cached + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }
    yield base | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}


def _whole_chat(answer: Answer, body: dict[str, Any]) -> Event:
    """The chunks of an answer as one message."""
    message: Event = {}
    usage: Event = {}
    reason = None
    for event in _chat(answer, body):
        delta = event["choices"][0]["delta"]
        calls = [*message.get("tool_calls", []), *delta.get("tool_calls", [])]
        message |= delta | ({"tool_calls": calls} if calls else {})
        reason = event["choices"][0]["finish_reason"]
        usage = event.get("usage", usage)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    base = {"id": f"chat_{answer.number}", "object": "chat.completion", "created": 1, "model": body.get("model")}
    return base | {"choices": [choice], "usage": usage}


def _chat_call(index: int, call: Call) -> Event:
    function = {"name": call.tool, "arguments": json.dumps(call.input)}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _gemini(answer: Answer, body: dict[str, Any]) -> Iterator[Event]:
    tokens = answer.tokens
    parts: list[Event] = [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    parts += [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"name": call.tool, "args": call.input, "id": call.id}} for call in answer.calls]
    usage = {
        "promptTokenCount": tokens.input + tokens.cached,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": tokens.output - tokens.reasoning,
        "thoughtsTokenCount": tokens.reasoning,
        "totalTokenCount": tokens.input + tokens.cached + tokens.output,
    }
    for index, part in enumerate(parts):
        ends: Event = {"finishReason": "STOP"} if index == len(parts) - 1 else {}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}} | ends
        yield {"candidates": [candidate], "usageMetadata": usage, "responseId": f"answer-{answer.number}"}


_PROTOCOLS = {
    "/messages": _anthropic,
    "/responses": _responses,
    "/chat/completions": _chat,
    ":streamGenerateContent": _gemini,
}
