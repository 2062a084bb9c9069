"""Small agents on the official SDKs, one an API: they keep their own history and send all of it each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import anthropic
import openai
from google import genai
from google.genai import types as google

from turnlog.cassette.conversation import json_of
from turnlog.cassette.tape import AskedFile, AskedResult, AskedText, EarlierAnswer, Entry, Track, requests_of

Answer = tuple[str, list[tuple[str, Any]]]
"""What an SDK understood: the text, and the calls by name and arguments."""

MODEL = "asked-model"
TOOL: dict[str, Any] = {"name": "Bash", "description": "", "input_schema": {"type": "object"}}


class Agent(Protocol):
    client: Any

    def ask(self, texts: Sequence[str], results: Sequence[tuple[str, str]], *, stream: bool) -> Answer: ...


class AnthropicAgent:
    def __init__(self, url: str) -> None:
        self.client: Any = anthropic.Anthropic(base_url=url, api_key="-", max_retries=0)
        self.messages: list[Any] = []

    def ask(self, texts: Sequence[str], results: Sequence[tuple[str, str]], *, stream: bool) -> Answer:
        answered = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results]
        self.messages.append({"role": "user", "content": [*answered, *[{"type": "text", "text": t} for t in texts]]})
        options: Any = {
            "model": MODEL,
            "max_tokens": 1000,
            "messages": self.messages,
            "system": "You are a test.",
            "tools": [TOOL],
            "thinking": {"type": "enabled", "budget_tokens": 500},
        }
        if stream:
            with self.client.messages.stream(**options) as events:
                answer = events.get_final_message()
        else:
            answer = self.client.messages.create(**options)
        self.messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
        reply = "".join([block.text for block in answer.content if block.type == "text"])
        return reply, [(block.name, block.input) for block in answer.content if block.type == "tool_use"]


class ChatAgent:
    def __init__(self, url: str) -> None:
        self.client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0)
        self.messages: list[Any] = [{"role": "system", "content": "You are a test."}]

    def ask(self, texts: Sequence[str], results: Sequence[tuple[str, str]], *, stream: bool) -> Answer:
        self.messages += [{"role": "tool", "tool_call_id": call, "content": text} for call, text in results]
        self.messages += [{"role": "user", "content": text} for text in texts]
        options: Any = {"model": MODEL, "messages": self.messages}
        if stream:
            with self.client.chat.completions.stream(**options) as events:
                answer: Any = events.get_final_completion()
        else:
            answer = self.client.chat.completions.create(**options)
        reply: Any = answer.choices[0].message
        made_calls: list[Any] = reply.tool_calls or []
        calls: list[Any] = [call.model_dump(include={"id", "type", "function"}) for call in made_calls]
        for call in calls:
            call["function"] = {name: call["function"][name] for name in ("name", "arguments")}
        self.messages.append(
            {"role": "assistant", "content": reply.content, **({"tool_calls": calls} if calls else {})}
        )
        made = [(call["function"]["name"], json_of(call["function"]["arguments"])) for call in calls]
        return reply.content or "", made


class ResponsesAgent:
    def __init__(self, url: str, *, goes_on: bool = False) -> None:
        """`goes_on`: send only what is new, behind the id of the last response."""
        self.client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0)
        self.items: list[Any] = []
        self.goes_on = goes_on
        self.last: str | None = None

    def ask(self, texts: Sequence[str], results: Sequence[tuple[str, str]], *, stream: bool) -> Answer:
        self.items += [{"type": "function_call_output", "call_id": call, "output": text} for call, text in results]
        self.items += [{"role": "user", "content": text} for text in texts]
        options: Any = {"model": MODEL, "input": self.items, "instructions": "You are a test."}
        if self.goes_on and self.last is not None:
            options["previous_response_id"] = self.last
        if stream:
            with self.client.responses.stream(**options) as events:
                answer: Any = events.get_final_response()
        else:
            answer = self.client.responses.create(**options)
        self.last = answer.id
        known = [] if self.goes_on else self.items
        self.items = [*known, *([] if self.goes_on else [item.to_dict() for item in answer.output])]
        calls = [item for item in answer.output if item.type == "function_call"]
        return answer.output_text, [(call.name, json_of(call.arguments)) for call in calls]


class GeminiAgent:
    def __init__(self, url: str) -> None:
        self.client: Any = genai.Client(api_key="-", http_options=google.HttpOptions(base_url=url))
        self.contents: list[Any] = []

    def ask(self, texts: Sequence[str], results: Sequence[tuple[str, str]], *, stream: bool) -> Answer:
        names = {part.function_call.id: part.function_call.name for part in self._called()}
        answered = [
            google.Part(function_response=google.FunctionResponse(name=names.get(call), response={"output": text}))
            for call, text in results
        ]
        prompts = [google.Part(text=text) for text in texts]
        self.contents.append(google.Content(role="user", parts=[*answered, *prompts]))
        thinking = google.ThinkingConfig(include_thoughts=True)
        options: Any = {
            "model": MODEL,
            "contents": self.contents,
            "config": google.GenerateContentConfig(system_instruction="You are a test.", thinking_config=thinking),
        }
        models = self.client.models
        answers = list(models.generate_content_stream(**options)) if stream else [models.generate_content(**options)]
        parts = [part for answer in answers for part in answer.candidates[0].content.parts]
        self.contents.append(google.Content(role="model", parts=parts))
        reply = "".join([part.text for part in parts if part.text and not part.thought])
        called = [part.function_call for part in parts if part.function_call]
        return reply, [(call.name or "", call.args) for call in called]

    def _called(self) -> list[Any]:
        return [part for content in self.contents for part in content.parts if part.function_call]


AGENTS: dict[str, Any] = {
    "anthropic": AnthropicAgent,
    "openai-chat": ChatAgent,
    "responses": ResponsesAgent,
    "gemini": GeminiAgent,
}


def drive(agent: Agent, track: Track, *, stream: bool) -> list[Answer]:
    """Ask what was asked, answer calls as they were answered, and say what came."""
    answers: list[Answer] = []
    for _, exchange in requests_of(track):
        texts = [
            entry.text or "anything" for entry in exchange.asks if isinstance(entry, AskedText) and not entry.optional
        ]
        results = [(e.tool_call_id, e.text or "in other words") for e in exchange.asks if isinstance(e, AskedResult)]
        answers.append(agent.ask(texts, results, stream=stream))
    return answers


def is_plain(entries: Sequence[Entry]) -> bool:
    """Whether the small agents can ask it: they show no files and bring no earlier answers."""
    return not any(isinstance(entry, AskedFile | EarlierAnswer) for entry in entries)
