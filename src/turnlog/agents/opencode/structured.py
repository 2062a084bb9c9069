"""The facts that OpenCode keeps with a result beside what the model sees, from the record that brought it."""

from __future__ import annotations

from typing import Any

import msgspec

from turnlog.agents.opencode.export import parse_export
from turnlog.agents.opencode.rows import Row, decode_line
from turnlog.agents.opencode.session_messages import documents_of
from turnlog.agents.opencode.tools import structured_of


def structured_result(record: bytes, tool_call_id: str) -> msgspec.Raw | None:
    """`state.metadata` of a call's part: in a line of rows, or in an export."""
    try:
        parts = _parts(record)
    except (ValueError, RecursionError):
        return None
    return next((structured_of(part) for part in parts if part.get("callID") == tool_call_id), None)


def _parts(record: bytes) -> list[Row]:
    try:
        line = decode_line(record)
        return documents_of(line.row, line.parts)[1]
    except msgspec.ValidationError:
        messages: list[Any] = parse_export(record)["messages"]
        return [part for message in messages for part in message.get("parts", ())]
