"""The files next to a log: facts about the session (`meta.json`), images, and the outputs of tasks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath

import msgspec

from turnlog.agents.base import SourceKind
from turnlog.agents.changes import (
    ANSWERED_BY,
    Changes,
    LeafTitle,
    Link,
    SessionChange,
    Spill,
)
from turnlog.agents.klaude import NAME
from turnlog.agents.klaude.sources import META, session_id
from turnlog.agents.sidecars import SidecarFold

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
    model_name: str | None = None
    archived: bool | None = None
    agent_type: str | None = None
    spawn_kind: str | None = None
    parent_session_id: str | None = None
    sub_agent_state: _Child | None = None


class KlaudeSidecarFold(SidecarFold[_Meta]):
    """Reads the facts of one session, or an output that grows."""

    kind = _Meta

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        if self._source.path.endswith(META) and self._source.kind is not SourceKind.SPILL:
            return super().feed(data, offset)
        changes = Changes()
        if self._source.kind is SourceKind.SPILL:
            path = PurePath(self._source.path)
            media_type = _MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")
            size = offset + len(data)
            changes.spills.append(Spill(session_id=self._session_id, name=path.name, media_type=media_type, size=size))
        else:
            # A task. The log has its result.
            changes.counts.events = 1
        return changes

    def add_facts(self, facts: _Meta, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        _read_meta(facts, self._session_id, changes)

    @property
    def _session_id(self) -> str:
        return self._source.session_id or session_id("")


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
        metadata=({NAME: known} if known else {}) | ({ANSWERED_BY: meta.model_name} if meta.model_name else {}),
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
