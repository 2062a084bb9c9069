"""Short ways to write the events of a history, and to say what a replay shows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Raw

from turnlog.model import (
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Message,
    MessageEvent,
    Part,
    ResultStatus,
    Role,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
)
from turnlog.replay import ReplayEvent

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def message(identity: str, role: Role, *parts: Part | str, **fields: Any) -> MessageEvent:
    contents = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return MessageEvent(message=Message(id=identity, role=role, parts=contents, **fields))


def user(*parts: Part | str, **fields: Any) -> MessageEvent:
    return message("u", "user", *parts, **fields)


def answer(*parts: Part | str, id: str = "a", **fields: Any) -> MessageEvent:
    return message(id, "assistant", *parts, **fields)


def call(identity: str, arguments: str = "{}") -> ToolCallPart:
    return ToolCallPart(tool_call_id=identity, tool_name="Bash", input=Raw(arguments.encode()))


def result(
    identity: str, status: ResultStatus = "success", *content: Part, of: str | None = "a", **fields: Any
) -> ToolResultEvent:
    answered = ToolResult(id=f"{identity}:0", status=status, content=content or (TextPart(text="out"),), **fields)
    return ToolResultEvent(tool_call_id=identity, tool_name="Bash", message_id=of, result=answered)


def interrupt(identity: str = "i", **fields: Any) -> InterruptEvent:
    return InterruptEvent(id=identity, **fields)


def image(name: str = "a.png") -> FilePart:
    return FilePart(media_type="image/png", filename=name, data=b"png")


def placed(events: Iterable[HistoryEvent]) -> list[HistoryEvent]:
    """The events at positions in their order."""
    from msgspec.structs import replace

    return [replace(event, position=position) for position, event in enumerate(events)]


def kinds(shown: Iterable[ReplayEvent]) -> list[str]:
    return [str(event.__struct_config__.tag) for event in shown]
