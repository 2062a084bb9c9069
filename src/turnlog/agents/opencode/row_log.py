"""The row log of a session: which lines to append to it, and how rows are restored from it.

Rows are restored into a database with the tables of the original, or as the files that they were. The tables are those
that today's OpenCode has for such rows, made with the columns that the rows have. Several sessions of one database may
be restored into one file, one after the other.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from turnlog.agents.base import RowUpdate, Source
from turnlog.agents.decoding import list_of, object_of
from turnlog.agents.opencode.database import database_session_of
from turnlog.agents.opencode.messages import StepMessage, is_mixed, read_message, updated_at
from turnlog.agents.opencode.rows import (
    EVENT,
    MESSAGE,
    PROJECT,
    SESSION,
    TO_DOS,
    Row,
    RowVersion,
    TimelineEntry,
    bytes_of,
    decode_line,
    encode_line,
    is_blob,
    newest_lines,
    time_of,
    time_position,
    to_datetime,
    to_int,
)
from turnlog.agents.opencode.snapshot import (
    SESSION_MESSAGE,
    SESSION_V2,
    ListedMessage,
    MessageCopy,
    MessageRows,
    RevertPoint,
    RowSource,
    Snapshot,
    build_timeline,
    find_revert_point,
    is_session_message,
    list_message,
)
from turnlog.agents.row_files import completed, quoted
from turnlog.atomic_files import make_folders, refuse_other_than_file, write_atomically
from turnlog.errors import ConflictError, StoreError

Log = dict[tuple[str, str], bytes]


class _LoggedMessage(NamedTuple):
    """The last version of a message in the log."""

    rows: MessageRows
    entry: TimelineEntry
    deleted: bool


def new_lines(rows: RowSource, blocks: Iterable[bytes]) -> RowUpdate:
    """What is new in a session's rows since its log was last written.

    Args:
        rows: The rows as they are now.
        blocks: The log, in blocks of any size.

    Returns:
        The lines to append. All lines, for a new log, when lines in the log are no longer true: a message that appears
        before one in the log changes the numbers of turns after it.
    """
    log = {
        place: line for place, line in newest_lines(blocks).items() if place[0] not in _READ_AGAIN or _is_sound(line)
    }
    known = {key: _decode_message(line) for (table, key), line in log.items() if table == MESSAGE}
    snapshot = rows.read(max((_sequence(key) for table, key in log if table == EVENT), default=-1))
    present = {message.key for message in snapshot.messages}
    # OpenCode's own events have the last version of a removed message. The log may have seen it half done.
    removed = {key: found.rows for key, found in known.items() if key not in present}
    removed |= {message.key: message for message in snapshot.removed}
    messages = {message.key: message for message in (*snapshot.messages, *removed.values())}
    listed = [list_message(message, deleted=message.key in removed) for message in messages.values()]
    timeline = build_timeline(
        rows.external_id,
        listed,
        is_subagent=bool(snapshot.info.get("parentID")),
        copies=_find_copies(rows, listed, snapshot, known),
        shared=snapshot.shared,
    )
    newest = max((entry.position for _, entry in timeline), default=0)
    lines = _other_lines(snapshot, find_revert_point(snapshot.info.get("revert"), timeline), newest, log)
    anew = False
    for message, entry in timeline:
        of = messages[message.key]
        line = RowVersion(table=MESSAGE, key=of.key, entry=entry, deleted=message.deleted, row=of.row, parts=of.parts)
        lines[MESSAGE, of.key], contradicts = _with_time(line, log.get((MESSAGE, of.key)))
        # A row that is older than known ones, which an upgrade or import adds, shifts turns and steps after it.
        anew |= contradicts or (of.key in known and _has_moved(known[of.key].entry, entry))
    if anew:
        return RowUpdate(lines=[*(log | lines).values()], anew=True)
    return RowUpdate(lines=[line for key, line in lines.items() if log.get(key) != line])


_READ_AGAIN = frozenset({MESSAGE, SESSION, PROJECT, TO_DOS})
"""Tables whose lines in the log decide about new ones."""


def _is_sound(line: bytes) -> bool:
    """Whether a line can be read. Any other is written again, as if it were not there."""
    try:
        decode_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _sequence(key: str) -> int:
    """The number of an event from its key; -1 for a key that is no number, which OpenCode never writes."""
    try:
        return to_int(int(key))
    except ValueError:
        return -1


def _decode_message(line: bytes) -> _LoggedMessage:
    found = decode_line(line)
    entry = found.entry or TimelineEntry(position=0)
    # A message without rows keeps its place, which may have followed from rows around it.
    place = entry.position if is_session_message(found.row) else None
    return _LoggedMessage(MessageRows(found.key, found.row, found.parts, place), entry, found.deleted)


def _find_copies(
    rows: RowSource, messages: list[ListedMessage], snapshot: Snapshot, known: dict[str, _LoggedMessage]
) -> dict[str, MessageCopy]:
    """The messages that a fork copied, by key.

    Copies that the log knows stay copies when the original is gone. A copy keeps its time, so only messages that are
    older than their session can be copies.
    """
    copies: dict[str, MessageCopy] = {}
    for key, found in known.items():
        if found.entry.copy_of is not None and found.entry.copied_from is not None:
            copies[key] = MessageCopy(found.entry.copy_of, found.entry.copied_from)
    began = time_of(snapshot.info, "created")
    older = [message for message in messages if message.created < began and message.key not in known]
    return copies | rows.find_originals(older, snapshot.info) if older else copies


def _other_lines(snapshot: Snapshot, revert: RevertPoint | None, newest: int, log: Log) -> Log:
    """The lines of everything but messages; `newest` is the position of the last message."""
    lines: Log = {}
    facts: list[RowVersion] = []
    if snapshot.session is not None:
        leaf, position = revert or (None, None)
        restored = revert is None and _was_reverted(log.get((SESSION, "")))
        facts.append(
            RowVersion(
                table=SESSION,
                leaf=leaf,
                reverted_from=position,
                restored=restored,
                row=snapshot.session,
                stored_in=None if snapshot.session_table == SESSION else snapshot.session_table,
            )
        )
    for table, key, row in snapshot.others:
        if table == PROJECT:
            facts.append(RowVersion(table=table, key=key, row=row))
        else:
            lines[table, key] = encode_line(RowVersion(table=table, key=key, row=row))
    # An empty list is news only after one that was not.
    if snapshot.todo or (snapshot.todo is not None and (TO_DOS, "") in log):
        facts.append(RowVersion(table=TO_DOS, rows=snapshot.todo))
    changed = [to_int(row.get("time_updated")) for row in snapshot.todo or ()]
    times = [time_of(snapshot.info, "updated"), *changed]
    return _with_positions(facts, max(newest, time_position(max(times))), log) | lines


def _with_positions(facts: list[RowVersion], since: int, log: Log) -> Log:
    """Facts about the whole session, with the positions from which on they hold.

    A fact that is equal in the log keeps its position. A new one holds from `since` on, and after all facts of the log.
    """
    before = {
        line.table: decode_line(log[line.table, line.key]).position for line in facts if (line.table, line.key) in log
    }
    now = max(since, 1 + max((position or 0 for position in before.values()), default=0))
    lines: Log = {}
    for line in facts:
        key = (line.table, line.key)
        same = encode_line(msgspec.structs.replace(line, position=before.get(line.table)))
        lines[key] = same if log.get(key) == same else encode_line(msgspec.structs.replace(line, position=now))
    return lines


def _was_reverted(line: bytes | None) -> bool:
    found = decode_line(line) if line else None
    return found is not None and (found.leaf is not None or found.restored)


_FIXED = ("position", "turn", "step", "parent", "copy_of", "own_id")
"""Facts of a timeline entry that must not differ between lines of one log."""


def _has_moved(before: TimelineEntry, now: TimelineEntry) -> bool:
    return any(getattr(before, name) != getattr(now, name) for name in _FIXED)


# -- a message whose rows have changed
#
# Of two versions of a message the one with the later time holds as a whole, and two of one time are merged. Rows that
# grow have a later time, or say all that they said before. Where a row is gone, or a database was restored, neither is
# so: then the line has a time of its own.


class _Reading(NamedTuple):
    """What a line of a message says."""

    steps: tuple[StepMessage, ...] = ()
    at: datetime | None = None
    """When it was last changed."""

    @property
    def ids(self) -> set[str]:
        return {step.message.id for step in self.steps}


def _with_time(line: RowVersion, logged: bytes | None) -> tuple[bytes, bool]:
    """The line of a message, later than its version in the log if need be, and whether no time can make it so.

    Then the log must be written anew: it has a step that is gone, or a message that was removed and is back, or copies,
    which have no time.
    """
    now = encode_line(line)
    if logged is None or logged == now:
        return now, False
    before = decode_line(logged)
    if before.entry is not None and before.entry.since is not None:
        same = encode_line(_since(line, before.entry.since))
        if same == logged:
            return same, False
    old, new = _read(before), _read(line)
    contradicts = bool(old.ids - new.ids) or (before.deleted and not line.deleted)
    # A version of which nothing can be read has a time too, so that the one after it is later than all before.
    if old.at is None or (new.at is None and new.steps):
        return now, contradicts or is_mixed(old.steps, new.steps)
    if new.at is not None and (new.at > old.at or (new.at == old.at and not is_mixed(old.steps, new.steps))):
        return now, contradicts
    return encode_line(_since(line, round(old.at.timestamp() * 1000) + 1)), contradicts


def _since(line: RowVersion, milliseconds: int) -> RowVersion:
    entry = line.entry or TimelineEntry(position=0)
    return msgspec.structs.replace(line, entry=msgspec.structs.replace(entry, since=milliseconds))


def _read(line: RowVersion) -> _Reading:
    info, parts = list_message(MessageRows(line.key, line.row, line.parts))[1:3]
    parts = parts or [object_of(part) for part in list_of(info.get("parts"))]
    entry = line.entry or TimelineEntry(position=0)
    if info.get("role") not in ("user", "assistant"):
        return _Reading(at=to_datetime(entry.since))
    steps = tuple(read_message(line.key, info, parts, entry, version=None, updated_at=None))
    return _Reading(steps, None if entry.copy_of else to_datetime(entry.since) or updated_at(line, info, parts))


# -- restoring rows


_KEYS = {
    "event": ("id",),
    "event_sequence": ("aggregate_id",),
    "message": ("id",),
    "part": ("id",),
    "project": ("id",),
    "session": ("id",),
    "session_context_epoch": ("session_id",),
    "session_inbox": ("id",),
    "session_input": ("id",),
    "session_message": ("id",),
    "session_pending": ("id",),
    "session_v2": ("id",),
    "todo": ("session_id", "position"),
}
"""Table -> its primary key."""


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """See `RowAgent.restore_rows`."""
    lines = [decode_line(line) for line in newest_lines(log).values()]
    rows = [(table, row) for line in lines if not line.deleted for table, row in _rows(line)]
    in_database = database_session_of(source.path)
    if in_database is None:
        return [_write_file(row, to) for _, row in rows if "file" in row]
    target = to / os.path.relpath(in_database[0], source.root)
    make_folders(target.parent, to)
    try:
        refuse_other_than_file(target)
    except OSError as error:
        raise ConflictError(f"{target}: {error.strerror}") from error
    target.touch(0o600)
    _write_tables(rows, target)
    return [target]


def _rows(line: RowVersion) -> Iterator[tuple[str, Row]]:
    """The rows in a line, each with its table."""
    if line.row:
        table = line.stored_in if line.stored_in in _KEYS else line.table
        yield SESSION_MESSAGE if is_session_message(line.row) else table, line.row
    part_table = "part" if line.table == MESSAGE else line.table
    for row in line.parts:
        yield part_table, row
    if line.table == TO_DOS:
        for row in line.rows:
            yield TO_DOS, row


def _write_tables(rows: Iterable[tuple[str, Row]], target: Path) -> None:
    rows = list(rows)
    needed = _READ_COLUMNS | (_NEWER_COLUMNS if any(table == SESSION_V2 for table, _ in rows) else {})
    with closing(sqlite3.connect(target)) as connection, connection, completed(connection, needed):
        for table, row in rows:
            _ensure_columns(connection, table, row)
            if not _has_row(connection, table, row, target):
                columns = ", ".join(map(quoted, row))
                marks = ", ".join("CAST(? AS TEXT)" if _is_invalid_text(value) else "?" for value in row.values())
                values = [_parameter(value) for value in row.values()]
                connection.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', values)


_READ_COLUMNS = {
    "session": {"id"},
    "message": {"id", "session_id", "data", "time_created", "time_updated"},
    "part": {"id", "message_id", "session_id", "data", "time_updated"},
}
"""What queries name, so a restored database has it also without a row."""


_NEWER_COLUMNS = {
    SESSION_V2: {"id"},
    SESSION_MESSAGE: {"id", "session_id", "type", "data", "time_created", "time_updated", "seq"},
}
"""The same of a session of 2.x."""


def _ensure_columns(connection: sqlite3.Connection, table: str, row: Row) -> None:
    known = {name: kind for _, name, kind, *_ in connection.execute(f'PRAGMA table_info("{table}")')}
    if not known:
        columns = ", ".join(f"{quoted(name)} {_type_of(value)}".rstrip() for name, value in row.items())
        keys = ", ".join(f'"{name}"' for name in _KEYS[table])
        connection.execute(f'CREATE TABLE "{table}" ({columns}, PRIMARY KEY ({keys}))')
    for name in row.keys() - known.keys() if known else ():
        connection.execute(f'ALTER TABLE "{table}" ADD COLUMN {quoted(name)}')


def _has_row(connection: sqlite3.Connection, table: str, row: Row, target: Path) -> bool:
    """Whether the table has the row already. Raises ConflictError if it has another row with the same key."""
    keys = _KEYS[table]
    condition = " AND ".join(f'"{name}" = ?' for name in keys)
    cursor = connection.execute(f'SELECT * FROM "{table}" WHERE {condition}', [row[name] for name in keys])
    found = cursor.fetchone()
    if found is None:
        return False
    present = {column[0]: value for column, value in zip(cursor.description, found, strict=True)}
    if any(present[name] != _parameter(value) for name, value in row.items() if not _is_invalid_text(value)):
        raise ConflictError(f"{target} has another row {[row[name] for name in keys]} in {table} already")
    return True


def _type_of(value: object) -> str:
    return "INTEGER" if isinstance(value, int) else "REAL" if isinstance(value, float) else ""


def _parameter(value: object) -> object:
    return bytes_of(object_of(value)) if object_of(value) else value


def _is_invalid_text(value: object) -> bool:
    """Whether a value is a text that is not UTF-8."""
    # JSON of any shape: the checker cannot know what a dict holds.
    return isinstance(value, dict) and not is_blob(value)  # pyright: ignore[reportUnknownArgumentType]


def _write_file(row: Row, to: Path) -> Path:
    relative = PurePosixPath(row["file"])
    if relative.is_absolute() or ".." in relative.parts:
        raise StoreError(f"{relative} has no place in {to}")
    target = to / relative
    data = bytes_of(row["text"]) or b""
    if target.is_symlink() or target.exists():
        if target.is_symlink() or not target.is_file() or target.read_bytes() != data:
            raise ConflictError(f"{target} is there already with other content")
        return target
    make_folders(target.parent, to)
    write_atomically(target, data, mode=0o600)
    os.utime(target, ns=(row["mtime_ns"], row["mtime_ns"]))
    return target
