"""OpenCode's facts about a session -> what the model knows of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from turnlog.agents.changes import SessionChange
from turnlog.agents.opencode.ids import NAME, moment, time_position, whole
from turnlog.agents.opencode.rows import Row, bytes_of, document_of, list_of, object_of, text_of
from turnlog.agents.opencode.snapshot import session_info

_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
"""What a session is called until it has a title."""

_MODELLED = frozenset({"id", "title", "version", "time", "directory", "cost", "tokens", "parentID"})
_LATER = ("revert", "share")
"""Facts that may go again: told also when they are not there."""


def read_session(row: Row, session_id: str) -> tuple[SessionChange, str | None] | None:
    """What a session's row or file tells, and the session that started it; None when it cannot be read."""
    try:
        info = session_info(row) if "time_created" in row else document_of(row)
    except (ValueError, RecursionError):
        return None
    return change_of(info, session_id), text_of(info.get("parentID"))


def change_of(info: Row, session_id: str) -> SessionChange:
    """What the JSON of a session tells."""
    time = object_of(info.get("time"))
    title, cost = text_of(info.get("title")), info.get("cost")
    updated = whole(time.get("updated"))
    facts = {name: value for name, value in info.items() if name not in _MODELLED}
    facts |= {name: time[name] for name in ("archived", "compacting") if time.get(name)}
    facts |= {name: None for name in _LATER if name not in facts}
    facts["summary"] = _without_texts(facts["summary"]) if "summary" in facts else None
    return SessionChange(
        session_id=session_id,
        position=time_position(updated),
        project_path=text_of(info.get("directory")),
        cwd=text_of(info.get("directory")),
        agent_version=text_of(info.get("version")),
        titles={"generated": title} if title and not _DEFAULT_TITLE.match(title) else {},
        first_at=moment(whole(time.get("created")) or None),
        last_at=moment(updated or None),
        reported_cost=float(cost) if isinstance(cost, int | float) and cost > 0 else None,
        metadata={NAME: {name: facts[name] for name in sorted(facts) if facts[name] is not None or name in _LATER}},
    )


def todo_facts(rows: Sequence[Row]) -> tuple[int, list[Any]]:
    """The list of things to do, and the position at which it was last written."""
    items: list[Any] = []
    for row in rows:
        if "content" in row:
            items.append({name: row[name] for name in ("content", "status", "priority") if name in row})
        else:
            found = _list(row)
            items += found
    return time_position(max((whole(row.get("time_updated")) for row in rows), default=0)), items


def project_facts(row: Row) -> Row:
    """The project as metadata of its sessions."""
    try:
        info = row if "worktree" in row else document_of(row)
    except (ValueError, RecursionError):
        return {}
    return {name: info[name] for name in ("id", "worktree", "vcs", "name") if info.get(name) is not None}


def _list(row: Row) -> list[Any]:
    data = bytes_of(row.get("text"))
    try:
        found: object = msgspec.json.decode(data or b"[]")
    except (msgspec.MsgspecError, RecursionError):
        return []
    return list_of(found)


def _without_texts(summary: object) -> Row:
    return {name: value for name, value in object_of(summary).items() if name != "diffs"}
