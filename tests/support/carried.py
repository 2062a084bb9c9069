"""What each runtime carries of a chat to its model: a tool that returns a value, a user who attaches parts, two turns.

`run` returns what the model got, call by call, in one form: texts, bytes, addresses and ids of files.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, cast

from agents.testing import ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]  # its types are open
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import BinaryContent, ImageUrl, UploadedFile
from pydantic_ai.messages import ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

import agents
from support.bridges import UNTRACED
from support.chat_script import drain, post
from support.next_turns import PNG, Model, described
from turnlog.chat import Chat, MemoryKeeper, ProviderRuntime, RequestOptions, RunRequest, Tool
from turnlog.chat.runtimes import LangChainRuntime, OpenAIAgentsRuntime, PydanticAIRuntime
from turnlog.model import FilePart, ProviderData, TextPart, ToolCallPart, ToolResult

Parts = list[dict[str, Any]]
PDF = b"%PDF-1.4"
WEB = "https://example.com/a.png"


class Seen(NamedTuple):
    """What a model got in one call: pieces of the result of the tool, and of the first message of the user."""

    result: list[tuple[str, str]]
    prompt: list[tuple[str, str]]


def encoded(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


async def _turns(runtime: Any, parts: Parts) -> None:
    chat = Chat(runtime, MemoryKeeper())
    for number, each in enumerate((parts, [{"type": "text", "text": "and?"}])):
        answer = await drain(await chat.post(post(message={"id": f"u{number}", "role": "user", "parts": each})))
        assert b'"type":"error"' not in answer, answer


def _texts(pieces: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [piece for piece in pieces if piece != ("text", "")]


# -- ProviderRuntime


async def run_provider(value: Any, parts: Parts, **options: Any) -> list[Seen]:
    model = Model("responses")
    model.answers = [[("call", ("c1", "weather", "{}"))], [("text", "Done.")], [("text", "Bye.")]]
    asked = RequestOptions(model="gpt-5.5", tools=described("responses"))

    def look(call: ToolCallPart, request: RunRequest) -> Any:
        return value

    runtime = ProviderRuntime("responses", asked, model, {"weather": Tool(look)}, **options)
    await _turns(runtime, parts)
    return [_items(request["input"]) for request in model.requests]


def _items(items: list[Any]) -> Seen:
    """Items of the Responses API, which the OpenAI Agents SDK has, too."""
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    prompt = next(item["content"] for item in items if item.get("role") == "user")
    return Seen(_pieces(outputs[0]) if outputs else [], _pieces(prompt))


def _pieces(content: Any) -> list[tuple[str, str]]:
    return _texts([("text", content)] if isinstance(content, str) else [_piece(piece) for piece in content])


def _piece(piece: dict[str, Any]) -> tuple[str, str]:
    place = next(((name, piece[name]) for name in _PLACES if piece.get(name)), None)
    if place is None:
        return "text", piece["text"]
    return "id" if place[0] == "file_id" else "file", str(place[1])


_PLACES = ("file_id", "image_url", "file_url", "file_data")


# -- Pydantic AI


async def run_pydantic_ai(value: Any, parts: Parts, **options: Any) -> list[Seen]:
    seen: list[Seen] = []

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncGenerator[str | dict[int, DeltaToolCall], None]:
        found = [part for message in messages for part in message.parts]
        result: Any = next((part.content for part in found if isinstance(part, ToolReturnPart)), None)
        prompt: Any = next(part.content for part in found if isinstance(part, UserPromptPart))
        seen.append(Seen([] if result is None else _pydantic(result), _pydantic(prompt)))
        if len(seen) == 1:
            yield {0: DeltaToolCall(name="look", json_args="{}", tool_call_id="c1")}
        else:
            yield "Done."

    agent = PydanticAgent(FunctionModel(stream_function=answer))

    @agent.tool_plain
    def look() -> Any:
        return value

    await _turns(PydanticAIRuntime(agent, **options), parts)
    return seen


def _pydantic(content: Any) -> list[tuple[str, str]]:
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return _texts([_pydantic_piece(item) for item in items])


def _pydantic_piece(item: Any) -> tuple[str, str]:
    if isinstance(item, BinaryContent):
        return "file", encoded(item.data, item.media_type)
    if isinstance(item, UploadedFile):
        return "id", item.file_id
    if isinstance(item, ImageUrl):
        return "file", item.url
    return "text", item if isinstance(item, str) else json.dumps(item, separators=(",", ":"))


# -- OpenAI Agents SDK


async def run_openai_agents(value: Any, parts: Parts, **options: Any) -> list[Seen]:
    def look() -> Any:
        """Look."""
        return value

    model = ScriptedModel(
        [[function_call("look", "{}", call_id="c1")], [assistant_message("Done.")], [assistant_message("Bye.")]]
    )
    agent = agents.Agent(name="A", tools=[agents.function_tool(look)], model=model)
    await _turns(OpenAIAgentsRuntime(agent, run_config=UNTRACED, **options), parts)
    return [_items(list(call.input)) for call in model.calls]


# -- LangChain


async def run_langchain(value: Any, parts: Parts, **options: Any) -> list[Seen]:
    seen: list[Seen] = []

    class Script(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
            result: Any = next((message.content for message in messages if isinstance(message, ToolMessage)), None)
            prompt: Any = next(message.content for message in messages if isinstance(message, HumanMessage))
            seen.append(Seen([] if result is None else _langchain(result), _langchain(prompt)))
            calls: Any = [{"name": "look", "args": {}, "id": "c1"}] if len(seen) == 1 else []
            answer = AIMessage("" if calls else "Done.", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=answer)])

    tool = StructuredTool.from_function(lambda: value, name="look", description="Look.")
    graph = cast("Any", create_agent(Script(), tools=[tool]))
    await _turns(LangChainRuntime(graph, **options), parts)
    return seen


def _langchain(content: Any) -> list[tuple[str, str]]:
    return _texts([("text", content)] if isinstance(content, str) else [_langchain_piece(block) for block in content])


def _langchain_piece(block: dict[str, Any]) -> tuple[str, str]:
    if "base64" in block:
        return "file", f"data:{block['mime_type']};base64,{block['base64']}"
    if "file_id" in block:
        return "id", block["file_id"]
    return ("file", block["url"]) if "url" in block else ("text", block["text"])


RUNTIMES: dict[str, Callable[..., Coroutine[Any, Any, list[Seen]]]] = {
    "`ProviderRuntime`": run_provider,
    "Pydantic AI": run_pydantic_ai,
    "OpenAI Agents SDK": run_openai_agents,
    "LangChain, LangGraph": run_langchain,
}


def load_picture(file: FilePart, request: RunRequest) -> bytes | None:
    return PNG if file.url == "/uploads/a.png" else None


_PICTURE, _DOCUMENT = encoded(PNG, "image/png"), encoded(PDF, "application/pdf")


def _own(*parts: Any) -> ToolResult:
    return ToolResult(id="r", content=parts)


def _block(kind: str, data: bytes, media_type: str) -> dict[str, Any]:
    return {"type": kind, "base64": base64.b64encode(data).decode(), "mime_type": media_type}


_PNG_PART = FilePart(media_type="image/png", data=PNG)
_PNG_BLOCK = _block("image", PNG, "image/png")

RESULTS: dict[str, tuple[list[tuple[str, str]], tuple[Any, Any, Any, Any]]] = {
    "text": ([("text", "rain")], ("rain", "rain", "rain", "rain")),
    "JSON": ([("text", '{"a":1}')], ('{"a":1}', {"a": 1}, '{"a":1}', '{"a":1}')),
    "a picture": (
        [("file", _PICTURE)],
        (
            _own(_PNG_PART),
            BinaryContent(PNG, media_type="image/png"),
            agents.ToolOutputImage(image_url=_PICTURE),
            [_PNG_BLOCK],
        ),
    ),
    "the address of a picture": (
        [("file", WEB)],
        (
            _own(FilePart(media_type="image/png", url=WEB)),
            ImageUrl(WEB),
            agents.ToolOutputImage(image_url=WEB),
            [{"type": "image", "url": WEB, "mime_type": "image/png"}],
        ),
    ),
    "a PDF": (
        [("file", _DOCUMENT)],
        (
            _own(FilePart(media_type="application/pdf", filename="a.pdf", data=PDF)),
            BinaryContent(PDF, media_type="application/pdf"),
            agents.ToolOutputFileContent(file_data=_DOCUMENT, filename="a.pdf"),
            [_block("file", PDF, "application/pdf")],
        ),
    ),
    "text, a picture and text, in this order": (
        [("text", "see"), ("file", _PICTURE), ("text", "after")],
        (
            _own(TextPart(text="see"), _PNG_PART, TextPart(text="after")),
            ["see", BinaryContent(PNG, media_type="image/png"), "after"],
            [
                agents.ToolOutputText(text="see"),
                agents.ToolOutputImage(image_url=_PICTURE),
                agents.ToolOutputText(text="after"),
            ],
            [{"type": "text", "text": "see"}, _PNG_BLOCK, {"type": "text", "text": "after"}],
        ),
    ),
    "the id of a file at the provider": (
        [("id", "f1")],
        (
            _own(FilePart(media_type="image/png", provider=ProviderData(name="openai", opaque={"file_id": "f1"}))),
            UploadedFile("f1", provider_name="openai", media_type="image/png"),
            agents.ToolOutputImage(file_id="f1"),
            [{"type": "image", "file_id": "f1", "mime_type": "image/png"}],
        ),
    ),
}
"""What a tool returns -> what the model has of it, and the value for each runtime in order."""

_FILE = {"type": "file", "mediaType": "image/png", "filename": "a.png"}

PROMPTS: dict[str, tuple[list[tuple[str, str]], dict[str, Any], dict[str, Any]]] = {
    "a picture": ([("file", _PICTURE)], {**_FILE, "url": _PICTURE}, {}),
    "the address of a picture": ([("file", WEB)], {**_FILE, "url": WEB}, {}),
    "a file of the application, with `load_file`": (
        [("file", _PICTURE)],
        {**_FILE, "url": "/uploads/a.png"},
        {"load_file": load_picture},
    ),
    "data, by default as JSON": (
        [("text", '[data-place]\n{"a":1}')],
        {"type": "data-place", "data": {"a": 1}},
        {},
    ),
}
"""What a user attaches -> what the model has of it, the part of the page, and options of the runtime."""
