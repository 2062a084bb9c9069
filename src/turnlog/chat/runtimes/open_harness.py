"""Open Harness behind a chat: as a runtime of `Chat`, and as AI SDK's `ChatTransport` in Python.

Both subscribe to an Open Harness runtime, send it the user's message, and translate its events (`agent:*`, `node:*`,
`flow:*`) until the run has ended. An event is the JSON object that the runtime emits. One that breaks the rules is
logged and skipped (R-O14), and an unknown type is ignored. A chunk writer decides what becomes of the stream events.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import msgspec
from msgspec import Raw

from turnlog.aisdk.chunks import UIMessageChunk
from turnlog.aisdk.codec import encode
from turnlog.aisdk.json_text import parse_json
from turnlog.aisdk.parts import FileUIPart, TextUIPart, UIMessage
from turnlog.aisdk.versions import Version
from turnlog.aisdk.writer import ChunkWriter
from turnlog.arguments import checked, checked_fields
from turnlog.chat.runtime import FunctionRuntime, RunRequest
from turnlog.errors import ConflictError, ConversionError, StreamStateError
from turnlog.model.parts import ToolResult
from turnlog.model.stream import (
    DataEvent,
    Pause,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RunFinish,
    RunStart,
    StepStart,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolOutput,
)

logger = logging.getLogger(__name__)

HarnessEvent: TypeAlias = Mapping[str, Any]
"""The JSON object of an event."""

Events: TypeAlias = list[StreamEvent]

NO_USER_MESSAGE = "No user message found"

NO_TEXT = "User message has no text content"

UNKNOWN_ERROR = "Unknown error"

ABORTED = "The agent was aborted."

Unsubscribe: TypeAlias = Callable[[], None]


def _uuid4() -> str:
    return str(uuid.uuid4())


@checked_fields
class TransportOptions(NamedTuple):
    """What of a run gets into the stream (R-O1)."""

    send_reasoning: bool = True
    """Thinking as reasoning parts."""
    send_step_markers: bool = True
    """A step for each node."""
    send_flow_metadata: bool = False
    """The state of the flow as `data-flow-status` parts: `{status, flowName}`."""
    send_node_outputs: bool = False
    """What nodes return as `data-node-output` parts: `{nodeId, runId, output}`."""
    generate_message_id: Callable[[], str] = _uuid4
    """Makes the id of an exchange's message. In a `Chat`, the chat makes it."""


class HarnessRuntime(Protocol):
    """What an Open Harness runtime has to offer."""

    def subscribe(self, listener: Callable[[HarnessEvent], None], /) -> Unsubscribe:
        """Call `listener` with every event, in order, in the event loop's thread, until unsubscribed."""
        ...

    def dispatch(self, command: dict[str, Any], /) -> Awaitable[None] | None:
        """Take a command, here `{"type": "send", "message": …, "parts": […]}`."""
        ...


class OpenHarnessRuntime(FunctionRuntime):
    """A `turnlog.chat.Runtime`: every answer of a chat is one run of its Open Harness runtime.

    Nodes that stream at once take turns in the message: no text gets into another node's part, and a part ends when
    another node's begins.
    """

    @checked
    def __init__(self, open_runtime: Callable[[str], HarnessRuntime], options: TransportOptions | None = None) -> None:
        """Answer chats by Open Harness.

        Args:
            open_runtime: Returns the Open Harness runtime of a chat, by the chat's id. Two chats need two, since a
                runtime sends its events to everybody who has subscribed.
            options: What of a run gets into the stream. The chat makes the ids of messages.
        """
        super().__init__(self._answer_by_harness)
        self._open_runtime = open_runtime
        self._options = options or TransportOptions()

    async def send(self, request: RunRequest) -> None:
        """Send the last user message.

        Raises:
            ConversionError: There is no user message, or no text in it (R-O19).
            ConflictError: A run of the chat has not ended.
        """
        _command(request.messages)
        await super().send(request)

    async def resume(self, request: RunRequest) -> None:
        """Raise ConflictError: a run asks the page nothing."""
        raise ConflictError(f"the run of chat {request.chat_id} waits for no answer")

    async def _answer_by_harness(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        translator = EventTranslator(self._options)
        runtime = self._open_runtime(request.chat_id)
        async with _exchange(runtime, _command(request.messages)) as items:
            while not translator.has_ended:
                item = await items.get()
                if isinstance(item, _Failure):
                    raise item.error
                if not isinstance(item, _Abortion):
                    for event in translator.translate(item):
                        yield event


class OpenHarnessAdapter:
    """Turns the events of one run into chunks; `closed` says whether the run's end has ended the stream.

    A node is a separate lane: nodes that stream at once each have their open part, and no delta gets into another
    node's.
    """

    def __init__(self, version: Version = 7, options: TransportOptions | None = None, *, strict: bool = False) -> None:
        """Write for a release of AI SDK; `strict` raises StreamStateError for an event that would be skipped."""
        self.options = options or TransportOptions()
        self.writer = ChunkWriter(version, message_id=self.options.generate_message_id(), strict=strict)
        self._translator = EventTranslator(self.options, strict=strict)

    @property
    def closed(self) -> bool:
        """Whether the stream has ended."""
        return self.writer.closed

    def write(self, event: HarnessEvent) -> list[UIMessageChunk]:
        """The chunks of one event; none for one that is skipped (R-O14)."""
        if self.closed:
            return []
        events = self._translator.translate(event)
        node = event.get("nodeId") if events else None
        lane = node if isinstance(node, str) else ""
        return [chunk for each in events for chunk in self.writer.write(each, lane)]

    def close(self) -> list[UIMessageChunk]:
        """End the stream of a runtime that sends nothing more."""
        return self.writer.close()


class OpenHarnessTransport:
    """Exchanges messages with a runtime; every exchange has its own stream, subscription and message id (R-O17, R-O25).

    This is AI SDK's `ChatTransport`: it returns chunks and keeps nothing. `OpenHarnessRuntime` serves pages.
    """

    def __init__(
        self, runtime: HarnessRuntime, options: TransportOptions | None = None, *, version: Version = 7
    ) -> None:
        """Use a runtime, for clients of a release of AI SDK."""
        self._runtime = runtime
        self._options = options or TransportOptions()
        self._version: Version = version

    async def send_messages(
        self, messages: Sequence[UIMessage], *, abort_signal: asyncio.Event | None = None
    ) -> AsyncGenerator[UIMessageChunk, None]:
        """Send the last user message, and yield the chunks of the answer as its events arrive.

        Args:
            messages: The chat; all texts and files of its last user message are sent (R-O19).
            abort_signal: Ends the stream when it is set (R-O20).

        Raises:
            ConversionError: There is no user message, or no text in it.
        """
        command = _command(messages)
        adapter = OpenHarnessAdapter(self._version, self._options)
        async with _exchange(self._runtime, command, abort_signal) as items:
            while not adapter.closed:
                for chunk in _chunks_of(await items.get(), adapter):
                    yield chunk

    def reconnect_to_stream(self) -> None:
        """Return None: a run's events are not kept, so nothing can be resumed; over HTTP that is 204 (R-O22)."""
        return None


# -- one exchange with a runtime


class _Failure(NamedTuple):
    """The command could not be dispatched."""

    error: Exception


class _Abortion(NamedTuple):
    """The abort signal was set."""


_Item: TypeAlias = HarnessEvent | _Failure | _Abortion


@asynccontextmanager
async def _exchange(
    runtime: HarnessRuntime, command: dict[str, Any], abort_signal: asyncio.Event | None = None
) -> AsyncGenerator[asyncio.Queue[_Item], None]:
    """Subscribe, dispatch a command, and put what comes into a queue; leaving it unsubscribes (R-O18)."""
    items: asyncio.Queue[_Item] = asyncio.Queue()
    # Before the command is dispatched, so that no event is missed.
    unsubscribe = runtime.subscribe(items.put_nowait)
    tasks = [asyncio.ensure_future(_dispatch(runtime, command, items))]
    if abort_signal is not None:
        tasks.append(asyncio.ensure_future(_wait_for(abort_signal, items)))
    try:
        yield items
    finally:
        unsubscribe()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _dispatch(runtime: HarnessRuntime, command: dict[str, Any], items: asyncio.Queue[_Item]) -> None:
    try:
        waiting = runtime.dispatch(command)
        if inspect.isawaitable(waiting):
            await waiting
    except Exception as error:
        logger.exception("an Open Harness runtime refused a command")
        items.put_nowait(_Failure(error))


async def _wait_for(abort_signal: asyncio.Event, items: asyncio.Queue[_Item]) -> None:
    await abort_signal.wait()
    items.put_nowait(_Abortion())


def _chunks_of(item: _Item, adapter: OpenHarnessAdapter) -> list[UIMessageChunk]:
    if isinstance(item, _Failure):
        return adapter.writer.fail(str(item.error) or type(item.error).__name__)
    if isinstance(item, _Abortion):
        return adapter.writer.abort()
    return adapter.write(item)


def _command(messages: Sequence[UIMessage]) -> dict[str, Any]:
    """The command that sends the last user message: its text, and its parts, so that files are sent too."""
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    if last is None:
        raise ConversionError(NO_USER_MESSAGE)
    text = "\n".join([part.text for part in last.parts if isinstance(part, TextUIPart)])
    if not text:
        raise ConversionError(NO_TEXT)
    sent = [part for part in last.parts if isinstance(part, TextUIPart | FileUIPart)]
    return {"type": "send", "message": text, "parts": parse_json(encode(sent))}


_ENDS = (RunFinish, Pause)


class EventTranslator:
    """Translates the events of one run.

    Outside of a flow the end of the agent is the end of the run. Between `flow:start` and `flow:complete` it is the end
    of one node only, and the flow's own events end the run.
    """

    def __init__(self, options: TransportOptions, *, strict: bool = False) -> None:
        """Translate with these options; `strict` raises StreamStateError for an event that would be skipped (R-O23)."""
        self.has_ended = False
        """Whether the run's own end was translated."""
        self._options = options
        self._strict = strict
        self._parts: dict[tuple[str, str], str] = {}
        """Node and kind -> the part that its deltas belong to."""
        self._streamed: dict[tuple[str, str], list[str]] = {}
        """Node and kind -> the deltas since the last whole text."""
        self._count = 0
        self._calls = _HarnessCalls()
        self._flow: str | None = None
        """Name of the running flow."""
        self._handlers: dict[str, Callable[[HarnessEvent], Events]] = {
            "agent:text:delta": lambda event: self._delta(event, "text"),
            "agent:text": lambda event: self._whole(event, "text"),
            "agent:thinking:delta": lambda event: self._delta(event, "reasoning"),
            "agent:thinking": lambda event: self._whole(event, "reasoning"),
            "agent:tool": self._tool,
            "agent:error": self._error,
            "agent:complete": self._agent_complete,
            "agent:paused": self._agent_paused,
            "agent:aborted": self._agent_aborted,
            "node:start": self._node_start,
            "node:complete": self._node_complete,
            "node:error": self._error,
            "flow:start": self._flow_start,
            "flow:resumed": lambda event: self._flow_status(event, "running"),
            "flow:paused": self._flow_paused,
            "flow:complete": self._flow_complete,
            "flow:aborted": self._flow_aborted,
        }

    def translate(self, event: HarnessEvent) -> Events:
        """The stream events of one event; none for one that is skipped, and after the end of the run."""
        if self.has_ended:
            return []
        try:
            handler = self._handlers.get(_type_of(event))
            found = [] if handler is None else handler(event)
        except _InvalidEvent as error:
            logger.warning("an Open Harness event was skipped: %s", error)
            if self._strict:
                raise StreamStateError(str(error), chunk_type=str(event)[:80]) from None
            return []
        self.has_ended = any(isinstance(each, _ENDS) for each in found)
        return found

    # -- text and reasoning

    def _delta(self, event: HarnessEvent, kind: str) -> Events:
        content = _content_of(event)
        if not content or not self._is_sent(kind):
            return []
        key = (str(event["nodeId"]), kind)
        started = [] if key in self._parts else [self._start(key)]
        self._streamed.setdefault(key, []).append(content)
        return [*started, _PARTS[kind].delta(id=self._parts[key], delta=content)]

    def _whole(self, event: HarnessEvent, kind: str) -> Events:
        """The end of a text that was streamed, or all of a text that was not."""
        content = _content_of(event)
        if not self._is_sent(kind):
            return []
        key = (str(event["nodeId"]), kind)
        begun, streamed = Events(), self._streamed.pop(key, [])
        if key not in self._parts:
            if content in "".join(streamed):
                # Its part had to end before, because another one began in the node.
                return []
            begun = [self._start(key), _PARTS[kind].delta(id=self._parts[key], delta=content)]
        return [*begun, _PARTS[kind].end(id=self._parts.pop(key))]

    def _start(self, key: tuple[str, str]) -> StreamEvent:
        self._end_parts(key[0])
        self._parts[key] = f"{key[1]}-{self._next_number()}"
        return _PARTS[key[1]].start(id=self._parts[key])

    def _next_number(self) -> int:
        """A number that no part and no call of the run has yet."""
        self._count += 1
        return self._count

    def _end_parts(self, node: str) -> None:
        """Forget the open parts of a node: the writer ends them when it gets the next event."""
        for kind in _PARTS:
            self._parts.pop((node, kind), None)

    def _is_sent(self, kind: str) -> bool:
        return kind == "text" or self._options.send_reasoning

    # -- tools

    def _tool(self, event: HarnessEvent) -> Events:
        """A call, its output, or both at once."""
        result = _result_of(event)
        known = self._calls.find(event, has_result=result is not None)
        if known is not None and result is None:
            raise _InvalidEvent(f"call {known.id!r} has its input already")
        call = known or self._calls.begin(event, self._next_number())
        found = Events()
        if known is None:
            self._end_parts(call.node)
            found.append(ToolInputAvailable(tool_call_id=call.id, tool_name=call.name, input=call.input))
        if result is not None:
            self._calls.end(call)
            found.append(ToolOutput(tool_call_id=call.id, result=result))
        return found

    # -- nodes

    def _node_start(self, event: HarnessEvent) -> Events:
        if not self._options.send_step_markers:
            return []
        self._parts.clear()
        return [StepStart()]

    def _node_complete(self, event: HarnessEvent) -> Events:
        if not self._options.send_node_outputs:
            return []
        data = {name: event.get(name) for name in ("nodeId", "runId", "output")}
        self._end_parts(_text_of(event, "nodeId") or "")
        return [DataEvent(name="node-output", data=_to_json(data))]

    def _error(self, event: HarnessEvent) -> Events:
        """An error does not end the run, which may go on (R-O9)."""
        self._parts.clear()
        text = _text_of(event, "message") or _text_of(event, "error") or UNKNOWN_ERROR
        return [StreamError(error_text=text, kind=_text_of(event, "errorType"))]

    # -- ends

    def _agent_complete(self, event: HarnessEvent) -> Events:
        metadata = {name: event[name] for name in ("result", "usage") if event.get(name) is not None}
        if self._flow is None:
            return [RunFinish(stop_reason="stop", metadata=metadata)]
        self._end_parts(str(event["nodeId"]))
        return [RunStart(metadata={"nodes": {str(event["nodeId"]): metadata}})] if metadata else []

    def _agent_paused(self, event: HarnessEvent) -> Events:
        session = _text_of(event, "sessionId")
        start: Events = [] if session is None else [RunStart(metadata={"sessionId": session})]
        return start if self._flow is not None else [*start, Pause()]

    def _agent_aborted(self, event: HarnessEvent) -> Events:
        text = _text_of(event, "reason") or ABORTED
        return [StreamError(error_text=text, kind="aborted"), RunFinish(stop_reason="aborted")]

    def _flow_start(self, event: HarnessEvent) -> Events:
        self._flow = _text_of(event, "flowName") or ""
        return self._flow_status(event, "running")

    def _flow_paused(self, event: HarnessEvent) -> Events:
        status = self._flow_status(event, "paused")
        return status if self._flow is None else [*status, Pause()]

    def _flow_complete(self, event: HarnessEvent) -> Events:
        has_failed = _text_of(event, "status") in ("failed", "aborted")
        reason = "error" if has_failed else "stop"
        return [*self._flow_status(event, "aborted" if has_failed else "complete"), RunFinish(stop_reason=reason)]

    def _flow_aborted(self, event: HarnessEvent) -> Events:
        return [*self._flow_status(event, "aborted"), *self._agent_aborted(event)]

    def _flow_status(self, event: HarnessEvent, status: str) -> Events:
        if not self._options.send_flow_metadata:
            return []
        self._parts.clear()
        data = {"status": status, "flowName": _text_of(event, "flowName") or self._flow or ""}
        return [DataEvent(name="flow-status", data=_to_json(data))]


class _PartEvents(NamedTuple):
    start: type[TextStart | ReasoningStart]
    delta: type[TextDelta | ReasoningDelta]
    end: type[TextEnd | ReasoningEnd]


_PARTS = {
    "text": _PartEvents(TextStart, TextDelta, TextEnd),
    "reasoning": _PartEvents(ReasoningStart, ReasoningDelta, ReasoningEnd),
}


# -- tool calls


class _HarnessCall(NamedTuple):
    id: str
    node: str
    name: str
    input: Raw


class _HarnessCalls:
    """The calls of one run: which event belongs to which call, since not every runtime gives them ids."""

    def __init__(self) -> None:
        self._open: list[_HarnessCall] = []
        """Calls without an output."""
        self._ids = set[str]()
        """Ids of all calls."""

    def find(self, event: HarnessEvent, *, has_result: bool) -> _HarnessCall | None:
        """The open call of an event; None if the event begins one. Raises _InvalidEvent for a call that has ended.

        Without an id, a result belongs to the oldest open call of its node with the same tool and, if the event
        repeats it, the same input.
        """
        given = _text_of(event, "toolCallId")
        if given is not None:
            found = next((call for call in self._open if call.id == given), None)
            if found is None and given in self._ids:
                raise _InvalidEvent(f"call {given!r} has its output already")
            return found
        if not has_result:
            return None
        node, name = str(event["nodeId"]), str(event["toolName"])
        same = [call for call in self._open if (call.node, call.name) == (node, name)]
        if "toolInput" in event:
            wanted = _to_json(event["toolInput"])
            same = [call for call in same if bytes(call.input) == bytes(wanted)]
        return same[0] if same else None

    def begin(self, event: HarnessEvent, number: int) -> _HarnessCall:
        """Begin the call of an event; `number` makes its id unique if it has none."""
        name = str(event["toolName"])
        call_id = _text_of(event, "toolCallId") or f"{event['runId']}-{name}-{number}"
        call = _HarnessCall(call_id, str(event["nodeId"]), name, _to_json(event.get("toolInput", {})))
        self._ids.add(call_id)
        self._open.append(call)
        return call

    def end(self, call: _HarnessCall) -> None:
        """Note that a call has its output."""
        self._open.remove(call)


# -- fields of events


class _InvalidEvent(Exception):
    """An event that breaks the rules."""


_REQUIRED = {"agent:tool": ("toolName",)}


def _type_of(event: object) -> str:
    if not isinstance(event, Mapping):
        raise _InvalidEvent("it is no object")
    fields = cast("HarnessEvent", event)
    kind = _text_of(fields, "type")
    if kind is None:
        raise _InvalidEvent("it has no type")
    required = [*(("runId", "nodeId") if kind.startswith("agent:") else ()), *(_REQUIRED.get(kind, ()))]
    missing = [name for name in required if _text_of(fields, name) is None]
    if missing:
        raise _InvalidEvent(f"{kind} without {' and '.join(missing)}")
    return kind


def _text_of(event: HarnessEvent, name: str) -> str | None:
    """A text that is not empty; None for every other value."""
    value = event.get(name)
    return value if isinstance(value, str) and value else None


def _content_of(event: HarnessEvent) -> str:
    content = event.get("content", "")
    if not isinstance(content, str):
        raise _InvalidEvent(f"{event['type']} whose content is no text")
    return content


def _result_of(event: HarnessEvent) -> ToolResult | None:
    error = event.get("error")
    if error:
        text = error if isinstance(error, str) else bytes(_to_json(error)).decode()
        return ToolResult(id="", status="error", error_text=text)
    if "toolOutput" not in event:
        return None
    return ToolResult(id="", structured=_to_json(event["toolOutput"]))


def _to_json(value: Any) -> Raw:
    try:
        return Raw(_encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise _InvalidEvent(f"it holds no JSON: {error}") from error


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:  # Half a character: JSON can say it, UTF-8 cannot.
        return json.dumps(value, allow_nan=False, sort_keys=True).encode("ascii")
