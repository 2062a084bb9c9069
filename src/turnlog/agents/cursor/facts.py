"""What is known about a conversation beside its messages: its row in the database, or a file next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.cursor import IN_EDITOR, NAME
from turnlog.agents.cursor.databases import META, VALUES, meta_in
from turnlog.agents.cursor.places import session_id
from turnlog.agents.cursor.tools import time_of
from turnlog.agents.decoding import branch_of, list_of, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of
from turnlog.agents.sidecars import SidecarFold
from turnlog.model.session import title_line

_UNNAMED = "New Agent"

_CHAT_FACTS = ("mode", "lastUsedModel")
_COMPOSER_FACTS = ("unifiedMode", "status", "isArchived", "contextUsagePercent", "usageData")
"""Fields that are kept as metadata."""

_BRANCHES = ("prBranchName", "committedToBranch", "lastMessageSentOnBranch", "createdOnBranch")
"""Fields with a branch behind `activeBranch`, in the order in which Cursor itself asks them."""


class FactsFold(StatelessFold):
    """Reads the lines of what is known about a conversation."""

    def __init__(self, source: Source) -> None:
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for line, *_ in ROWS.read(data, offset, 1, changes):
            if line.table == META:
                self._read_chat(changes, line)
            elif line.table == VALUES:
                self._read_composer(changes, line)
            changes.counts.events += 1
        return changes

    def _read_chat(self, changes: Changes, line: RowLine) -> None:
        facts = meta_in(row_of(line))
        change = self._change(changes, text_of(facts.get("name")), line.note)
        change.first_at = time_of(facts.get("createdAt"))
        change.metadata = _kept(facts, _CHAT_FACTS)
        self._link(changes, object_of(facts.get("subagentInfo")))

    def _read_composer(self, changes: Changes, line: RowLine) -> None:
        facts = object_of(value_of(json_in(line, "value") or b"null"))
        repository = object_of(next(iter(list_of(facts.get("trackedGitRepos"))), None))
        workspace = object_of(object_of(facts.get("workspaceIdentifier")).get("uri"))
        folder = text_of(workspace.get("fsPath")) or text_of(repository.get("repoPath"))
        change = self._change(changes, text_of(facts.get("name")), folder)
        change.first_at = time_of(facts.get("createdAt"))
        change.last_at = time_of(facts.get("lastUpdatedAt"))
        active = text_of(object_of(facts.get("activeBranch")).get("branchName"))
        change.git_branch = branch_of(
            active or next(filter(None, (text_of(facts.get(name)) for name in _BRANCHES)), None)
        )
        known = facts | object_of(facts.get("modelConfig")) | {IN_EDITOR: True}
        change.metadata = _kept(known, (*_COMPOSER_FACTS, "modelName", IN_EDITOR))
        try:
            self._link(changes, object_of(msgspec.json.decode(line.note or "{}")))
        except UNREADABLE:
            return

    def _change(self, changes: Changes, title: str | None, folder: str | None) -> SessionChange:
        change = changes.sessions.setdefault(self._session_id, SessionChange(session_id=self._session_id))
        change.cwd = change.project_path = _path_of(folder)
        if title and title != _UNNAMED and title_line(title):
            change.titles["generated"] = title_line(title)
        return change

    def _link(self, changes: Changes, parent: dict[str, Any]) -> None:
        """Link a subagent to the conversation that started it."""
        named = text_of(parent.get("parentComposerId")) or text_of(parent.get("parentAgentId"))
        if named is not None and session_id(named) != self._session_id:
            changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=session_id(named),
                    child_session_id=self._session_id,
                    tool_call_id=text_of(parent.get("toolCallId")),
                )
            )


def _kept(facts: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: facts[name] for name in names if facts.get(name) not in (None, "", {})}
    return {NAME: found} if found else {}


def _path_of(place: str | None) -> str | None:
    """The folder that a path or a `file:` address names."""
    if place is None or not place.startswith("file:"):
        return place if place and Path(place).is_absolute() else None
    try:
        return unquote(urlsplit(place).path) or None
    except ValueError:
        return None


class _Meta(msgspec.Struct, rename="camel"):
    created_at_ms: float | None = None
    updated_at_ms: float | None = None
    title: str | None = None
    cwd: str | None = None


class ChatFileFold(SidecarFold[_Meta]):
    """Reads `meta.json` next to the database of a chat."""

    kind = _Meta
    salvages = True

    def add_facts(self, facts: _Meta, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        session = self._source.session_id or ""
        change = SessionChange(
            session_id=session,
            cwd=facts.cwd,
            project_path=facts.cwd,
            first_at=time_of(facts.created_at_ms),
            last_at=time_of(facts.updated_at_ms),
        )
        if facts.title and title_line(facts.title):
            change.titles["generated"] = title_line(facts.title)
        changes.sessions[session] = change
