"""A LangChain runnable or a LangGraph graph behind a chat.

The chat becomes LangChain messages, and the events of `astream_events` become stream events. A graph that interrupts
its run (`HumanInTheLoopMiddleware`, `interrupt`) continues with the page's answers. Its checkpointer has the state.
Each answer has its own thread, so that an edited or regenerated message meets no state of the old one.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from msgspec.structs import replace

from turnlog.chat.attachments import LoadAttachment, WriteData
from turnlog.chat.conversion import PRIVATE_KEY, private_metadata
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.frameworks import (
    FrameworkRuntime,
    approval_id,
    arguments,
    content_result,
    decisions,
    is_open,
    outcome_text,
    result_parts,
)
from turnlog.errors import NotFoundError
from turnlog.model import (
    FilePart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCallPart,
    Usage,
)
from turnlog.model.codec import to_json
from turnlog.model.stream import (
    ApprovalRequest,
    DataEvent,
    Pause,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)
from turnlog.providers.request_parts import proof

ToInput: TypeAlias = Callable[[list[BaseMessage], RunRequest], Any]
"""Makes the input of the runnable from the chat."""

_KEY: Final = "langchain"

_HIDDEN: Final = frozenset({"nostream", "langsmith:nostream"})
"""Tags of models whose output is not for the page, as LangGraph spells them."""

_STOPS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "content_filter": "content_filter",
    "refusal": "refusal",
}

_Json: TypeAlias = dict[str, Any]


class LangChainRuntime(FrameworkRuntime[Any]):
    """Answers chats by a runnable: a chat model, a chain, or a LangGraph graph such as that of `create_agent`."""

    kind = Runnable
    expected = "a Runnable of langchain_core: a chat model, a chain or a compiled graph"

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        *,
        to_input: ToInput | None = None,
        config: Mapping[str, Any] | None = None,
        load_file: LoadAttachment | None = None,
        write_data: WriteData | None = None,
    ) -> None:
        """Answer chats by this runnable.

        Args:
            runnable: The runnable. The `context` of a graph are the `dependencies` of the request.
            to_input: Makes its input. By default the messages, for a graph `{"messages": messages}`.
            config: Passed on to each run: `recursion_limit`, `callbacks`, …
            load_file: As that of `ProviderRuntime`.
            write_data: As that of `ProviderRuntime`.
        """
        super().__init__(runnable, load_file=load_file, write_data=write_data)
        self._is_graph = hasattr(runnable, "aget_state")
        self._to_input = to_input or (_graph_input if self._is_graph else _chain_input)
        self._config = dict(config or {})

    async def _run_agent(self, request: RunRequest, history: list[Message]) -> AsyncGenerator[StreamEvent, None]:
        paused: _Json = private_metadata(request.continued).get(_KEY) or {}
        answers = decisions(history)
        thread = str(paused["thread"]) if paused and answers else uuid.uuid4().hex
        config = {**self._config, "configurable": {**self._config.get("configurable", {}), "thread_id": thread}}
        given: Any = None
        if paused and answers:
            if not (await self._agent.aget_state(config)).interrupts:
                raise NotFoundError(f"the graph's checkpointer has no paused thread {thread}: is it in memory only?")
            given = _resume(paused["interrupts"], answers)
            yield RunStart(metadata={PRIVATE_KEY: {_KEY: None}})
        else:
            given = self._to_input(to_langchain(history), request)
        context = {"context": request.dependencies} if self._is_graph and request.dependencies is not None else {}
        translator = _Translator(answers)
        stream = self._agent.astream_events(given, config=config, version="v2", **context)
        async with aclosing(stream) as events:
            async for event in events:
                for each in translator.translate(event):
                    yield each
        for each in translator.end():
            yield each
        for each in await self._ending(config, thread, translator):
            yield each

    async def _ending(self, config: _Json, thread: str, translator: _Translator) -> list[StreamEvent]:
        """How the run ends: with an answer, or because it waits for the page."""
        interrupts: Iterable[Any] = ()
        if self._is_graph and getattr(self._agent, "checkpointer", None):
            interrupts = (await self._agent.aget_state(config)).interrupts
        requests: list[StreamEvent] = []
        calls: dict[str, list[str]] = {}
        for interrupt in interrupts:
            calls[interrupt.id] = translator.asked_for(interrupt.value)
            requests += [
                ApprovalRequest(approval_id=approval_id(name), tool_call_id=name) for name in calls[interrupt.id]
            ]
            if not calls[interrupt.id]:
                value = {"id": interrupt.id, "value": interrupt.value}
                requests.append(DataEvent(name="interrupt", data=to_json(value), id=interrupt.id))
        if not requests:
            return [RunFinish(stop_reason="tool_use" if translator.calls else "stop")]
        kept = RunStart(metadata={PRIVATE_KEY: {_KEY: {"thread": thread, "interrupts": calls}}})
        return [*requests, kept, Pause(reason="approval" if any(calls.values()) else "input")]


def _graph_input(messages: list[BaseMessage], request: RunRequest) -> Any:
    return {"messages": messages}


def _chain_input(messages: list[BaseMessage], request: RunRequest) -> Any:
    return messages


def _resume(interrupts: _Json, answers: Mapping[str, tuple[bool, str | None]]) -> Any:
    """What continues a graph: for each of its interrupts the decisions on its calls, in order."""
    from langgraph.types import Command

    def decision(call_id: str) -> _Json:
        approved, reason = answers.get(call_id, (False, None))
        return {"type": "approve"} if approved else {"type": "reject", **({"message": reason} if reason else {})}

    return Command(
        resume={name: {"decisions": [decision(each) for each in calls]} for name, calls in interrupts.items()}
    )


# -- the history


def to_langchain(history: Iterable[Message]) -> list[BaseMessage]:
    """A chat as LangChain messages."""
    found: list[BaseMessage] = []
    for message in history:
        if message.role == "user":
            found.append(HumanMessage(_user_content(message), id=message.id))
        elif message.role == "assistant":
            found += _answer(message)
        else:
            texts = [part.text for part in message.parts if isinstance(part, TextPart)]
            found.append(SystemMessage("\n".join(texts), id=message.id))
    return found


def _user_content(message: Message) -> Any:
    if all(isinstance(part, TextPart) for part in message.parts):
        return "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    return [block for part in message.parts for block in _user_blocks(part)]


def _user_blocks(part: object) -> list[_Json]:
    if isinstance(part, TextPart):
        return [{"type": "text", "text": part.text}]
    if not isinstance(part, FilePart):
        return []
    kind = part.media_type.partition("/")[0]
    named = {"filename": part.filename} if part.filename else {}
    return [{"type": kind if kind in _MEDIA else "file", "mime_type": part.media_type, **_place(part), **named}]


def _place(part: FilePart) -> _Json:
    """Where the bytes of a file are."""
    file_id = proof(part, "file_id")
    if file_id is not None:
        return {"file_id": file_id}
    return {"url": part.url} if part.data is None else {"base64": base64.b64encode(part.data).decode()}


def _answer(message: Message) -> list[BaseMessage]:
    """One model call: the answer, and the results of its calls."""
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    thoughts = [_thought(part) for part in message.parts if isinstance(part, ReasoningPart) and part.provider]
    calls = [part for part in message.parts if isinstance(part, ToolCallPart) and not part.provider_executed]
    if not (texts or calls):
        return []
    content: Any = "".join(texts)
    # Reasoning goes back in LangChain's own form, which every chat model turns into that of its API.
    form: _Json = {"output_version": "v1"} if thoughts else {}
    if thoughts:
        content = [*thoughts, *[{"type": "text", "text": text} for text in texts]]
    made = [
        {"type": "tool_call", "id": call.tool_call_id, "name": call.tool_name, "args": _args(call)} for call in calls
    ]
    answer = AIMessage(content, id=message.id, tool_calls=cast("Any", made), response_metadata=form)
    return [answer, *[_result(call) for call in calls if not is_open(call)]]


def _thought(part: ReasoningPart) -> _Json:
    block = part.provider.opaque.get("block") if part.provider else None
    return {"type": "reasoning", "reasoning": part.text, **(cast("_Json", block) if isinstance(block, dict) else {})}


def _args(call: ToolCallPart) -> _Json:
    value = call.input_value()
    return cast("_Json", value) if isinstance(value, dict) else {"input": value}


def _result(call: ToolCallPart) -> ToolMessage:
    is_good = bool(call.results) and call.results[-1].status == "success"
    status = "success" if is_good else "error"
    blocks = [block for part in result_parts(call) for block in _user_blocks(part)]
    content: Any = blocks or outcome_text(call)
    return ToolMessage(content, tool_call_id=call.tool_call_id, name=call.tool_name, status=status)


# -- the events


class _Translator:
    """Translates the events of one run."""

    def __init__(self, answers: Mapping[str, tuple[bool, str | None]]) -> None:
        self.calls: dict[str, tuple[str, _Json]] = dict.fromkeys(answers, ("", {}))
        """Calls without an output: their ids, names and arguments."""
        self._answers = answers
        self._models: dict[str, _Response] = {}
        """Model calls that run, by the id of their run."""
        self._tools = set[str]()
        """Runs of tools. What models say inside of them is not the answer."""
        self._number = 0
        self._last: Any = None
        self._handlers: dict[str, Callable[[_Json], Iterable[StreamEvent]]] = {
            "on_chat_model_start": self._model_start,
            "on_chat_model_stream": self._model_stream,
            "on_chat_model_end": self._model_end,
            "on_chain_stream": self._chain_stream,
            "on_chain_end": self._chain_end,
            "on_tool_end": self._tool_end,
        }

    def translate(self, event: _Json) -> list[StreamEvent]:
        """The stream events of one event; none for one that shows nothing."""
        if any(parent in self._tools for parent in event.get("parent_ids", ())):
            return []
        if event["event"] == "on_tool_start":
            self._tools.add(event["run_id"])
        handler = self._handlers.get(event["event"])
        return [] if handler is None else list(handler(event))

    def end(self) -> list[StreamEvent]:
        """The answer of a runnable in which no chat model spoke."""
        text = _text_of(self._last)
        return [StepStart(), TextStart(id="answer"), TextDelta(id="answer", delta=text)] if text else []

    def asked_for(self, value: Any) -> list[str]:
        """The ids of the calls that an interrupt asks about, in its order; none if it asks something else."""
        actions = cast("_Json", value).get("action_requests") if isinstance(value, dict) else None
        rest, found = dict(self.calls), list[str]()
        for action in cast("list[_Json]", actions or []):
            wanted = (action.get("name"), action.get("args"))
            call_id = next((name for name, call in rest.items() if call == wanted), None)
            if call_id is not None:
                del rest[call_id]
                found.append(call_id)
        return found

    def _model_start(self, event: _Json) -> Iterator[StreamEvent]:
        if _HIDDEN & set(event.get("tags", ())):
            return
        self._number += 1
        self._models[event["run_id"]] = _Response(f"step-{self._number}")
        yield StepStart(model=event.get("metadata", {}).get("ls_model_name"))

    def _model_stream(self, event: _Json) -> Iterable[StreamEvent]:
        response, chunk = self._models.get(event["run_id"]), event["data"]["chunk"]
        return response.grow(chunk) if response is not None and isinstance(chunk, AIMessageChunk) else ()

    def _model_end(self, event: _Json) -> Iterator[StreamEvent]:
        response, answer = self._models.pop(event["run_id"], None), event["data"].get("output")
        if response is None or not isinstance(answer, AIMessage):
            return
        self._last = None
        yield from response.end(answer)
        self.calls |= {str(call["id"]): (call["name"], call["args"]) for call in answer.tool_calls}

    def _tool_end(self, event: _Json) -> Iterator[StreamEvent]:
        return self._outputs(event["data"].get("output"))

    def _chain_stream(self, event: _Json) -> Iterator[StreamEvent]:
        # A graph reports all that its nodes wrote, also results of calls that failed or never ran.
        return self._outputs(event["data"].get("chunk"))

    def _chain_end(self, event: _Json) -> Iterator[StreamEvent]:
        if not event.get("parent_ids") and not self._number:
            self._last = event["data"].get("output")
        return iter(())

    def _outputs(self, value: object) -> Iterator[StreamEvent]:
        for message in _tool_messages(value):
            call_id = message.tool_call_id
            if self.calls.pop(call_id, None) is None:
                continue
            status = "error" if message.status == "error" else "success"
            if call_id in self._answers and not self._answers[call_id][0]:
                status = "denied"
            content = _content_parts(message)
            result = content_result(call_id, content, str(message.text), status)
            yield ToolOutput(tool_call_id=call_id, result=result)


def _content_parts(message: ToolMessage) -> list[Part]:
    """The parts of a result; a block that is neither text nor a file is its JSON."""
    if isinstance(message.content, str):
        return [TextPart(text=message.content)]
    return [_content_part(block) for block in cast("list[_Json]", message.content_blocks)]


def _content_part(block: _Json) -> Part:
    if block["type"] == "text":
        return TextPart(text=str(block.get("text", "")))
    kind = str(block["type"])
    media_type = block.get("mime_type") or (f"{kind}/*" if kind in _MEDIA else "application/octet-stream")
    extras = cast("_Json", block.get("extras") or {})
    named = block.get("filename") or extras.get("filename")
    file = FilePart(media_type=str(media_type), filename=named if isinstance(named, str) else None)
    if kind in (*_MEDIA, "file"):
        if isinstance(block.get("base64"), str):
            with suppress(binascii.Error):
                return replace(file, data=base64.b64decode(block["base64"], validate=True))
        elif isinstance(block.get("url"), str):
            return replace(file, url=block["url"])
        elif isinstance(block.get("file_id"), str):
            return replace(file, provider=ProviderData(name=_KEY, opaque={"file_id": block["file_id"]}))
    return TextPart(text=json.dumps(block.get("value", block), default=str))


_MEDIA: Final = ("image", "audio", "video")


def _tool_messages(value: object) -> Iterator[ToolMessage]:
    """The results in what a node wrote: messages in mappings, lists and commands."""
    if isinstance(value, ToolMessage):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[str, object]", value).values():
            yield from _tool_messages(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _tool_messages(each)
    elif hasattr(value, "update") and hasattr(value, "goto"):
        yield from _tool_messages(cast("Any", value).update)


def _text_of(value: object) -> str:
    """The text of a runnable's output."""
    if isinstance(value, str):
        return value
    if isinstance(value, AIMessage):
        return str(value.text)
    if isinstance(value, Mapping):
        messages: Any = cast("Mapping[str, object]", value).get("messages")
        return _text_of(cast("list[object]", messages)[-1]) if isinstance(messages, list) and messages else ""
    return ""


class _Response:
    """The events of one model call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._open: tuple[str, str] | None = None
        """Kind and id of the part that grows."""
        self._thought: _Json = {}
        """What the model gave with the thought that grows."""
        self._started: dict[Any, str] = {}
        """Index of a call whose arguments arrive -> its id."""
        self._has_grown = False

    def grow(self, chunk: AIMessage) -> Iterator[StreamEvent]:
        """The events of more of the response."""
        for block in cast("list[_Json]", chunk.content_blocks):
            self._has_grown = True
            if block["type"] == "text":
                yield from self._grow_part("text", block.get("text", ""))
            elif block["type"] == "reasoning":
                yield from self._grow_part("reasoning", block.get("reasoning", ""))
                extras = {name: block[name] for name in ("id", "extras") if block.get(name)}
                self._thought = {**self._thought, **extras}
            elif block["type"] == "tool_call_chunk":
                yield from self._grow_call(block)

    def end(self, answer: AIMessage) -> Iterator[StreamEvent]:
        """The events of the end; all of a response that did not stream."""
        if not self._has_grown:
            yield from self.grow(answer)
        yield from self._close()
        for call in answer.tool_calls:
            yield ToolInputAvailable(tool_call_id=str(call["id"]), tool_name=call["name"], input=to_json(call["args"]))
        for broken in answer.invalid_tool_calls:
            name = str(broken.get("name"))
            yield ToolInputAvailable(
                tool_call_id=str(broken.get("id")), tool_name=name, **arguments(broken.get("args") or "")
            )
        raw = next((answer.response_metadata.get(name) for name in ("finish_reason", "stop_reason")), None)
        made = "tool_use" if answer.tool_calls else "stop"
        reason = _STOPS.get(str(raw), made)
        yield StepFinish(stop_reason=reason, raw_stop_reason=raw, usage=_usage(cast("Any", answer.usage_metadata)))

    def _grow_part(self, kind: str, text: str) -> Iterator[StreamEvent]:
        if not text and (self._open is None or self._open[0] != kind):
            return
        if self._open is None or self._open[0] != kind:
            yield from self._close()
            self._count += 1
            self._open = (kind, f"{self._name}-{self._count}")
            yield (TextStart if kind == "text" else ReasoningStart)(id=self._open[1])
        if text:
            yield (TextDelta if kind == "text" else ReasoningDelta)(id=self._open[1], delta=text)

    def _close(self) -> Iterator[StreamEvent]:
        if self._open is None:
            return
        kind, name = self._open
        if kind == "text":
            yield TextEnd(id=name)
        else:
            own = ProviderData(name=_KEY, opaque={"block": self._thought}) if self._thought else None
            yield ReasoningEnd(id=name, provider=own)
        self._open, self._thought = None, {}

    def _grow_call(self, block: _Json) -> Iterator[StreamEvent]:
        index = block.get("index")
        if index not in self._started:
            if not (block.get("id") and block.get("name")):
                return
            yield from self._close()
            self._started[index] = str(block["id"])
            yield ToolInputStart(tool_call_id=str(block["id"]), tool_name=str(block["name"]))
        if block.get("args"):
            yield ToolInputDelta(tool_call_id=self._started[index], delta=str(block["args"]))


def _usage(usage: _Json | None) -> Usage | None:
    """Disjoint buckets: the cache is inside of the input, reasoning inside of the output."""
    if not usage:
        return None
    inputs: _Json = usage.get("input_token_details") or {}
    given: _Json = usage.get("output_token_details") or {}
    read, written, reasoning = inputs.get("cache_read"), inputs.get("cache_creation"), given.get("reasoning")
    return Usage(
        input=max(usage["input_tokens"] - (read or 0) - (written or 0), 0),
        cache_read=read,
        cache_write=written,
        output=max(usage["output_tokens"] - (reasoning or 0), 0),
        reasoning=reasoning,
    )
