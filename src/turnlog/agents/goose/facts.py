"""What is known about a session of Goose beside its messages: its row, and what its calls used."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.databases import Row
from turnlog.agents.decoding import aware, object_of, text_of, value_of
from turnlog.agents.goose import NAME
from turnlog.agents.goose.contents import usage_of
from turnlog.agents.goose.database import (
    AWAITED,
    IN_MESSAGE,
    IN_MESSAGES,
    LEDGER,
    SESSIONS,
    SessionNote,
    is_carried,
    note_in,
    session_id,
)
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of
from turnlog.model import SessionTotal, Usage
from turnlog.model.session import title_given
from turnlog.model.usage import sum_usage

_FACTS = ("session_type", "provider_name", "goose_mode", "schedule_id", "project_id", "archived_at")
"""Columns of a session that are kept as metadata."""

SUBAGENT = "sub_agent"
"""The type of a session that a call started."""

COMPACTION = "compaction"
"""The task of calls that wrote a summary."""

UNCOUNTED = "accumulated"
"""The name of the total of calls that are not counted one by one."""

_ACCUMULATED = {
    "inputTokens": "accumulated_input_tokens",
    "outputTokens": "accumulated_output_tokens",
    "cacheReadTokens": "accumulated_cache_read_tokens",
    "cacheWriteTokens": "accumulated_cache_write_tokens",
}
"""Counts of a call -> the columns with their sums."""

_USED = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
}
"""Counts of a call -> the columns of a row of what was used."""


class GooseFactsFold(StatelessFold):
    """Reads lines that are written anew each time."""

    def __init__(self, source: Source) -> None:
        """Read the facts of one session."""
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        lines = [line for line, *_ in ROWS.read(data, offset, 1, changes)]
        used = [(row_of(line), line.note) for line in lines if line.table == LEDGER]
        # What was carried over is a part of the session's sum that no call has.
        used = [(row, note) for row, note in used if note in (IN_MESSAGE, IN_MESSAGES) or not is_carried(row)]
        for line in lines:
            changes.counts.events += 1
            if line.table == SESSIONS:
                self._read_session(changes, line, [row for row, _ in used])
        totals = _totals_of([row for row, note in used if note not in (IN_MESSAGE, IN_MESSAGES, AWAITED)])
        if totals:
            self._change(changes).totals.update(totals)
        return changes

    def _change(self, changes: Changes) -> SessionChange:
        return changes.sessions.setdefault(self._session_id, SessionChange(session_id=self._session_id))

    def _read_session(self, changes: Changes, line: RowLine, used: list[Row]) -> None:
        row, note = row_of(line), note_in(line)
        change = self._change(changes)
        folder = text_of(row.get("working_dir"))
        change.cwd = change.project_path = folder
        change.first_at = time_of(row.get("created_at"))
        change.last_at = time_of(row.get("updated_at"))
        change.metadata = _kept(row)
        # Before 1.11 the name of a session was in its description.
        title = title_given(text_of(row.get("name")) or text_of(row.get("description")) or "")
        if title:
            change.titles["custom" if row.get("user_set_name") else "generated"] = title
        cost = row.get("accumulated_cost")
        if isinstance(cost, int | float) and 0 < cost < 1e9:
            change.reported_cost = float(cost)
        if used or not note.is_counted:
            change.totals.update(_uncounted(row, model_of(line), used))
        self._add_links(changes, row, note)

    def _add_links(self, changes: Changes, row: Row, note: SessionNote) -> None:
        is_subagent = row.get("session_type") == SUBAGENT
        if note.parent is not None and session_id(note.parent) != self._session_id:
            changes.links.append(
                Link(
                    kind="subagent" if is_subagent else "continuation",
                    parent_session_id=session_id(note.parent),
                    child_session_id=self._session_id,
                    tool_call_id=note.call,
                )
            )
        elif note.origin is not None:
            changes.links.append(
                Link(
                    kind="fork",
                    parent_session_id=session_id(note.origin),
                    child_session_id=self._session_id,
                    inferred=True,
                )
            )


def _kept(row: Row) -> dict[str, Any]:
    found = {name: row[name] for name in _FACTS if row.get(name) not in (None, "")}
    return {NAME: found} if found else {}


def model_of(line: RowLine) -> str | None:
    """The model in the settings of a session."""
    return text_of(object_of(value_of(json_in(line, "model_config_json") or b"null")).get("model_name"))


def _uncounted(row: Row, model: str | None, used: list[Row]) -> dict[str, SessionTotal]:
    """What a session has used in all without what is counted for single calls: that of older versions."""
    counted = _sums(used)
    left = {name: _difference(row.get(column), counted[name]) for name, column in _ACCUMULATED.items()}
    usage = usage_of(left)
    if usage is None or not usage.total:
        return {}
    if not usage.cache_read:
        # What was read from a cache is inside the input; newer versions then write 0.
        usage = msgspec.structs.replace(
            usage, cache_read=None, cache_write=usage.cache_write or None, exactness="estimated"
        )
    return {UNCOUNTED: SessionTotal(model=model, usage=usage)}


def _sums(rows: list[Row]) -> dict[str, int]:
    return {name: sum(_count(row.get(column)) or 0 for row in rows) for name, column in _USED.items()}


def _difference(value: object, counted: int) -> int | None:
    count = _count(value)
    return None if count is None else max(0, count - counted)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1 << 53 else None


def _totals_of(rows: list[Row]) -> dict[str, SessionTotal]:
    """What was used by calls that are in no message, by model and task."""
    groups: dict[tuple[str | None, str | None], list[Usage | None]] = {}
    for row in rows:
        key = text_of(row.get("model")), COMPACTION if row.get("is_compaction") else None
        groups.setdefault(key, []).append(usage_of({name: row.get(column) for name, column in _USED.items()}))
    return {
        f"{model or ''}:{task or ''}": SessionTotal(
            model=model, usage=sum_usage(usages).usage, calls=len(usages), task=task
        )
        for (model, task), usages in groups.items()
    }


def time_of(value: object) -> datetime | None:
    """The time in a column, which is in UTC."""
    try:
        return aware(datetime.fromisoformat(str(value)))
    except ValueError:
        return None
