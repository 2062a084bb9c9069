"""Random conversations over every provider's API: scripted models, tools and a page, and what each request says.

`Conversation.run` has a chat answer a page's turns; `model.requests` are the bodies that its model got. The model's
answers, the results of its tools and what the page sends back are drawn from a seed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from support.sdk_types import check_with_sdk
from turnlog.aisdk import encode, parse_ui_message
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.reader import UIMessageReader
from turnlog.aisdk.sse import decode_chunks
from turnlog.chat import Chat, ChatKeeper, ProviderRuntime, RequestOptions, RunRequest, Tool
from turnlog.model import FilePart, TextPart, ToolCallPart, ToolResult

Json = dict[str, Any]

PROVIDERS = ("anthropic", "responses", "openai-chat", "openrouter", "gemini")
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "responses": "gpt-5.5",
    "openai-chat": "gpt-5.5",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "gemini": "gemini-3-pro",
}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNk+M9QDwADhgGAAVo012kAAAAASUVORK5CYII="
)
NAMES = ("weather", "picture", "delete", "locate")
"""Tools: two that run, one that needs permission, one that the page runs."""

TEXTS = (
    "rain", "  rain\n", '{"a": 1, "b": [1, 2]}', '{"a":1.0}', '{"a":1,"a":2}', "null", '"rain"', "42", "4.20", "1e400",
    "[]", "{}", "", " ", "true", '{"10":1,"2":2}', "line\u2028two", "{\"k\":\"\\u00e9\"}", "[1,\n2]", "é\U0001f600",
    '{"__proto__": 1}', "\x00nul", "9007199254740993", '{"type":"text","text":"x"}',
)  # fmt: skip
ARGUMENTS = (
    "{}", '{"city":"Rome"}', '{"city": "Rome",  "n": 1.0, "z": null, "a": "\\u00e9"}', '{"a":1,"a":2}', "{ }", "",
    '{"b": 2, "a": [1, 2.50]}', '{"10": 1, "2": 2}', '{"n": 9007199254740993}',
)  # fmt: skip


class Model:
    """Answers from a script, each in the form of the provider's stream; keeps the requests."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.answers: list[list[tuple[str, Any]]] = []
        self.requests: list[Json] = []
        self._count = 0

    async def __call__(self, body: Json) -> AsyncGenerator[bytes, None]:
        self.requests.append(json.loads(json.dumps(body)))
        items = self.answers.pop(0) if self.answers else [("text", "Done.")]
        self._count += 1
        for piece in _STREAMS[self.provider](items, f"{self._count}{id(self)}"):
            yield piece


def _sse(event: Json, *, named: bool = True) -> bytes:
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _anthropic(items: list[tuple[str, Any]], key: str) -> Iterator[bytes]:
    message: Json = {"id": f"msg_{key}", "type": "message", "role": "assistant", "model": MODELS["anthropic"]}
    usage = {"input_tokens": 9, "output_tokens": 1}
    yield _sse({"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}})
    blocks = [block for number, item in enumerate(items) for block in _blocks(*item, f"{key}_{number}")]
    for index, (block, deltas) in enumerate(blocks):
        yield _sse({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            yield _sse({"type": "content_block_delta", "index": index, "delta": delta})
        yield _sse({"type": "content_block_stop", "index": index})
    reason = "tool_use" if any(kind == "call" for kind, _ in items) else "end_turn"
    yield _sse({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
    yield _sse({"type": "message_stop"})


def _blocks(kind: str, value: Any, key: str) -> list[tuple[Json, list[Json]]]:
    if kind == "text":
        return [({"type": "text", "text": ""}, [{"type": "text_delta", "text": value}])]
    if kind == "thought":
        deltas = [{"type": "thinking_delta", "thinking": value}, {"type": "signature_delta", "signature": f"S{key}"}]
        return [({"type": "thinking", "thinking": "", "signature": ""}, deltas)]
    if kind == "sealed":
        return [({"type": "redacted_thinking", "data": f"D{key}"}, [])]
    if kind == "call":
        start: Json = {"type": "tool_use", "id": value[0], "name": value[1], "input": {}}
        return [(start, [{"type": "input_json_delta", "partial_json": value[2]}])]
    hit = {"type": "web_search_result", "url": "https://e.com/h", "title": "H", "encrypted_content": f"E{key}"}
    cited = {
        "type": "web_search_result_location",
        "url": "https://e.com/h",
        "title": "H",
        "encrypted_index": f"I{key}",
        "cited_text": "Hats are warm.",
    }
    call: Json = {"type": "server_tool_use", "id": f"srvtoolu_{key}", "name": "web_search", "input": {}}
    found: Any = [{**hit, "page_age": None}] if value == "search" else {
        "type": "web_search_tool_result_error", "error_code": "unavailable"
    }  # fmt: skip
    return [
        (call, [{"type": "input_json_delta", "partial_json": '{"query": "hats"}'}]),
        ({"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{key}", "content": found}, []),
        (
            {"type": "text", "text": "", "citations": []},
            [{"type": "citations_delta", "citation": cited}, {"type": "text_delta", "text": "Hats are warm."}],
        ),
    ]


def _responses(items: list[tuple[str, Any]], key: str) -> Iterator[bytes]:
    whole: Json = {"id": f"resp_{key}", "object": "response", "model": MODELS["responses"], "output": []}
    output = [each for number, item in enumerate(items) for each in _output(*item, f"{key}_{number}")]
    yield _sse({"type": "response.created", "response": {**whole, "status": "in_progress"}})
    for index, item in enumerate(output):
        place = {"output_index": index}
        empty: dict[str, Json] = {
            "message": {"content": []},
            "function_call": {"arguments": ""},
            "reasoning": {"summary": []},
        }
        yield _sse({"type": "response.output_item.added", **place, "item": {**item, **empty.get(item["type"], {})}})
        if item["type"] == "message":
            inner = {"item_id": item["id"], **place, "content_index": 0}
            text = item["content"][0]["text"]
            part: Json = {"type": "output_text", "text": "", "annotations": []}
            yield _sse({"type": "response.content_part.added", **inner, "part": part})
            yield _sse({"type": "response.output_text.delta", **inner, "delta": text})
            yield _sse({"type": "response.output_text.done", **inner, "text": text})
        elif item["type"] == "function_call":
            inner = {"item_id": item["id"], **place}
            yield _sse({"type": "response.function_call_arguments.delta", **inner, "delta": item["arguments"]})
            yield _sse({"type": "response.function_call_arguments.done", **inner, "arguments": item["arguments"]})
        yield _sse({"type": "response.output_item.done", **place, "item": item})
    usage = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
    done = {**whole, "status": "completed", "output": output, "usage": usage}
    yield _sse({"type": "response.completed", "response": done})


_BEGUN: dict[str, Json] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "reasoning": {"summary": []},
}
"""Kind of output item -> what it has when it begins."""


def _output(kind: str, value: Any, key: str) -> list[Json]:
    if kind == "text":
        content: list[Json] = [{"type": "output_text", "text": value, "annotations": []}]
        message = {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed"}
        return [{**message, "content": content}]
    if kind in ("thought", "sealed"):
        summary = [{"type": "summary_text", "text": value}] if kind == "thought" else []
        return [{"type": "reasoning", "id": f"rs_{key}", "summary": summary, "encrypted_content": f"E{key}"}]
    if kind == "call":
        call = {
            "type": "function_call",
            "id": f"fc_{key}",
            "call_id": value[0],
            "name": value[1],
            "status": "completed",
        }
        return [{**call, "arguments": value[2]}]
    cited = {"type": "url_citation", "url": "https://e.com/h", "title": "H", "start_index": 0, "end_index": 4}
    text = {"type": "output_text", "text": "Hats are warm.", "annotations": [cited]}
    action = {"type": "search", "query": "hats"}
    return [
        {"type": "web_search_call", "id": f"ws_{key}", "status": "completed", "action": action},
        {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [text]},
    ]


def _openai_chat(items: list[tuple[str, Any]], key: str, model: str = MODELS["openai-chat"]) -> Iterator[bytes]:
    head = {"id": f"chatcmpl-{key}", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: Json, finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return _sse({**head, "choices": choices, **more}, named=False)

    yield chunk({"role": "assistant", "content": ""})
    index = 0
    for kind, value in items:
        if kind in ("text", "search", "failed-search"):
            yield chunk({"content": value})
        elif kind == "thought" and model == MODELS["openrouter"]:
            detail = {"type": "reasoning.text", "text": value, "format": "anthropic-claude-v1", "index": 0}
            yield chunk({"reasoning": value, "reasoning_details": [detail]})
            yield chunk({"reasoning_details": [{"type": "reasoning.text", "signature": f"S{key}", "index": 0}]})
        elif kind == "call":
            function = {"name": value[1], "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": value[0], "type": "function", "function": function}]})
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": value[2]}}]})
            index += 1
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    yield chunk({}, "tool_calls" if index else "stop", usage=usage)
    yield b"data: [DONE]\n\n"


def _gemini(items: list[tuple[str, Any]], key: str) -> Iterator[bytes]:
    parts = [_gemini_part(*item, number) for number, item in enumerate(items)]
    for number, part in enumerate(parts):
        last = {"finishReason": "STOP"} if number == len(parts) - 1 else {}
        content = {"content": {"role": "model", "parts": [part]}, "index": 0, **last}
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}
        facts = {"usageMetadata": usage, "modelVersion": MODELS["gemini"], "responseId": f"r{key}"}
        yield _sse({"candidates": [content], **facts}, named=False)


def _gemini_part(kind: str, value: Any, number: int) -> Json:
    signature = base64.b64encode(f"s{number}".encode()).decode()
    if kind == "call":
        args = json.loads(value[2] or "{}")
        return {"functionCall": {"id": value[0], "name": value[1], "args": args}, "thoughtSignature": signature}
    if kind in ("thought", "sealed"):
        return {"text": value or "hm", "thought": True}
    return {"text": value}


_STREAMS: dict[str, Callable[[list[tuple[str, Any]], str], Iterator[bytes]]] = {
    "anthropic": _anthropic,
    "responses": _responses,
    "openai-chat": _openai_chat,
    "openrouter": lambda items, key: _openai_chat(items, key, MODELS["openrouter"]),
    "gemini": _gemini,
}


def described(provider: str) -> list[Json]:
    """The tools in the provider's own form."""
    schema = {"type": "object"}
    if provider == "anthropic":
        return [{"name": name, "input_schema": schema} for name in NAMES]
    if provider == "gemini":
        return [{"functionDeclarations": [{"name": name, "parameters": schema} for name in NAMES]}]
    functions: list[Json] = [{"name": name, "parameters": schema} for name in NAMES]
    if provider == "responses":
        return [{"type": "function", "strict": None, **function} for function in functions]
    return [{"type": "function", "function": function} for function in functions]


class Conversation:
    """A chat of a page and a model. Whatever the page does, a request begins with the one before it."""

    def __init__(self, provider: str, keeper: ChatKeeper, seed: int) -> None:
        self.model = Model(provider)
        self.name = f"chat-{provider}-{seed}"
        self._draw = random.Random(f"{provider} {seed}")
        self._keeper = keeper
        self._provider = provider
        self._calls = 0
        self._page: list[UIMessage] = []
        self._version = self._draw.choice((6, 7))
        options = RequestOptions(model=MODELS[provider], max_tokens=900, tools=described(provider), system="Be brief.")
        tools = {"weather": Tool(self._weather), "picture": Tool(self._weather), "delete": Tool(self._weather, True)}
        self._chat = lambda: Chat(ProviderRuntime(provider, options, self.model, tools), keeper)

    async def run(self, turns: int = 3) -> None:
        """Take turns; raise AssertionError where an answer fails."""
        for number in range(turns):
            self.model.answers = [self._answer() for _ in range(self._draw.randint(1, 3))]
            self.model.answers.append([("text", self._draw.choice(("Done.", " Done. \n", "é")))])
            message = {"id": f"u{number}", "role": "user", "parts": self._prompt()}
            await self._post({"message": message})
            for _ in range(12):
                decided = self._decided()
                if decided is None:
                    break
                await self._post(decided)
            if self._draw.random() < 0.2:
                await self._post({"trigger": "regenerate-message"})
                while (decided := self._decided()) is not None:
                    await self._post(decided)

    def check(self) -> list[str]:
        """Where a request does not begin with the one before it; raise pydantic.ValidationError for what is none."""
        wrong: list[str] = []
        before: list[str] = []
        for body in self.model.requests:
            check_with_sdk(self._provider, body)
            said = blocks(self._provider, body)
            common = min(len(said), len(before))
            # A regenerated answer is asked for with less than was sent before, and never with anything else.
            if said[:common] != before[:common]:
                place = next(place for place in range(common) if said[place] != before[place])
                wrong.append(f"{self.name}: {before[place][:400]} became {said[place][:400]}")
            before = said
        return wrong

    async def _post(self, fields: Json) -> None:
        last = self._page[-1] if self._page and self._page[-1].role == "assistant" else None
        continues = "messages" in fields
        data = b""
        body = json.dumps({"id": self.name, **fields}).encode()
        async for piece in await self._chat().post(body, version=self._version):
            data += piece
        reader = UIMessageReader(last if continues else None, version=self._version)
        for chunk in decode_chunks(data, version=self._version):
            reader.feed(chunk)
        assert not reader.error_texts, (self.name, reader.error_texts)
        self._page = [reader.message]

    def _decided(self) -> Json | None:
        """What the page sends of its own accord: decisions and outputs, with everything else of the message forged."""
        message: Json = json.loads(encode(self._page[-1]))
        decided = [part for part in message["parts"] if self._decide(part)]
        if not decided:
            return None
        self._page = [parse_ui_message(json.dumps(message), version=self._version)]
        for part in message["parts"]:
            if part not in decided and part.get("state") == "output-available":
                part["output"] = "forged"
            elif part["type"] in ("text", "reasoning"):
                part["text"] = "forged"
            elif "input" in part:
                part["input"] = {"city": "forged"}
        return {"messages": [message]}

    def _decide(self, part: Json) -> bool:
        if part.get("state") == "approval-requested":
            part["state"] = "approval-responded"
            part["approval"] = {**part["approval"], "approved": self._draw.random() < 0.6}
            return True
        if part.get("state") == "input-available" and not part.get("providerExecuted"):
            output = self._draw.choice((1, "here", {"b": 1, "a": 2.5}, None, [], '{"a": 1}'))
            part |= {"state": "output-available", "output": output}
            return True
        return False

    def _prompt(self) -> list[Json]:
        parts: list[Json] = [{"type": "text", "text": self._draw.choice(("hi", '{"a": 1}', " two\n", "é\U0001f600"))}]
        if self._draw.random() < 0.2:
            url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
            parts.append({"type": "file", "mediaType": "image/png", "filename": "a.png", "url": url})
        return parts

    def _answer(self) -> list[tuple[str, Any]]:
        items: list[tuple[str, Any]] = []
        if self._draw.random() < 0.4:
            items.append((self._draw.choice(("thought", "thought", "sealed")), "hm, so"))
        if self._draw.random() < 0.5:
            items.append(("text", self._draw.choice(("Let me look.", "é \n", '{"a": 1.0}'))))
        if self._draw.random() < 0.2:
            items.append((self._draw.choice(("search", "search", "failed-search")), "search"))
        for _ in range(self._draw.choice((1, 1, 2, 3))):
            self._calls += 1
            call = (f"call_{self._calls}", self._draw.choice((*NAMES, "weather")), self._draw.choice(ARGUMENTS))
            items.append(("call", call))
        return items

    async def _weather(self, call: ToolCallPart, request: RunRequest) -> ToolResult | str:
        text = self._draw.choice(TEXTS)
        image = FilePart(media_type="image/png", data=PNG)
        kind = self._draw.randrange(10)
        if kind == 0:
            raise OSError(text)
        if kind == 1:
            return ToolResult(id="r", status="error", error_text=text or "bad")
        if kind == 2:
            return ToolResult(id="r", content=(TextPart(text=text), TextPart(text="two")))
        if kind == 3:
            return ToolResult(id="r", content=(TextPart(text=text), image, TextPart(text="after")))
        if kind == 4:
            return ToolResult(id="r", content=(image,))
        if kind == 5:
            pdf = FilePart(media_type="application/pdf", filename="a.pdf", data=b"%PDF-1.4")
            return ToolResult(id="r", content=(TextPart(text=text), pdf))
        return ToolResult(id="r") if kind == 6 else text


class NextTurns(NamedTuple):
    """What a number of conversations showed."""

    pairs: int
    """Requests that came after others of their chat."""
    wrong: list[str]


async def next_turns(provider: str, keeper: ChatKeeper, seeds: Iterable[int]) -> NextTurns:
    """Run the conversations of these seeds, many at once."""
    pairs, wrong, waiting = 0, list[str](), iter(seeds)
    while batch := [Conversation(provider, keeper, seed) for seed in islice(waiting, 50)]:
        await asyncio.gather(*[conversation.run() for conversation in batch])
        for conversation in batch:
            pairs += len(conversation.model.requests) - 1
            wrong += conversation.check()
    return NextTurns(pairs, wrong)


def blocks(provider: str, body: Json) -> list[str]:
    """What a request says, one text for each block, byte for byte; a text that is alone may be a string."""

    def parts(content: Any) -> list[Any]:
        return [{"type": "text", "text": content}] if isinstance(content, str) else content or []

    if provider == "anthropic":
        return [json.dumps([turn["role"], each]) for turn in body["messages"] for each in parts(turn["content"])]
    if provider == "gemini":
        return [json.dumps([turn["role"], each]) for turn in body["contents"] for each in turn["parts"]]
    return [json.dumps(each) for each in body["input" if provider == "responses" else "messages"]]
