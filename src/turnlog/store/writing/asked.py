"""Subagents of which no record names the call: each gets the call that asked it (`turnlog.store.asking`).

A pure function of the stored rows, worked out anew for a parent when it, a child of it or a link between them was
touched, so that the order in which sources were read leaves no trace.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from turnlog.model import Message
from turnlog.store import bodies
from turnlog.store.asking import AskedSession, AskingCall, asked_session, asking_calls, find_calls, run_of
from turnlog.store.blobs import BlobLoader
from turnlog.store.frames import BODY_COLUMNS, BodyReader

_LOOKUP_SIZE = 500


def find_asking_calls(connection: sqlite3.Connection, session_ids: set[str]) -> None:
    """Look for the calls of all children without one that these sessions are or have."""
    for parent_id, children in _unnamed(connection, sorted(session_ids)).items():
        asked = [found for child in children if (found := _asked(connection, *child)) is not None]
        calls = find_calls(_free_calls(connection, parent_id), asked) if asked else {}
        connection.execute(
            "UPDATE links SET found_call_id = NULL, found_message_id = NULL WHERE parent_id = ? AND kind = 'subagent'",
            (parent_id,),
        )
        connection.executemany(
            "UPDATE links SET found_call_id = ?, found_message_id = ?"
            " WHERE child_id = ? AND parent_id = ? AND kind = 'subagent'",
            [(call.tool_call_id, call.message_id, child, parent_id) for child, call in calls.items()],
        )


def _unnamed(connection: sqlite3.Connection, session_ids: Sequence[str]) -> dict[str, list[tuple[str, str | None]]]:
    """Parent -> all of its children without a call, each with its run, for these sessions and the parents of these."""
    parents: set[str] = set()
    for start in range(0, len(session_ids), _LOOKUP_SIZE):
        piece = session_ids[start : start + _LOOKUP_SIZE]
        marks = ",".join("?" * len(piece))
        rows = connection.execute(
            "SELECT parent_id FROM links WHERE kind = 'subagent'"
            f" AND (child_id IN ({marks}) OR parent_id IN ({marks}))",
            (*piece, *piece),
        )
        parents.update(row[0] for row in rows)
    found: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for parent in sorted(parents):
        rows = connection.execute(
            "SELECT child_id, metadata FROM links l WHERE parent_id = ? AND kind = 'subagent' AND tool_call_id IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM links other WHERE other.child_id = l.child_id AND other.kind = 'subagent'"
            " AND other.tool_call_id IS NOT NULL) ORDER BY child_id",
            (parent,),
        )
        found[parent] = [(child, run_of(msgspec.json.decode(told)) if told else None) for child, told in rows]
    return found


def _asked(connection: sqlite3.Connection, session_id: str, run: str | None) -> AskedSession | None:
    row = connection.execute(
        f"SELECT {BODY_COLUMNS} FROM sessions f JOIN memberships s ON s.session_key = f.key JOIN messages m ON m.key ="
        " s.message_key WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? ORDER BY s.position LIMIT 1",
        session_id.partition(":")[::2],
    ).fetchone()
    return None if row is None else asked_session(session_id, _whole(connection, [row])[0], run)


def _free_calls(connection: sqlite3.Connection, session_id: str) -> Iterable[AskingCall]:
    """The session's calls of subagents that no record names a child of, in order."""
    taken = {
        row[0]
        for row in connection.execute(
            "SELECT tool_call_id FROM links WHERE parent_id = ? AND kind = 'subagent'", (session_id,)
        )
    }
    rows = connection.execute(
        f"SELECT {BODY_COLUMNS} FROM sessions f JOIN memberships s ON s.session_key = f.key JOIN messages m ON m.key ="
        " s.message_key WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? AND m.has_tool_calls = 1"
        " AND EXISTS (SELECT 1 FROM parts p WHERE p.message_key = m.key AND p.tool_kind = 'subagent')"
        " ORDER BY s.position",
        session_id.partition(":")[::2],
    )
    calls = [call for message in _whole(connection, rows.fetchall()) for call in asking_calls(message)]
    return [call for call in calls if call.tool_call_id not in taken]


def _whole(connection: sqlite3.Connection, places: Iterable[tuple[int, int, int, int, int]]) -> list[Message]:
    read, load = BodyReader(connection), BlobLoader(connection)
    return [bodies.resolve(bodies.decode(read(*place)), load) for place in places]
