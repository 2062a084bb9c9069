"""The tool calls of an Open Harness run: which event is of which, where not every runtime gives them ids."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from turnlog.aisdk.open_harness_events import BadEvent, RuntimeEvent, exact_json, text_of


class ToolCall(NamedTuple):
    """A call, by its id, and what else tells that an event is of it."""

    id: str
    node: str
    name: str
    input: Raw


class ToolCalls:
    """The calls of one run: those that wait for their output, and the ids of all."""

    def __init__(self) -> None:
        self._open: list[ToolCall] = []
        self._ids = set[str]()

    def known(self, event: RuntimeEvent, *, has_result: bool) -> ToolCall | None:
        """The open call that an event is of; None where it begins one. Raises BadEvent for a call that has ended."""
        given = text_of(event, "toolCallId")
        if given is not None:
            found = next((call for call in self._open if call.id == given), None)
            if found is None and given in self._ids:
                raise BadEvent(f"call {given!r} has its output already")
            return found
        if not has_result:
            return None
        node, name = str(event["nodeId"]), str(event["toolName"])
        same = [call for call in self._open if (call.node, call.name) == (node, name)]
        if "toolInput" in event:
            wanted = exact_json(event["toolInput"])
            same = [call for call in same if bytes(call.input) == bytes(wanted)]
        return same[0] if same else None

    def begin(self, event: RuntimeEvent, number: int) -> ToolCall:
        """The call that an event begins; `number` tells it from others where it has no id."""
        name = str(event["toolName"])
        call_id = text_of(event, "toolCallId") or f"{event['runId']}-{name}-{number}"
        call = ToolCall(call_id, str(event["nodeId"]), name, exact_json(event.get("toolInput", {})))
        self._ids.add(call_id)
        self._open.append(call)
        return call

    def end(self, call: ToolCall) -> None:
        """Note that a call has its output."""
        self._open.remove(call)
