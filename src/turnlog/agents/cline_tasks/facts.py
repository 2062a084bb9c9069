"""What is known about a task: its folder, title and parent, from the files about it."""

from __future__ import annotations

from typing import Any

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.cline_tasks.contents import time_of
from turnlog.agents.cline_tasks.task_files import HISTORY, ITEM, METADATA
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, json_in
from turnlog.model.session import title_from

_FACTS = ("mode", "status", "number", "isFavorited", "toolProtocol", "apiConfigName", "modelId")
"""Fields that are kept as metadata."""


class TaskFactsFold(StatelessFold):
    """Reads the lines of what is known about a task."""

    def __init__(self, source: Source) -> None:
        self._agent = source.agent
        self._session_id = source.session_id or f"{source.agent}:"

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for line, *_ in ROWS.read(data, offset, 1, changes):
            facts = _object_in(line)
            if line.table in (ITEM, HISTORY):
                self._read_item(changes, facts, line.note)
            elif line.table == METADATA:
                self._read_metadata(changes, facts)
            changes.counts.events += 1
        return changes

    def _change(self, changes: Changes) -> SessionChange:
        return changes.sessions.setdefault(self._session_id, SessionChange(session_id=self._session_id))

    def _read_item(self, changes: Changes, facts: dict[str, Any], call: str | None) -> None:
        change = self._change(changes)
        change.cwd = text_of(facts.get("workspace")) or text_of(facts.get("cwdOnTaskInitialization")) or change.cwd
        change.project_path = change.cwd
        change.last_at = time_of(facts.get("ts")) or change.last_at
        title = title_from(text_of(facts.get("title")) or "")
        if title:
            change.titles["custom"] = title
        kept = {name: facts[name] for name in _FACTS if facts.get(name) not in (None, "")}
        if kept:
            change.metadata = {self._agent: object_of(change.metadata.get(self._agent)) | kept}
        parent = text_of(facts.get("parentTaskId"))
        if parent is not None and f"{self._agent}:{parent}" != self._session_id:
            changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=f"{self._agent}:{parent.replace('/', '_')}",
                    child_session_id=self._session_id,
                    tool_call_id=call,
                    # The parent lists its subtasks in the order of its calls; no file names the call.
                    inferred=call is not None,
                )
            )

    def _read_metadata(self, changes: Changes, facts: dict[str, Any]) -> None:
        newest = object_of(next(iter(reversed(list_of(facts.get("environment_history")))), None))
        version = text_of(newest.get("cline_version"))
        if version is not None:
            self._change(changes).agent_version = version


def _object_in(line: RowLine) -> dict[str, Any]:
    try:
        return object_of(msgspec.json.decode(json_in(line, "item") or json_in(line, "text") or b"{}"))
    except UNREADABLE:
        return {}
