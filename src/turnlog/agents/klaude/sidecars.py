"""The files next to a log: facts about the session (`meta.json`), images, and the outputs of tasks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath

import msgspec

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import (
    Changes,
    Diagnostic,
    LeafTitle,
    Link,
    SessionChange,
    Spill,
)
from turnlog.agents.klaude import NAME
from turnlog.agents.klaude.sources import META, session_id

_MEDIA_TYPES = {
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".log": "text/plain",
    ".png": "image/png",
    ".stderr": "text/plain",
    ".stdout": "text/plain",
    ".webp": "image/webp",
}


class _Child(msgspec.Struct):
    sub_agent_type: str | None = None
    sub_agent_desc: str | None = None


class _Meta(msgspec.Struct):
    work_dir: str | None = None
    title: str | None = None
    name: str | None = None
    created_at: float | None = None
    updated_at: float | None = None
    archived: bool | None = None
    agent_type: str | None = None
    spawn_kind: str | None = None
    parent_session_id: str | None = None
    sub_agent_state: _Child | None = None


class KlaudeSidecarFold:
    """Reads a file that is rewritten whole each time, or an output that grows. It remembers nothing."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        session = self._source.session_id or session_id("")
        if self._source.kind is SourceKind.SPILL:
            path = PurePath(self._source.path)
            media_type = _MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")
            size = offset + len(data)
            changes.spills.append(Spill(session_id=session, name=path.name, media_type=media_type, size=size))
            return changes
        if not self._source.path.endswith(META):
            # A task. The log has its result.
            changes.counts.events = 1
            return changes
        try:
            _read_meta(msgspec.json.decode(data, type=_Meta), session, changes)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=str(error)))
        else:
            changes.counts.events = 1
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""


def _read_meta(meta: _Meta, session: str, changes: Changes) -> None:
    child = meta.sub_agent_state or _Child()
    facts = {
        "archived": meta.archived,
        "agent_type": meta.agent_type or child.sub_agent_type,
        "spawn_kind": meta.spawn_kind,
    }
    known = {name: value for name, value in facts.items() if value}
    change = SessionChange(
        session_id=session,
        project_path=meta.work_dir,
        cwd=meta.work_dir,
        first_at=_to_datetime(meta.created_at),
        last_at=_to_datetime(meta.updated_at),
        metadata={NAME: known} if known else {},
    )
    if meta.name:
        changes.leaf_titles.append(LeafTitle(record_id=session, title=meta.name))
    if meta.title or child.sub_agent_desc:
        change.titles["generated"] = meta.title or child.sub_agent_desc or ""
    changes.sessions[session] = change
    # A session that names itself as parent would be its own subagent.
    if meta.parent_session_id and session_id(meta.parent_session_id) != session:
        parent = session_id(meta.parent_session_id)
        changes.links.append(Link(kind="subagent", parent_session_id=parent, child_session_id=session))


def _to_datetime(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
