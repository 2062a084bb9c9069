"""What browsers read from SQLite: windows of a session and changes, as stored bodies that nobody decodes.

A message has only the number of its last change, so consecutive ranges of the change sequence return it once.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from turnlog.history.order import result_positions
from turnlog.store.dollars import NANO
from turnlog.store.frames import BODY_COLUMNS, PLACE, BodyReader, load_frames
from turnlog.store.keys import session_key
from turnlog.store.packed_columns import event_json, unpack_many
from turnlog.store.rows import moment
from turnlog.store.sqlite.messages import children_of_calls
from turnlog.store.sqlite.reading import Connections, Span, check_limit, held, select_span
from turnlog.store.values import LONGEST_MEMORY, ChangeEntry, SessionChanges
from turnlog.store.window import FrameWindow, MessageRow

# A copy costs nothing in a session that is not billed for it, and an unknown cost stays unknown everywhere.
_PLACE_COLUMNS = (
    "s.position, m.external_id, s.turn, s.step, s.fate, s.fate_cause,"
    f" CASE WHEN m.billed_key IS s.session_key THEN m.cost / {NANO}.0 WHEN m.cost IS NOT NULL THEN 0 END,"
    " CASE WHEN m.has_tool_calls THEN s.records END, m.key, "
    f"{BODY_COLUMNS}"
)
"""SQL over a membership `s` and its message `m`: the columns for `_message_rows`, and the place of the body."""

_RECORDS = 7
"""Index of the records in `_PLACE_COLUMNS`."""

_EVENT_COLUMNS = (
    # The patch leaves out what is null, as the model does with its defaults.
    "CASE WHEN body IS NULL THEN json_patch('{}', json_object('type', type, 'position', position, 'id', external_id,"
    " 'kind', kind, 'known', iif(known, NULL, json('false')),"
    " 'created_at', strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch'))) END, body, data"
)
"""The columns from which `stored_events.event_json` makes an event."""

_EVENTS_BETWEEN = (
    f"SELECT {_EVENT_COLUMNS} FROM events"
    " WHERE session_key = ? AND position >= ? AND position < ? ORDER BY position, created_at, key"
)

_END = 1 << 62

# The unary plus keeps SQLite from scanning the whole session: recent changes are a few rows of an index. It begins at
# the first lower bound that it finds, so `> 0`, which only says that the partial index may be used, comes last.
CHANGED = (
    f"SELECT {_PLACE_COLUMNS} FROM messages m CROSS JOIN memberships s"
    " ON s.message_key = m.key AND s.session_key = ?"
    " WHERE m.changed_seq > ? AND m.changed_seq <= ? ORDER BY s.position LIMIT ?"
)
MOVED = (
    f"SELECT {_PLACE_COLUMNS} FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE +s.session_key = ?1 AND s.changed_seq > ?2 AND s.changed_seq <= ?3 AND s.changed_seq > 0"
    " AND NOT (m.changed_seq > ?2 AND m.changed_seq <= ?3) AND {shared}"
    " (SELECT 1 FROM memberships o WHERE o.message_key = m.key AND o.session_key <> s.session_key)"
    " ORDER BY s.position LIMIT ?4"
)
JOINED = MOVED.replace("{shared}", "EXISTS")
"""A changed place of a message in several sessions may be a new place."""
MOVED_ALONE = MOVED.replace("{shared}", "NOT EXISTS")
CHANGED_EVENTS = (
    f"SELECT {_EVENT_COLUMNS} FROM events WHERE +session_key = ?"
    " AND changed_seq > ? AND changed_seq <= ? AND changed_seq > 0 ORDER BY position, created_at, key LIMIT ?"
)
GONE_MESSAGES = (
    "SELECT DISTINCT id FROM gone WHERE session_key = ? AND NOT is_event AND seq > ? AND seq <= ? AND NOT EXISTS"
    " (SELECT 1 FROM messages m CROSS JOIN memberships s ON s.message_key = m.key AND s.session_key = gone.session_key"
    " WHERE m.agent = (SELECT agent FROM sessions WHERE key = gone.session_key) AND m.external_id = gone.id) LIMIT ?"
)
GONE_EVENTS = (
    "SELECT DISTINCT position, id FROM gone WHERE session_key = ? AND is_event AND seq > ? AND seq <= ? AND NOT EXISTS"
    " (SELECT 1 FROM events e WHERE e.session_key = gone.session_key AND e.position = gone.position"
    " AND e.external_id = gone.id) LIMIT ?"
)
REBUILT = "SELECT 1 FROM changes WHERE seq > ? AND seq <= ? AND kind = 'rebuilt' LIMIT 1"


class ChangeQueries(Connections):
    """The queries of `Store` about windows of sessions and the change sequence."""

    def window(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> FrameWindow:
        check_limit(limit)
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            table = held(connection, key)
            select = f"SELECT {_PLACE_COLUMNS} FROM {table} s JOIN messages m ON m.key = s.message_key"
            found = select_span(connection, select, key, Span(after, before, around, limit))
            first, last = (found[0][0], found[-1][0]) if found else (0, -1)
            previous = connection.execute(
                f"SELECT 1 FROM {table} WHERE session_key = ? AND position < ? LIMIT 1", (key, first)
            ).fetchone()
            following: int | None = connection.execute(
                f"SELECT min(position) FROM {table} WHERE session_key = ? AND position > ?", (key, last)
            ).fetchone()[0]
            # Events before the first message and after the last one belong to the first and the last window.
            bounds = (first if previous else 0, _END if following is None else following)
            events = connection.execute(_EVENTS_BETWEEN, (key, *bounds))
            # Nothing is decoded: a session of 766 kB takes 0.04 ms as stored frames and 2 ms as objects.
            return FrameWindow(
                frames=load_frames(connection, [row[PLACE] for row in found]),
                rows=msgspec.json.encode(_message_rows(connection, session_id, found)),
                events=_events_json(events),
                has_before=previous is not None,
                has_after=following is not None,
            )

    def extent(self, session_id: str) -> tuple[int, int] | None:
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            positions = f"(position) FROM {held(connection, key)} WHERE session_key = ?"
            # One subquery an end: SQLite looks up a single minimum or maximum in an index.
            ends = f"SELECT (SELECT min{positions}), (SELECT max{positions})"
            first, last = connection.execute(ends, (key, key)).fetchone()
            return None if first is None else (first, last)

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT c.seq, s.agent || ':' || s.external_id, c.kind, c.at FROM changes c"
                " LEFT JOIN sessions s ON s.key = c.session_key WHERE c.seq > ? ORDER BY c.seq LIMIT ?",
                (after, limit),
            )
            entries: list[ChangeEntry] = []
            for sequence, session_id, kind, at in rows:
                changed_at = moment(at)
                assert changed_at is not None
                entries.append(ChangeEntry(sequence, session_id, kind, changed_at))
            return entries

    def last_change(self) -> int:
        with self._snapshot() as connection:
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
            return row[0] if row else 0

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            # Only the last numbers remember what has left a session.
            if until - after > LONGEST_MEMORY or connection.execute(REBUILT, (after, until)).fetchone():
                return None
            span = (key, after, until, limit + 1)
            changed = connection.execute(CHANGED, span).fetchall()
            changed += connection.execute(JOINED, span).fetchall()
            moved = connection.execute(MOVED_ALONE, span).fetchall()
            events = connection.execute(CHANGED_EVENTS, span).fetchall()
            gone = [row[0] for row in connection.execute(GONE_MESSAGES, span)]
            gone_events = connection.execute(GONE_EVENTS, span).fetchall()
            if len(changed) + len(moved) > limit or max(len(events), len(gone), len(gone_events)) > limit:
                return None
            read = BodyReader(connection)
            return SessionChanges(
                messages=[read(*row[PLACE]) for row in changed],
                rows=msgspec.json.encode(_message_rows(connection, session_id, [*changed, *moved])),
                events=_events_json(events),
                gone_messages=gone,
                gone_events=gone_events,
            )


def _events_json(rows: Iterable[tuple[str | None, bytes | None, bytes | None]]) -> bytes:
    """A JSON array of events, from their `_EVENT_COLUMNS`."""
    return b"[%b]" % b",".join([event_json(*row) for row in rows])


def _message_rows(connection: sqlite3.Connection, session_id: str, found: list[tuple[Any, ...]]) -> list[MessageRow]:
    """A row for each message, from rows that begin with `_PLACE_COLUMNS`."""
    children = _children(connection, session_id)
    nothing: dict[str, str] = {}
    return [
        MessageRow(
            position,
            id,
            turn,
            step,
            fate,
            cause,
            cost,
            children.get(key, nothing),
            list(result_positions(position, records).items()) if records else [],
        )
        for (position, id, turn, step, fate, cause, cost, _, key, *_), records in zip(
            found, unpack_many([row[_RECORDS] for row in found]), strict=True
        )
    ]


def _children(connection: sqlite3.Connection, session_id: str) -> dict[int, dict[str, str]]:
    """Message key -> the subagent sessions that its calls started, by call."""
    subagents = children_of_calls(connection, session_id)
    found: dict[int, dict[str, str]] = defaultdict(dict)
    if subagents:
        rows = connection.execute(
            "SELECT message_key, tool_call_id FROM parts WHERE tool_call_id IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(list(subagents)).decode(),),
        )
        for message_key, tool_call_id in rows:
            found[message_key][tool_call_id] = subagents[tool_call_id]
    return found
