"""Open Harness' runtime events (`agent:*`, `node:*`, `flow:*`) as a UI message stream.

The adapter says what each event means; `ChunkWriter` keeps the order valid. A node is a lane of its own: nodes that
stream at once each have their open part, and no delta gets into another node's. Events come as the JSON objects that
the runtime emits; one that breaks the rules is logged and skipped.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import NamedTuple

from turnlog.aisdk.open_harness_calls import ToolCalls
from turnlog.aisdk.open_harness_events import (
    BadEvent,
    RuntimeEvent,
    content_of,
    exact_json,
    kind_of,
    result_of,
    text_of,
)
from turnlog.aisdk.versions import Version
from turnlog.aisdk.writer import ChunkWriter
from turnlog.aisdk.writer_values import Chunks
from turnlog.errors import StreamStateError
from turnlog.model import stream as events
from turnlog.model.stream import StreamEvent

logger = logging.getLogger(__name__)

UNKNOWN_ERROR = "Unknown error"
ABORTED = "The agent was aborted."


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


class OpenHarnessAdapter:
    """Turns the events of one run into chunks; `closed` tells that the run's own end has ended the stream.

    Outside of a flow the agent's end is the run's. Between `flow:start` and `flow:complete` it is the end of one node,
    and the flow's own events end the stream.
    """

    def __init__(self, version: Version = 7, options: TransportOptions | None = None, *, strict: bool = False) -> None:
        """Write for a release of AI SDK; `strict` raises StreamStateError where an event would be skipped (R-O23)."""
        self.options = options or TransportOptions()
        self.writer = ChunkWriter(version, message_id=self.options.generate_message_id(), strict=strict)
        self._strict = strict
        self._parts: dict[tuple[str, str], str] = {}
        """Node and kind -> the part that its deltas belong to."""
        self._streamed: dict[tuple[str, str], list[str]] = {}
        """Node and kind -> the deltas since the last whole text."""
        self._count = 0
        self._calls = ToolCalls()
        self._flow: str | None = None

    @property
    def closed(self) -> bool:
        """Whether the stream has ended."""
        return self.writer.closed

    def write(self, event: RuntimeEvent) -> Chunks:
        """The chunks of one runtime event; none for one that is skipped (R-O14)."""
        if self.closed:
            return []
        try:
            kind = kind_of(event)
            handler = _HANDLERS.get(kind)
            written = [] if handler is None else handler(self, event)
        except BadEvent as refusal:
            logger.warning("an Open Harness event was skipped: %s", refusal)
            if self._strict:
                raise StreamStateError(str(refusal), chunk_type=str(event)[:80]) from None
            return []
        node = text_of(event, "nodeId") or ""
        return [chunk for each in written for chunk in self.writer.write(each, node)]

    def close(self) -> Chunks:
        """End the stream of a runtime that says nothing more."""
        return self.writer.close()

    # Text and reasoning

    def _delta(self, event: RuntimeEvent, kind: str) -> list[StreamEvent]:
        content = content_of(event)
        if not content or not self._is_sent(kind):
            return []
        key = (str(event["nodeId"]), kind)
        started = [] if key in self._parts else [self._start(key)]
        self._streamed.setdefault(key, []).append(content)
        return [*started, _PARTS[kind].delta(id=self._parts[key], delta=content)]

    def _whole(self, event: RuntimeEvent, kind: str) -> list[StreamEvent]:
        """The end of what streamed; all of it where nothing did."""
        content = content_of(event)
        if not self._is_sent(kind):
            return []
        key = (str(event["nodeId"]), kind)
        begun, streamed = list[StreamEvent](), self._streamed.pop(key, [])
        if key not in self._parts:
            if content in "".join(streamed):
                return []
            begun = [self._start(key), _PARTS[kind].delta(id=self._parts[key], delta=content)]
        return [*begun, _PARTS[kind].end(id=self._parts.pop(key))]

    def _start(self, key: tuple[str, str]) -> StreamEvent:
        self._leave_parts(key[0])
        self._parts[key] = f"{key[1]}-{self._next()}"
        return _PARTS[key[1]].start(id=self._parts[key])

    def _next(self) -> int:
        """A number that no part and no call of the run has yet."""
        self._count += 1
        return self._count

    def _leave_parts(self, node: str) -> None:
        """Something else begins in a node, which ends what is open there."""
        for kind in _PARTS:
            self._parts.pop((node, kind), None)

    def _is_sent(self, kind: str) -> bool:
        return kind == "text" or self.options.send_reasoning

    def _text_delta(self, event: RuntimeEvent) -> list[StreamEvent]:
        return self._delta(event, "text")

    def _text(self, event: RuntimeEvent) -> list[StreamEvent]:
        return self._whole(event, "text")

    def _thinking_delta(self, event: RuntimeEvent) -> list[StreamEvent]:
        return self._delta(event, "reasoning")

    def _thinking(self, event: RuntimeEvent) -> list[StreamEvent]:
        return self._whole(event, "reasoning")

    # Tools

    def _tool(self, event: RuntimeEvent) -> list[StreamEvent]:
        """A call, its output, or both at once; events of one call are told by its id, or else by name and input."""
        result = result_of(event)
        known = self._calls.known(event, has_result=result is not None)
        if known is not None and result is None:
            raise BadEvent(f"call {known.id!r} has its input already")
        call = known or self._calls.begin(event, self._next())
        written = list[StreamEvent]()
        if known is None:
            self._leave_parts(call.node)
            written.append(events.ToolInputAvailable(tool_call_id=call.id, tool_name=call.name, input=call.input))
        if result is not None:
            self._calls.end(call)
            written.append(events.ToolOutput(tool_call_id=call.id, result=result))
        return written

    # Nodes

    def _node_start(self, event: RuntimeEvent) -> list[StreamEvent]:
        if not self.options.send_step_markers:
            return []
        self._parts.clear()
        return [events.StepStart()]

    def _node_complete(self, event: RuntimeEvent) -> list[StreamEvent]:
        if not self.options.send_node_outputs:
            return []
        told = {name: event.get(name) for name in ("nodeId", "runId", "output")}
        self._leave_parts(text_of(event, "nodeId") or "")
        return [events.DataEvent(name="node-output", data=exact_json(told))]

    def _error(self, event: RuntimeEvent) -> list[StreamEvent]:
        """The run may go on (R-O9): only its own end closes the stream."""
        self._parts.clear()
        text = text_of(event, "message") or text_of(event, "error") or UNKNOWN_ERROR
        return [events.StreamError(error_text=text, kind=text_of(event, "errorType"))]

    # The end

    def _agent_complete(self, event: RuntimeEvent) -> list[StreamEvent]:
        metadata = {name: event[name] for name in ("result", "usage") if event.get(name) is not None}
        if self._flow is None:
            return [events.RunFinish(stop_reason="stop", metadata=metadata)]
        self._leave_parts(str(event["nodeId"]))
        return [events.RunStart(metadata={"nodes": {str(event["nodeId"]): metadata}})] if metadata else []

    def _agent_paused(self, event: RuntimeEvent) -> list[StreamEvent]:
        session = text_of(event, "sessionId")
        told: list[StreamEvent] = [] if session is None else [events.RunStart(metadata={"sessionId": session})]
        return told if self._flow is not None else [*told, events.Pause()]

    def _agent_aborted(self, event: RuntimeEvent) -> list[StreamEvent]:
        text = text_of(event, "reason") or ABORTED
        return [events.StreamError(error_text=text, kind="aborted"), events.RunFinish(stop_reason="aborted")]

    def _flow_start(self, event: RuntimeEvent) -> list[StreamEvent]:
        self._flow = text_of(event, "flowName") or ""
        return self._flow_status(event, "running")

    def _flow_resumed(self, event: RuntimeEvent) -> list[StreamEvent]:
        return self._flow_status(event, "running")

    def _flow_paused(self, event: RuntimeEvent) -> list[StreamEvent]:
        status = self._flow_status(event, "paused")
        return status if self._flow is None else [*status, events.Pause()]

    def _flow_complete(self, event: RuntimeEvent) -> list[StreamEvent]:
        failed = text_of(event, "status") in ("failed", "aborted")
        reason = "error" if failed else "stop"
        return [*self._flow_status(event, "aborted" if failed else "complete"), events.RunFinish(stop_reason=reason)]

    def _flow_aborted(self, event: RuntimeEvent) -> list[StreamEvent]:
        return [*self._flow_status(event, "aborted"), *self._agent_aborted(event)]

    def _flow_status(self, event: RuntimeEvent, status: str) -> list[StreamEvent]:
        if not self.options.send_flow_metadata:
            return []
        self._parts.clear()
        told = {"status": status, "flowName": text_of(event, "flowName") or self._flow or ""}
        return [events.DataEvent(name="flow-status", data=exact_json(told))]


class _PartEvents(NamedTuple):
    start: type[events.TextStart | events.ReasoningStart]
    delta: type[events.TextDelta | events.ReasoningDelta]
    end: type[events.TextEnd | events.ReasoningEnd]


_PARTS = {
    "text": _PartEvents(events.TextStart, events.TextDelta, events.TextEnd),
    "reasoning": _PartEvents(events.ReasoningStart, events.ReasoningDelta, events.ReasoningEnd),
}

# The table is the class's own, and can stand only behind it.
# pyright: reportPrivateUsage=false
_HANDLERS: dict[str, Callable[[OpenHarnessAdapter, RuntimeEvent], list[StreamEvent]]] = {
    "agent:text:delta": OpenHarnessAdapter._text_delta,
    "agent:text": OpenHarnessAdapter._text,
    "agent:thinking:delta": OpenHarnessAdapter._thinking_delta,
    "agent:thinking": OpenHarnessAdapter._thinking,
    "agent:tool": OpenHarnessAdapter._tool,
    "agent:error": OpenHarnessAdapter._error,
    "agent:complete": OpenHarnessAdapter._agent_complete,
    "agent:paused": OpenHarnessAdapter._agent_paused,
    "agent:aborted": OpenHarnessAdapter._agent_aborted,
    "node:start": OpenHarnessAdapter._node_start,
    "node:complete": OpenHarnessAdapter._node_complete,
    "node:error": OpenHarnessAdapter._error,
    "flow:start": OpenHarnessAdapter._flow_start,
    "flow:resumed": OpenHarnessAdapter._flow_resumed,
    "flow:paused": OpenHarnessAdapter._flow_paused,
    "flow:complete": OpenHarnessAdapter._flow_complete,
    "flow:aborted": OpenHarnessAdapter._flow_aborted,
}
"""Event type -> what it means; every other type says nothing to a client."""
