"""The facts next to a subagent's log: which call of which session started it, and with which model."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.changes import ANSWERED_BY, Changes, Link, SessionChange
from turnlog.agents.decoding import aware
from turnlog.agents.qwen_code import NAME
from turnlog.agents.qwen_code.sources import session_id
from turnlog.agents.sidecars import SidecarFold


class _Meta(msgspec.Struct, rename="camel"):
    agent_id: str | None = None
    agent_type: str | None = None
    description: str | None = None
    parent_session_id: str | None = None
    parent_agent_id: str | None = None
    tool_use_id: str | None = None
    created_at: datetime | None = None
    last_updated_at: datetime | None = None
    status: str | None = None
    is_backgrounded: bool | None = None
    depth: int | None = None
    model: str | None = None


class QwenSidecarFold(SidecarFold[_Meta]):
    """Reads the facts of one subagent."""

    kind = _Meta

    def add_facts(self, facts: _Meta, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        _read_meta(facts, self._source.session_id or session_id(Path(self._source.path).stem), changes)


def _read_meta(meta: _Meta, session: str, changes: Changes) -> None:
    facts = {
        "agent_type": meta.agent_type,
        "status": meta.status,
        "is_backgrounded": meta.is_backgrounded,
        "depth": meta.depth,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    metadata: dict[str, Any] = {NAME: known} if known else {}
    if meta.model:
        metadata[ANSWERED_BY] = meta.model
    change = SessionChange(
        session_id=session,
        first_at=None if meta.created_at is None else aware(meta.created_at),
        last_at=None if meta.last_updated_at is None else aware(meta.last_updated_at),
        metadata=metadata,
    )
    if meta.description:
        change.titles["generated"] = meta.description
    changes.sessions[session] = change
    if not meta.parent_session_id:
        return
    inner = f".{meta.parent_agent_id}" if meta.parent_agent_id else ""
    parent = session_id(meta.parent_session_id + inner)
    # A subagent that names itself as its parent would contain itself.
    if parent != session:
        link = Link(
            kind="subagent", parent_session_id=parent, child_session_id=session, tool_call_id=meta.tool_use_id or None
        )
        changes.links.append(link)
