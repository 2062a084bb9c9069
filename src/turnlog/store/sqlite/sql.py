"""SQL of one's own: views over the tables that stay the same when the tables change, and bodies as JSON.

Bodies are packed and compressed, so the columns `content` are functions that exist only on these connections.
docs/reference/sql.md lists the columns.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from msgspec import UNSET

from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.model.codec import encode
from turnlog.model.message import part_ids
from turnlog.store import bodies
from turnlog.store.connection import connect
from turnlog.store.external_content import BlobLoader, WholeBodies
from turnlog.store.frames import BODY_COLUMNS
from turnlog.store.sqlite.listed import LISTED
from turnlog.store.sqlite.runs import OF_RUN
from turnlog.store.unfinished import end_forgetting

_TIME: Final = "strftime('%Y-%m-%dT%H:%M:%fZ', {0} / 1000.0, 'unixepoch') AS {1}"

_MESSAGE: Final = (
    "m.external_id AS message_id, x.agent || ':' || x.external_id AS session_id, x.agent, x.external_id, s.position,"
    " m.role, m.origin, s.turn, s.step, s.fate, (SELECT name FROM models WHERE key = m.model_key) AS model,"
    f" {_TIME.format('m.created_at', 'created_at')}, {_TIME.format('m.completed_at', 'completed_at')},"
    " m.has_tool_calls, m.has_reasoning, m.has_files, m.text_preview, message_content(m.key) AS content"
)

_ID_OF: Final = "{0}.agent || ':' || {0}.external_id AS session_id, {0}.agent, {0}.external_id"

_SESSION_ID: Final = _ID_OF.format("x")

_MONEY: Final = "{0} / 1e9 AS {1}"

PRICED: Final = (
    "CASE WHEN {0}.calls - {0}.unknown_calls - {0}.covered_calls + {0}.session_totals > {0}.unpriced_calls"
    " THEN {0}.cost / 1e9 END"
)
"""The dollars of a row with sums; NULL where no call could be priced: the sum is 0 there."""
"""The tables count nano-dollars."""

_USED: Final = "input, cache_read, cache_write_5m, cache_write_1h, cache_write, output, reasoning"
"""Columns of tokens in disjoint buckets: `output` is without `reasoning` where an agent counts it apart."""

_PART: Final = (
    "p.sequence, p.type, part_text(p.message_key, p.sequence) AS text,"
    " part_content(p.message_key, p.sequence) AS content"
)

_CALL: Final = (
    "p.tool_name, p.tool_kind, p.tool_call_id, p.tool_state, p.exit_code, p.path, p.command,"
    f" {_TIME.format('p.started_at', 'started_at')}, {_TIME.format('p.completed_at', 'completed_at')}, p.duration_ms"
)

_PLACES: Final = "JOIN memberships s ON s.message_key = p.message_key JOIN sessions x ON x.key = s.session_key"

VIEWS: Final = {
    "v_sessions": (
        f"SELECT {_ID_OF.format('s')}, o.name AS project, o.path AS project_path, coalesce(a.title, s.title) AS title,"
        f" s.cwd, s.git_branch, s.agent_version, {_TIME.format('s.created_at', 'created_at')},"
        f" {_TIME.format('s.updated_at', 'updated_at')}, s.active_ms,"
        " parent.agent || ':' || parent.external_id AS parent_id, s.relationship, s.turns, s.messages, s.prompts,"
        " s.steps, s.tool_calls, s.failed_tool_calls, s.calls, s.unknown_calls, s.unpriced_calls,"
        f" {', '.join(f's.{name}' for name in _USED.split(', '))}, {PRICED.format('s')} AS cost,"
        f" {_MONEY.format('s.reported_cost', 'reported_cost')}, coalesce(a.starred, 0) AS starred,"
        " coalesce(a.archived, 0) AS archived, a.tags, a.note"
        " FROM sessions s LEFT JOIN projects o ON o.key = s.project_key"
        " LEFT JOIN sessions parent ON parent.key = s.parent_key"
        f" LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id WHERE {LISTED}"
    ),
    "v_messages": (
        f"SELECT {_MESSAGE} FROM sessions x JOIN memberships s ON s.session_key = x.key"
        " JOIN messages m ON m.key = s.message_key"
    ),
    "v_run_messages": (
        f"SELECT r.id AS run_id, {_MESSAGE} FROM runs r JOIN sessions x"
        " ON x.agent = substr(r.session_id, 1, instr(r.session_id, ':') - 1)"
        " AND x.external_id = substr(r.session_id, instr(r.session_id, ':') + 1)"
        " JOIN memberships s ON s.session_key = x.key JOIN messages m ON m.key = s.message_key"
        f" WHERE {OF_RUN}"
    ),
    "v_parts": (
        "SELECT part_id(p.message_key, p.sequence) AS id, m.external_id AS message_id, m.agent,"
        f" {_PART}, {_CALL} FROM parts p JOIN messages m ON m.key = p.message_key"
    ),
    "v_tool_calls": (
        f"SELECT {_SESSION_ID}, m.external_id AS message_id, s.position, s.turn, s.step, s.fate, {_CALL},"
        " call_input(p.message_key, p.sequence) AS input, call_output(p.message_key, p.sequence) AS output"
        f" FROM parts p JOIN messages m ON m.key = p.message_key {_PLACES} WHERE p.tool_call_id IS NOT NULL"
    ),
    "v_usage": (
        # A time that no log has is 0 in the table.
        "SELECT iif(u.quarter_hour > 0, strftime('%Y-%m-%dT%H:%M:00Z', u.quarter_hour * 900, 'unixepoch'), NULL)"
        f" AS quarter_hour, {_SESSION_ID},"
        " o.name AS project, d.name AS model, u.is_total, u.calls, u.unknown_calls, u.covered_calls, u.unpriced_calls,"
        f" {', '.join(f'u.{name}' for name in _USED.split(', '))}, {PRICED.format('u')} AS cost,"
        f" {_MONEY.format('nullif(u.reported_cost, 0)', 'reported_cost')}"
        " FROM usage u JOIN sessions x ON x.key = u.session_key LEFT JOIN models d ON d.key = u.model_key"
        " LEFT JOIN projects o ON o.key = x.project_key"
    ),
    "v_files": (
        f"SELECT t.path, {_SESSION_ID}, m.external_id AS message_id, s.position, s.fate, p.tool_call_id, p.tool_name,"
        f" p.tool_kind, p.tool_state, {_TIME.format('coalesce(p.started_at, m.created_at)', 'at')} FROM"
        " (SELECT path, message_key, sequence FROM parts WHERE path IS NOT NULL"
        " UNION ALL SELECT path, message_key, sequence FROM more_paths) t"
        " JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence"
        f" JOIN messages m ON m.key = p.message_key {_PLACES}"
    ),
}
"""Name of a view -> what it selects."""

_TEXTUAL: Final = (TextPart, ReasoningPart)


def connect_for_sql(path: Path) -> sqlite3.Connection:
    """A connection that only reads, with `VIEWS` and the functions that they use.

    Raises StoreError for a file that is no store, SchemaTooNewError for a store of a newer turnlog.
    """
    end_forgetting(path)
    connection = connect(path, read_only=True)
    add_views(connection)
    return connection


def add_views(connection: sqlite3.Connection) -> None:
    """Give any connection to a store `VIEWS` and the functions that they use, until it is closed."""
    reader = _MessageReader(connection)
    connection.create_function("message_content", 1, reader.content)
    connection.create_function("part_id", 2, reader.part_id)
    connection.create_function("part_content", 2, reader.part_content)
    connection.create_function("part_text", 2, reader.part_text)
    connection.create_function("call_input", 2, reader.call_input)
    connection.create_function("call_output", 2, reader.call_output)
    # Temporary views, because the store is opened for reading only. A connection that may write nothing at all, as
    # Datasette's, may not even make these.
    (is_locked,) = connection.execute("PRAGMA query_only").fetchone()
    connection.execute("PRAGMA query_only = 0")
    for name, select in VIEWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {select}")
    connection.execute(f"PRAGMA query_only = {is_locked}")


class _MessageReader:
    """Whole messages by their keys; the last one is kept, since a query asks for its parts one after the other."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last: tuple[tuple[int, ...], Message] | None = None

    def content(self, key: int) -> str | None:
        """A message as JSON; NULL, as below, if there is no such message."""
        message = self._message(key)
        return None if message is None else encode(message).decode()

    def part_id(self, key: int, sequence: int) -> str | None:
        """The id of a part; NULL, as below, if the message has no such part."""
        message = self._message(key)
        return None if message is None or self._part(key, sequence) is None else part_ids(message)[sequence]

    def part_content(self, key: int, sequence: int) -> str | None:
        """A part as JSON."""
        part = self._part(key, sequence)
        return None if part is None else encode(part).decode()

    def part_text(self, key: int, sequence: int) -> str | None:
        """The words of a text or of reasoning, or the input of a call; NULL for parts that have none."""
        part = self._part(key, sequence)
        if isinstance(part, _TEXTUAL):
            return part.text
        return _input(part) if isinstance(part, ToolCallPart) else None

    def call_input(self, key: int, sequence: int) -> str | None:
        """The input of a call as JSON, or as the text that is no JSON."""
        part = self._part(key, sequence)
        return _input(part) if isinstance(part, ToolCallPart) else None

    def call_output(self, key: int, sequence: int) -> str | None:
        """The text of a call's last results; NULL if it has none."""
        part = self._part(key, sequence)
        return part.output_text if isinstance(part, ToolCallPart) and part.results else None

    def _part(self, key: int, sequence: object) -> Part | None:
        message = self._message(key)
        # A query may give any value, of any type.
        if message is None or not isinstance(sequence, int) or not 0 <= sequence < len(message.parts):
            return None
        return message.parts[sequence]

    def _message(self, key: int) -> Message | None:
        # A message that changes between two statements has another revision.
        place = self._connection.execute(
            f"SELECT m.key, m.revision, m.changed_seq, {BODY_COLUMNS} FROM messages m WHERE m.key = ?", (key,)
        ).fetchone()
        if place is None:
            return None
        if self._last is None or self._last[0] != place:
            body = WholeBodies(self._connection)(*place[3:])
            self._last = place, bodies.resolve(bodies.decode(body), BlobLoader(self._connection))
        return self._last[1]


def _input(part: ToolCallPart) -> str | None:
    return part.input_text if part.input is UNSET else bytes(part.input).decode(errors="replace")
