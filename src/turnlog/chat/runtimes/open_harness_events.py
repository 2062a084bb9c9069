"""The events of an Open Harness runtime (`agent:*`, `node:*`, `flow:*`) as stream events.

An event is the JSON object that the runtime emits. One that breaks the rules is logged and skipped (R-O14), and an
unknown type is ignored. What becomes of the stream events is up to a chunk writer: see
`turnlog.chat.runtimes.open_harness`.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Raw

from turnlog.errors import StreamStateError
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

UNKNOWN_ERROR = "Unknown error"
ABORTED = "The agent was aborted."

_ENDS = (RunFinish, Pause)


def _uuid4() -> str:
    return str(uuid.uuid4())


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
        self._calls = _ToolCalls()
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


class _ToolCall(NamedTuple):
    id: str
    node: str
    name: str
    input: Raw


class _ToolCalls:
    """The calls of one run: which event belongs to which call, since not every runtime gives them ids."""

    def __init__(self) -> None:
        self._open: list[_ToolCall] = []
        """Calls without an output."""
        self._ids = set[str]()
        """Ids of all calls."""

    def find(self, event: HarnessEvent, *, has_result: bool) -> _ToolCall | None:
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

    def begin(self, event: HarnessEvent, number: int) -> _ToolCall:
        """Begin the call of an event; `number` makes its id unique if it has none."""
        name = str(event["toolName"])
        call_id = _text_of(event, "toolCallId") or f"{event['runId']}-{name}-{number}"
        call = _ToolCall(call_id, str(event["nodeId"]), name, _to_json(event.get("toolInput", {})))
        self._ids.add(call_id)
        self._open.append(call)
        return call

    def end(self, call: _ToolCall) -> None:
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
