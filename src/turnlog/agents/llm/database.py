"""llm's database: listing its conversations with their versions, and the rows of each in the order of their reading.

In 0.36 a conversation is a thread of turns. A turn is a model call, and points into a tree of messages, each named by
its content. In 0.27 it was a list of responses. A program that was updated may have rows of both kinds.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnlog.agents.base import RowUpdate, Version
from turnlog.agents.databases import (
    ROW_SIZE,
    Row,
    SessionListing,
    is_filled,
    open_snapshot,
    replacing_text,
    select_rows,
    tables_of,
)
from turnlog.agents.row_files import line_of, rows_in, update_of
from turnlog.agents.strays import Belonging

THREADS, TURNS, MESSAGES, PARTS = "threads", "turns", "messages", "parts"
CONVERSATIONS, RESPONSES = "conversations", "responses"
CALLS, RESULTS = "tool_calls", "tool_results"
ATTACHMENTS, FRAGMENTS = "attachments", "fragments"

KEYS: dict[str, tuple[str, ...]] = {
    THREADS: ("id",),
    TURNS: ("id",),
    MESSAGES: ("hash",),
    PARTS: ("id",),
    CONVERSATIONS: ("id",),
    RESPONSES: ("id",),
    CALLS: ("id",),
    RESULTS: ("id",),
    ATTACHMENTS: ("id",),
    FRAGMENTS: ("id",),
    "part_attachments": ("part_id", "attachment_id", "order"),
    "part_fragments": ("part_id", "fragment_id", "order"),
    "prompt_attachments": ("response_id", "attachment_id"),
    "prompt_fragments": ("response_id", "fragment_id", "order"),
    "system_fragments": ("response_id", "fragment_id", "order"),
}
"""The tables that may be read -> their primary keys."""

OUTPUT = "output"
"""The note of a message that the model wrote in the turn that follows."""

_NEW = (THREADS, "thread_id", TURNS)
_OLD = (CONVERSATIONS, "conversation_id", RESPONSES)

_OLD_COLUMNS: dict[str, set[str]] = {
    "_llm_migrations": set(),
    CONVERSATIONS: {"id", "name"},
    RESPONSES: {"id", "conversation_id", "datetime_utc"},
}
_NEW_COLUMNS: dict[str, set[str]] = {
    THREADS: {"id", "name"},
    TURNS: {"id", "thread_id", "parent_message_hash", "tip_message_hash", "datetime_utc"},
    MESSAGES: {"hash", "parent_hash"},
    PARTS: {"id", "message_hash"},
}
"""Without them a conversation cannot be read."""

NEEDED: dict[str, set[str]] = _OLD_COLUMNS | _NEW_COLUMNS
"""What a database of the newer program has."""

BELONGINGS = (
    Belonging(THREADS, "id"),
    Belonging(TURNS, "thread_id", THREADS),
    Belonging(PARTS, "message_hash", MESSAGES, "hash"),
    Belonging(CONVERSATIONS, "id"),
    Belonging(RESPONSES, "conversation_id", CONVERSATIONS),
    Belonging(CALLS, "response_id", RESPONSES),
    Belonging(RESULTS, "response_id", RESPONSES),
)
"""What rows must have to be read with a conversation. Messages themselves need no turn: several may share them."""

_TURN = b'{"table":"turns",'
"""The beginning of the line of a turn."""

_DEEPEST = 100_000
"""Messages that are walked back through, so that a damaged tree cannot stall a sync."""


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, frozenset(KEYS), replacing_text) as connection:
        yield connection


def is_own(connection: sqlite3.Connection) -> bool:
    """Whether the database has llm's tables."""
    known = tables_of(connection)
    return {CONVERSATIONS, RESPONSES} <= known and "_llm_migrations" in known


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """Every conversation of the database, or only one. Raises OSError or SourceError."""
    with open_database(path) as connection:
        known = tables_of(connection)
        wanted = NEEDED if known & {THREADS, TURNS} else _OLD_COLUMNS
        if not is_filled(connection, wanted, path):
            return []
        found = [
            listing for kind in (_NEW, _OLD) if kind[2] in known for listing in _listed(connection, *kind, only=only)
        ]
        # A program that was updated may have a conversation as rows of both kinds, one of them without messages.
        listed = {each.session: each for each in sorted(found, key=_is_said)}
        return [listed[session] for session in sorted(listed)]


def _is_said(listing: SessionListing) -> bool:
    return not listing.is_empty


def _listed(
    connection: sqlite3.Connection, owners: str, column: str, calls: str, *, only: str | None
) -> Iterator[SessionListing]:
    where, given = (" WHERE o.id = ?", (only,)) if only is not None else ("", ())
    rows = select_rows(
        connection,
        f"SELECT o.id AS id, o.name AS name, count(c.id) AS count, max(c.id) AS last, max(c.datetime_utc) AS updated"
        f" FROM {owners} o LEFT JOIN {calls} c ON c.{column} = o.id{where} GROUP BY o.id",
        *given,
    )
    for row in rows:
        if isinstance(row["id"], str) and row["id"] and "#" not in row["id"]:
            yield SessionListing(row["id"], _version(row), is_empty=not row["count"])


def _version(row: Row) -> Version:
    sign = zlib.crc32(repr(tuple(row.values())).encode(errors="replace"))
    return row["count"] * ROW_SIZE, 0, row["count"], sign


# -- the rows of a conversation


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The lines of a conversation that its log does not have yet."""
    known = b"".join(log)
    rows = [*_rows_of_thread(connection, session, known), *_rows_of_conversation(connection, session)]
    return update_of([line_of(*row) for row in rows], [known])


def new_facts(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The row with the name of a conversation, if it is not what the log says."""
    known = tables_of(connection)
    rows = [
        (table, row)
        for table in (THREADS, CONVERSATIONS)
        if table in known
        for row in select_rows(connection, f"SELECT * FROM {table} WHERE id = ?", session)
    ]
    lines = [line_of(table, row) for table, row in rows]
    return RowUpdate() if b"".join(log) == b"".join(lines) else RowUpdate(lines=lines, anew=True)


_Line = tuple[str, Row, str | None]


def _rows_of_thread(connection: sqlite3.Connection, session: str, log: bytes) -> Iterator[_Line]:
    """Of each turn first the messages that are new in it, with their parts, then the turn itself."""
    if TURNS not in tables_of(connection):
        return
    seen: set[str] = set()
    for turn in _turns_of(connection, session, log):
        until = turn.get("parent_message_hash")
        inputs = _chain(connection, until, seen)
        outputs = _chain(connection, turn.get("tip_message_hash"), seen | {row["hash"] for row in inputs})
        for rows, note in ((inputs, None), (outputs, OUTPUT)):
            for message in rows:
                seen.add(message["hash"])
                yield MESSAGES, message, note
                yield from _parts_of(connection, message["hash"])
        yield TURNS, turn, None


def _turns_of(connection: sqlite3.Connection, session: str, log: bytes) -> list[Row]:
    """The turns of a thread in their order, with those of the log that were deleted before others.

    The messages of such a turn are still there, since those of the next turn follow them: with its row they are the
    answer that it says, and not one of which no tokens are known.
    """
    statement = f"SELECT * FROM {TURNS} WHERE thread_id = ? ORDER BY datetime_utc, id"
    turns = _select(connection, statement, session)
    present = {turn["id"] for turn in turns}
    if log.count(_TURN) <= len(present):
        return turns
    known = [row for table, row in rows_in([log]) if table == TURNS]
    later = max((turn["id"] for turn in known if turn["id"] in present), default="")
    deleted = [turn for turn in known if turn["id"] not in present and turn["id"] < later]
    return sorted([*turns, *deleted], key=_place_of)


def _place_of(turn: Row) -> tuple[str, str]:
    return str(turn.get("datetime_utc")), str(turn["id"])


def _chain(connection: sqlite3.Connection, tip: Any, seen: set[str]) -> list[Row]:
    """The messages up to one of them, oldest first, without those that were seen."""
    found: list[Row] = []
    while isinstance(tip, str) and tip not in seen and len(found) < _DEEPEST:
        row = next(iter(_select(connection, f"SELECT * FROM {MESSAGES} WHERE hash = ?", tip)), None)
        if row is None or any(row["hash"] == one["hash"] for one in found[-1:]):
            break
        found.append(row)
        tip = row.get("parent_hash")
    return found[::-1]


def _parts_of(connection: sqlite3.Connection, message: str) -> Iterator[_Line]:
    for part in _select(connection, f"SELECT * FROM {PARTS} WHERE message_hash = ? ORDER BY position, id", message):
        yield from _joined(connection, "part", part["id"])
        yield PARTS, part, None


def _joined(connection: sqlite3.Connection, owner: str, identity: Any) -> Iterator[_Line]:
    """What is attached to a part or to a prompt, before the row that joins them."""
    known = tables_of(connection)
    for table, column in ((ATTACHMENTS, "attachment_id"), (FRAGMENTS, "fragment_id")):
        joins = f"{owner}_{table}"
        if joins not in known:
            continue
        key = "part_id" if owner == "part" else "response_id"
        for join in _select(connection, f'SELECT * FROM {joins} WHERE {key} = ? ORDER BY "order"', identity):
            for row in _select(connection, f"SELECT * FROM {table} WHERE id = ?", join.get(column)):
                yield table, row, owner
            yield joins, join, None


def _rows_of_conversation(connection: sqlite3.Connection, session: str) -> Iterator[_Line]:
    """Of each response first what belongs to it, then the response itself."""
    known = tables_of(connection)
    responses = _select(
        connection, f"SELECT * FROM {RESPONSES} WHERE conversation_id = ? ORDER BY datetime_utc, id", session
    )
    for response in responses:
        for owner in ("system", "prompt"):
            yield from _joined(connection, owner, response["id"])
        for table in (RESULTS, CALLS):
            if table in known:
                found = _select(connection, f"SELECT * FROM {table} WHERE response_id = ? ORDER BY id", response["id"])
                yield from ((table, row, None) for row in found)
        yield RESPONSES, response, None


def _select(connection: sqlite3.Connection, statement: str, *parameters: object) -> list[Row]:
    return list(select_rows(connection, statement, *parameters))
