"""What `opencode export` prints, `{info, messages: [{info, parts}]}`, read as the row log of such rows is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, Diagnostic
from turnlog.agents.opencode.fold import read_line
from turnlog.agents.opencode.fold_context import OpenCodeContext
from turnlog.agents.opencode.row_log import new_lines
from turnlog.agents.opencode.rows import (
    Row,
    decode_line,
    document_of,
    list_of,
    object_of,
    session_id,
    time_of,
    to_datetime,
)
from turnlog.agents.opencode.snapshot import MessageRows, Snapshot, documents_of
from turnlog.agents.opencode.timeline import ListedMessage, MessageCopy
from turnlog.agents.opencode.tools import metadata_of_result

_EXPORT_HEAD = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses')

_REDACTED = "[redacted:"


class ExportFold:
    """Reads one export, whole. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`. The record of every message is the whole file."""
        try:
            export = parse_export(data)
        except (ValueError, RecursionError) as error:
            changes = Changes()
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), reason=f"not an export: {error}"))
            changes.counts.unreadable = 1
            return changes
        rows = ExportSession(export)
        external = str(rows.info.get("id") or "")
        source = msgspec.structs.replace(self._source, session_id=session_id(external))
        context = OpenCodeContext(source, "")
        for line in new_lines(rows, ()).lines:
            read_line(context, line, (0, len(data)))
        if copies := rows.older_than_session():
            _leave_to_original(context.changes, copies, to_datetime(time_of(rows.info, "created")))
        return context.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""


class ExportSession:
    """The rows in an export. See `snapshot.Rows`."""

    def __init__(self, export: Row) -> None:
        """Read the session and its messages. Redacted facts of a sanitized export (title, folder) count as unknown."""
        info = object_of(export.get("info"))
        self.info = {name: value for name, value in info.items() if not str(value).startswith(_REDACTED)}
        self._messages = [object_of(message) for message in list_of(export.get("messages"))]

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.Rows.read`."""
        return Snapshot(
            session=_row(self.info),
            info=self.info,
            messages=[
                MessageRows(
                    str(object_of(message.get("info")).get("id") or ""),
                    _row(object_of(message.get("info"))),
                    tuple(_row(object_of(part)) for part in list_of(message.get("parts"))),
                )
                for message in self._messages
            ],
        )

    def older_than_session(self) -> set[str]:
        """Ids of the messages that a fork copied, which keep their time."""
        infos = [object_of(message.get("info")) for message in self._messages]
        return {str(info.get("id")) for info in infos if time_of(info, "created") < time_of(self.info, "created")}

    def find_originals(self, messages: Sequence[ListedMessage], session: Row) -> dict[str, MessageCopy]:
        """None: an export has only one session."""
        return {}


def is_export(head: bytes) -> bool:
    """Whether a file begins as an export does."""
    return _EXPORT_HEAD.match(head) is not None


def parse_export(data: bytes) -> Row:
    """The JSON of an export. Raises ValueError for anything else."""
    found = document_of({"text": data.decode(errors="replace")})
    if not isinstance(found.get("info"), dict) or not isinstance(found.get("messages"), list):
        raise ValueError("it has no info and messages")
    return found


def _leave_to_original(changes: Changes, copies: set[str], began: datetime | None) -> None:
    """Drop what belongs to the originals of a fork's copies: the links to subagents, and the time of the session."""
    changes.links = [link for link in changes.links if link.message_id not in copies]
    for session in changes.sessions.values():
        session.first_at = began


def _row(info: Row) -> Row:
    return {"id": info.get("id"), "data": msgspec.json.encode(info).decode()}


def structured_result(record: bytes, tool_call_id: str) -> msgspec.Raw | None:
    """The `state.metadata` of a call: OpenCode's own facts about its result. None when there are none.

    Args:
        record: A line of a row log, or an export.
        tool_call_id: The call's id.
    """
    try:
        parts = _parts(record)
    except (ValueError, RecursionError):
        return None
    return next((metadata_of_result(part) for part in parts if part.get("callID") == tool_call_id), None)


def _parts(record: bytes) -> list[Row]:
    try:
        line = decode_line(record)
        return documents_of(line.row, line.parts)[1]
    except msgspec.ValidationError:
        messages: list[Any] = parse_export(record)["messages"]
        return [part for message in messages for part in message.get("parts", ())]
