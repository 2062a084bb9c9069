"""Cursor's databases: that of a chat in the terminal, `store.db`, and that of the editor, `state.vscdb`.

Both are tables of keys and values. The log of a conversation has its messages in their order, a line each; what is
known about it is a log of its own. Only the tables of `TABLES` can be read: another one holds credentials.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import RowUpdate, Source, Version
from turnlog.agents.cursor.places import is_id
from turnlog.agents.cursor.wire import texts_at, wire_fields
from turnlog.agents.databases import (
    ROW_SIZE,
    Row,
    SessionListing,
    open_snapshot,
    replacing_text,
    select_rows,
    tables_of,
)
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import line_of, restore_database, rows_in, update_of
from turnlog.errors import SourceError

CHAT = "store.db"
EDITOR = "state.vscdb"

BLOBS, META = "blobs", "meta"
VALUES, HEADERS = "cursorDiskKV", "composerHeaders"
INLINE = "conversation"
"""The table of a line with a bubble that older versions keep within the row of its conversation. There is none."""

TABLES = frozenset({BLOBS, META, VALUES, HEADERS})
"""The tables that may be read."""

_COMPOSER = "composerData:"
_BUBBLE = "bubbleId:"
_AFTER = "\U0010ffff"
"""Sorts behind every key with the same beginning."""

SECRET = "blobEncryptionKey"
"""The field of a chat's facts that is a key. It is not copied into the archive."""

SUBAGENT = "subagent"
"""The note of the first line of a subagent's conversation."""

_MESSAGES, _ARCHIVES, _WORKSPACE = 1, 13, 9
"""Numbers of fields of a chat's root: its messages, those that a summary replaced, and its folder."""

_ID_SIZE = 32

_LATEST = 1 << 43
"""The year 2248 in Unix milliseconds: a time whose nanoseconds a column still holds."""


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, TABLES, replacing_text) as connection:
        yield connection


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {
        row["name"] for row in select_rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")
    } & TABLES


def is_editor(connection: sqlite3.Connection) -> bool:
    """Whether a database is the editor's, and not that of a chat. Raises SourceError if it is neither."""
    found = _tables(connection)
    if VALUES not in found and not found >= {BLOBS, META}:
        raise SourceError("a database of another schema: no tables of Cursor")
    return VALUES in found


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """The conversations of a database, or only one. The version of one changes with its rows.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    if path.name == CHAT:
        # Each chat has a database of its own, and there may be thousands: they are not opened to be listed.
        listed = [SessionListing(path.parent.name, _file_version(path))]
    else:
        with open_database(path) as connection:
            if not tables_of(connection):
                listed = []  # it was just made
            elif is_editor(connection):
                listed = list(_composers(connection, only))
            else:
                session = text_of(chat_meta(connection).get("agentId")) or path.stem
                listed = [SessionListing(session, _file_version(path))]
    return [each for each in listed if is_id(each.session) and only in (None, each.session)]


def _file_version(path: Path) -> Version:
    found = path.stat()
    log = path.with_name(f"{path.name}-wal")
    try:
        beside = log.stat()
    except OSError:
        return found.st_size, found.st_mtime_ns, 0, 0
    return found.st_size + beside.st_size, max(found.st_mtime_ns, beside.st_mtime_ns), beside.st_size, 0


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """See `SessionDatabases.new_lines`."""
    known = b"".join(log)
    lines = _bubble_lines(connection, session, known) if is_editor(connection) else _chat_lines(connection)
    return update_of(list(lines), [known])


def new_facts(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """See `SessionDatabases.new_facts`."""
    lines = _composer_facts(connection, session) if is_editor(connection) else _chat_facts(connection)
    return update_of(list(lines), log)


# -- chats in the terminal


def chat_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """The facts about a chat, without its key."""
    row = next(select_rows(connection, f"SELECT value FROM {META} WHERE key = '0'"), None)
    found = meta_in({} if row is None else row)
    found.pop(SECRET, None)
    return found


def meta_in(row: Row) -> dict[str, Any]:
    """The object in a row of facts, which are JSON in hexadecimal digits."""
    value = row.get("value")
    try:
        data = bytes.fromhex(value) if isinstance(value, str) else value
        return object_of(msgspec.json.decode(data if isinstance(data, bytes) else b"{}"))
    except (ValueError, *UNREADABLE):
        return {}


def _blob(connection: sqlite3.Connection, identity: str) -> bytes | None:
    row = next(select_rows(connection, f"SELECT data FROM {BLOBS} WHERE id = ?", identity), None)
    data = None if row is None else row["data"]
    return data.encode() if isinstance(data, str) else data


def _root(connection: sqlite3.Connection) -> tuple[str, bytes]:
    identity = text_of(chat_meta(connection).get("latestRootBlobId")) or ""
    return identity, _blob(connection, identity) or b""


def _archives(connection: sqlite3.Connection, root: bytes) -> Iterator[tuple[str | None, bytes]]:
    for found in wire_fields(root, _ARCHIVES):
        data = _blob(connection, found.hex()) if len(found) == _ID_SIZE else None
        yield (None, found) if data is None else (found.hex(), data)


def _chat_lines(connection: sqlite3.Connection) -> Iterator[bytes]:
    """The messages in their order: those that summaries replaced come first."""
    _, root = _root(connection)
    lists = [*(data for _, data in _archives(connection, root)), root]
    seen: Counter[str] = Counter()
    for identity in chain.from_iterable(wire_fields(each, _MESSAGES) for each in lists):
        name = identity.hex()
        seen[name] += 1
        row: Row = {"id": name, "data": _blob(connection, name)}
        # A blob is named by its content, so that a message that is said twice is there once.
        yield line_of(BLOBS, row, None if seen[name] == 1 else str(seen[name]))


def _chat_facts(connection: sqlite3.Connection) -> Iterator[bytes]:
    meta = chat_meta(connection)
    identity, root = _root(connection)
    folder = next(texts_at(root, _WORKSPACE), None)
    yield line_of(META, {"key": "0", "value": msgspec.json.encode(meta).hex()}, folder)
    yield line_of(BLOBS, {"id": identity, "data": root})
    for name, data in _archives(connection, root):
        if name is not None:
            yield line_of(BLOBS, {"id": name, "data": data})


# -- conversations in the editor


def _composers(connection: sqlite3.Connection, only: str | None) -> Iterator[SessionListing]:
    """The conversations; that of an empty tab is one in which nothing is said."""
    if only is None:
        found = select_rows(
            connection, f"SELECT key, value FROM {VALUES} WHERE key >= ? AND key < ?", _COMPOSER, _COMPOSER + _AFTER
        )
    else:
        found = select_rows(connection, f"SELECT key, value FROM {VALUES} WHERE key = ?", _COMPOSER + only)
    for row in found:
        composer = _value(row)
        bubbles = list(_bubble_ids(composer)) or list_of(composer.get("conversation"))
        session = str(row["key"]).removeprefix(_COMPOSER)
        last = bubbles[-1] if bubbles and isinstance(bubbles[-1], str) else ""
        version = _composer_version(connection, row, composer, f"{session}:{last}")
        yield SessionListing(session, version, is_empty=not bubbles)


def _composer_version(connection: sqlite3.Connection, row: Row, composer: dict[str, Any], last: str) -> Version:
    """The row of a conversation changes with each bubble, and the last bubble while it is being written."""
    updated = composer.get("lastUpdatedAt") or composer.get("createdAt")
    milliseconds = min(max(int(updated), 0), _LATEST) if isinstance(updated, int | float) else 0
    count = len(list_of(composer.get("fullConversationHeadersOnly")))
    newest = next(
        select_rows(connection, f"SELECT length(value) AS size FROM {VALUES} WHERE key = ?", _BUBBLE + last), None
    )
    sign = zlib.crc32(repr(row["value"]).encode(errors="replace"))
    return count * ROW_SIZE, milliseconds * 1_000_000, (newest or {}).get("size") or 0, sign


def _value(row: Row) -> dict[str, Any]:
    value = row.get("value")
    try:
        return object_of(msgspec.json.decode(value if isinstance(value, bytes | str) else b"null"))
    except UNREADABLE:
        return {}


def _bubble_ids(composer: dict[str, Any]) -> Iterator[str]:
    """The bubbles in their order, which their keys do not have."""
    for header in list_of(composer.get("fullConversationHeadersOnly")):
        identity = text_of(object_of(header).get("bubbleId"))
        if identity is not None:
            yield identity


def composer_row(connection: sqlite3.Connection, session: str) -> Row:
    """The row of a conversation."""
    found = select_rows(connection, f"SELECT key, value FROM {VALUES} WHERE key = ?", _COMPOSER + session)
    return next(found, None) or {}


def _bubble_lines(connection: sqlite3.Connection, session: str, log: bytes) -> Iterator[bytes]:
    composer = _value(composer_row(connection, session))
    start = f"{_BUBBLE}{session}:"
    rows = {
        str(row["key"]).removeprefix(start): row
        for row in select_rows(
            connection, f"SELECT key, value FROM {VALUES} WHERE key >= ? AND key < ?", start, start + _AFTER
        )
    }
    note = SUBAGENT if _parent(connection, session, composer) else None
    listed = list(_bubble_ids(composer))
    # Cursor deletes the contents of old bubbles. What was read of them stays: bubbles are joined to answers in order.
    gone = {start + identity for identity in listed if rows.get(identity, {}).get("value") is None}
    known = (
        {row["key"]: row for table, row in rows_in([log]) if table == VALUES and row.get("key") in gone} if gone else {}
    )
    for identity in listed:
        row = known.get(start + identity) if start + identity in gone else rows[identity]
        if row is not None:
            yield line_of(VALUES, row, note)
            note = None
    if not list_of(composer.get("fullConversationHeadersOnly")):
        for bubble in map(object_of, list_of(composer.get("conversation"))):
            identity = str(bubble.get("bubbleId"))
            known = _value(rows.get(identity, {}))
            yield line_of(
                INLINE, {"key": start + identity, "value": msgspec.json.encode(bubble | known).decode()}, note
            )
            note = None


def _parent(connection: sqlite3.Connection, session: str, composer: dict[str, Any]) -> dict[str, Any]:
    """What is known of the call that started a conversation; empty if it is no subagent's."""
    found = object_of(composer.get("subagentInfo"))
    if not found and HEADERS in _tables(connection):
        header = next(select_rows(connection, f"SELECT * FROM {HEADERS} WHERE composerId = ?", session), None)
        found = object_of(_value(header or {}).get("subagentInfo"))
    return found if text_of(found.get("parentComposerId")) not in (None, session) else {}


def _composer_facts(connection: sqlite3.Connection, session: str) -> Iterator[bytes]:
    row = composer_row(connection, session)
    parent = _parent(connection, session, _value(row))
    yield line_of(VALUES, row, msgspec.json.encode(parent).decode() if parent else None)


# -- restoring rows

_KEYS = {BLOBS: ("id",), META: ("key",), VALUES: ("key",)}


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write the rows of a conversation into a database with their tables. Raises ConflictError if it has others."""
    return restore_database(source, rows_in(log), to, _KEYS, {})
