"""SQL of one's own: views over the tables that stay the same when the tables change, and bodies as JSON.

Bodies are packed and compressed, so the columns `content` are functions that exist only on these connections.
docs/reference/sql.md lists the columns.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from turnlog.model import Message
from turnlog.model.codec import encode
from turnlog.model.message import part_ids
from turnlog.store import bodies
from turnlog.store.connection import connect
from turnlog.store.external_content import BlobLoader, WholeBodies
from turnlog.store.frames import BODY_COLUMNS
from turnlog.store.sqlite.runs import OF_RUN

_TIME: Final = "strftime('%Y-%m-%dT%H:%M:%fZ', {0} / 1000.0, 'unixepoch') AS {1}"

_MESSAGE: Final = (
    "m.external_id AS message_id, x.agent || ':' || x.external_id AS session_id, x.agent, x.external_id, s.position,"
    " m.role, m.origin, s.turn, s.step, s.fate, (SELECT name FROM models WHERE key = m.model_key) AS model,"
    f" {_TIME.format('m.created_at', 'created_at')}, {_TIME.format('m.completed_at', 'completed_at')},"
    " m.has_tool_calls, m.has_reasoning, m.has_files, m.text_preview, message_content(m.key) AS content"
)

VIEWS: Final = {
    "session_messages": (
        f"SELECT {_MESSAGE} FROM sessions x JOIN memberships s ON s.session_key = x.key"
        " JOIN messages m ON m.key = s.message_key"
    ),
    "run_messages": (
        f"SELECT r.id AS run_id, {_MESSAGE} FROM runs r JOIN sessions x"
        " ON x.agent = substr(r.session_id, 1, instr(r.session_id, ':') - 1)"
        " AND x.external_id = substr(r.session_id, instr(r.session_id, ':') + 1)"
        " JOIN memberships s ON s.session_key = x.key JOIN messages m ON m.key = s.message_key"
        f" WHERE {OF_RUN}"
    ),
    "message_parts": (
        "SELECT part_id(p.message_key, p.sequence) AS id, m.external_id AS message_id, m.agent, p.sequence, p.type,"
        " part_content(p.message_key, p.sequence) AS content, p.tool_name, p.tool_kind, p.tool_call_id, p.tool_state,"
        f" p.exit_code, p.path, {_TIME.format('p.started_at', 'started_at')},"
        f" {_TIME.format('p.completed_at', 'completed_at')}, p.duration_ms"
        " FROM parts p JOIN messages m ON m.key = p.message_key"
    ),
}
"""Name of a view -> what it selects."""


def connect_for_sql(path: Path) -> sqlite3.Connection:
    """A connection that only reads, with `VIEWS` and the functions that they use.

    Raises StoreError for a file that is no store, SchemaTooNewError for a store of a newer turnlog.
    """
    connection = connect(path, read_only=True)
    reader = _MessageReader(connection)
    connection.create_function("message_content", 1, reader.content)
    connection.create_function("part_id", 2, reader.part_id)
    connection.create_function("part_content", 2, reader.part_content)
    # Temporary views, because the store is opened for reading only.
    for name, select in VIEWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {select}")
    return connection


class _MessageReader:
    """Whole messages by their keys; the last one is kept, since a query asks for its parts one after the other."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last: tuple[tuple[int, ...], Message] | None = None

    def content(self, key: int) -> str:
        """A message as JSON."""
        return encode(self._message(key)).decode()

    def part_id(self, key: int, sequence: int) -> str:
        """The id of a part."""
        return part_ids(self._message(key))[sequence]

    def part_content(self, key: int, sequence: int) -> str:
        """A part as JSON."""
        return encode(self._message(key).parts[sequence]).decode()

    def _message(self, key: int) -> Message:
        # A message that changes between two statements has another revision.
        place = self._connection.execute(
            f"SELECT m.key, m.revision, m.changed_seq, {BODY_COLUMNS} FROM messages m WHERE m.key = ?", (key,)
        ).fetchone()
        if self._last is None or self._last[0] != place:
            body = WholeBodies(self._connection)(*place[3:])
            self._last = place, bodies.resolve(bodies.decode(body), BlobLoader(self._connection))
        return self._last[1]
