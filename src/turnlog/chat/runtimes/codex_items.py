"""Items of Codex's app server as StreamEvents: texts and thoughts as they grow, calls, and how calls end.

An item is the one that `codex exec --json` prints, in camel case and with the ids of the session's log.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

import msgspec

from turnlog.agents.codex.stream_records import CALL_ITEMS, ExecItem, result_of, tool_name_of
from turnlog.model.codec import to_json
from turnlog.model.stream import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutput,
)

Json: TypeAlias = dict[str, Any]
Told: TypeAlias = list[StreamEvent]

_TEXTS: Final = {
    "agentMessage": (TextStart, TextDelta, TextEnd),
    "reasoning": (ReasoningStart, ReasoningDelta, ReasoningEnd),
}
"""Items that are words -> the events of their beginning, their growth and their end."""

_PARAGRAPH: Final = "\n\n"


class ItemTeller:
    """Tells the items of one turn."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: dict[str, tuple[str, str]] = {}
        """Id of a text that grows -> its type, and how much of it was told."""
        self._calls: set[str] = set()

    @property
    def is_in_text(self) -> bool:
        """Whether a text or thought has begun and not ended."""
        return bool(self._open)

    def started(self, item: Json) -> Told:
        """What the beginning of an item tells."""
        kind, item_id = str(item.get("type")), str(item.get("id"))
        if kind in _TEXTS:
            return self._begin(item_id, kind)
        return self._call(item_id, _exec_item(item), item) if _snake(kind) in CALL_ITEMS else []

    def grown(self, item_id: str, kind: str, delta: str) -> Told:
        """More of a text or thought; one that was not heard of begins with it."""
        began = self._begin(item_id, kind)
        known = self._open[item_id][1]
        self._open[item_id] = (kind, known + delta)
        return [*began, _TEXTS[kind][1](id=item_id, delta=delta)] if delta else began

    def paragraph(self, item_id: str, number: int) -> Told:
        """A thought goes on in another paragraph."""
        return self.grown(item_id, "reasoning", _PARAGRAPH) if number > 0 else []

    def completed(self, item: Json) -> Told:
        """What the end of an item tells: whatever of it was not told before."""
        kind, item_id = str(item.get("type")), str(item.get("id"))
        if kind in _TEXTS:
            return self._finish_text(item_id, kind, _words_of(item))
        if _snake(kind) not in CALL_ITEMS:
            return []
        known = _exec_item(item)
        told = self._call(item_id, known, item)
        result = result_of(item_id, known, has_ended=True)
        return told if result is None else [*told, ToolOutput(tool_call_id=item_id, result=result)]

    def _begin(self, item_id: str, kind: str) -> Told:
        if item_id in self._open:
            return []
        self._open[item_id] = (kind, "")
        return [_TEXTS[kind][0](id=item_id)]

    def _finish_text(self, item_id: str, kind: str, whole: str) -> Told:
        told = self._begin(item_id, kind)
        known = self._open[item_id][1]
        rest = whole.removeprefix(known) if whole.startswith(known) else ""
        if rest:
            told += self.grown(item_id, kind, rest)
        del self._open[item_id]
        return [*told, _TEXTS[kind][2](id=item_id)]

    def _call(self, item_id: str, known: ExecItem, item: Json) -> Told:
        if item_id in self._calls:
            return []
        self._calls.add(item_id)
        shape, name = CALL_ITEMS[known.type], tool_name_of(known)
        given = {field: item[field] for field in shape.input if field in item}
        input = to_json(item.get("arguments") if known.type == "mcp_tool_call" else given)
        return [
            ToolInputStart(tool_call_id=item_id, tool_name=name, provider_executed=shape.by_provider),
            ToolInputAvailable(tool_call_id=item_id, tool_name=name, input=input, provider_executed=shape.by_provider),
        ]


def _words_of(item: Json) -> str:
    """The whole text of an item that is words; of a thought its summary, where it has one."""
    if item.get("type") == "agentMessage":
        return str(item.get("text") or "")
    return _PARAGRAPH.join(str(piece) for piece in item.get("summary") or item.get("content") or ())


def _exec_item(item: Json) -> ExecItem:
    """The item as `codex exec` prints it; what of it is of another shape is left out."""
    fields = {_snake(name): value for name, value in item.items() if value is not None}
    fields["type"] = _snake(str(item.get("type")))
    try:
        return msgspec.convert(fields, ExecItem)
    except msgspec.ValidationError:
        plain = ("id", "type", "command", "status", "server", "tool", "aggregated_output")
        return msgspec.convert({name: str(fields[name]) for name in plain if name in fields}, ExecItem)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
