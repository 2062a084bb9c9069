"""All rows of one session, as one look at them found them, in one shape for database and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from turnlog.agents.opencode.rows import Row
from turnlog.agents.opencode.session_messages import documents_of
from turnlog.agents.opencode.timeline import Copy, Listed


class MessageRows(NamedTuple):
    """A message with its parts, in order."""

    key: str
    row: Row
    parts: tuple[Row, ...] = ()


class Snapshot(msgspec.Struct, kw_only=True):
    """What there is of a session."""

    session: Row | None = None
    info: Row = {}
    """The session as OpenCode's own JSON tells it."""
    messages: list[MessageRows] = []
    removed: list[MessageRows] = []
    """Messages that the rows no longer have and a record of what happened still tells of."""
    todo: tuple[Row, ...] | None = None
    others: list[tuple[str, str, Row]] = []
    """Other rows by table and key, and the row."""


class Rows(Protocol):
    """Where a session's rows lie."""

    def read(self, events_after: int) -> Snapshot:
        """The rows as they are now, but only those events whose sequence number is greater."""
        ...

    def find_originals(self, messages: Sequence[Listed], session: Row) -> dict[str, Copy]:
        """By key, of which other message each of these is a copy."""
        ...


def listed(message: MessageRows, *, deleted: bool = False) -> Listed:
    """The message as the others need to know it; what cannot be read of it tells nothing."""
    try:
        info, parts = documents_of(message.row, message.parts)
    except (ValueError, RecursionError):
        info, parts = _document(message.row), [_document(part) for part in message.parts]
    return Listed(message.key, info, parts, deleted)


def _document(row: Row) -> Row:
    try:
        return documents_of(row, ())[0]
    except (ValueError, RecursionError):
        return {}


def session_info(row: Row) -> Row:
    """A row of the `session` table in the shape of the JSON that files and exports have."""
    info: Row = {name: row[column] for column, name in _SESSION_COLUMNS.items() if row.get(column) is not None}
    info["time"] = {name: row[column] for column, name in _SESSION_TIMES.items() if row.get(column) is not None}
    for column in _SESSION_JSON:
        if row.get(column) is not None:
            info[column] = _parsed(row[column])
    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}
    summary = {name: row[f"summary_{name}"] for name in _SUMMARY if row.get(f"summary_{name}") is not None}
    if row.get("summary_diffs") is not None:
        summary["diffs"] = _parsed(row["summary_diffs"])
    return info | ({"summary": summary} if summary else {})


_SESSION_COLUMNS = {
    "id": "id",
    "slug": "slug",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "parent_id": "parentID",
    "directory": "directory",
    "path": "path",
    "title": "title",
    "version": "version",
    "agent": "agent",
    "cost": "cost",
}
_SESSION_TIMES = {
    "time_created": "created",
    "time_updated": "updated",
    "time_compacting": "compacting",
    "time_archived": "archived",
}
_SESSION_JSON = ("revert", "permission", "model", "metadata")
_SUMMARY = ("additions", "deletions", "files")


def _parsed(text: Any) -> Any:
    try:
        return msgspec.json.decode(text) if isinstance(text, str) else text
    except (msgspec.MsgspecError, RecursionError):
        return text
