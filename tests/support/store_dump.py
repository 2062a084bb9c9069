"""All that a store says, in words that are the same on every machine: two stores that say the same are equal.

Leaves out what is private to a store file (keys, revisions, places in the change sequence, the time of reading) and
what derives from nothing in the logs.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from turnlog.model.usage import BUCKETS
from turnlog.store import zstd
from turnlog.store.archive import Archive
from turnlog.store.external_content import WholeBodies
from turnlog.store.frames import BODY_COLUMNS, MOST_TOGETHER, BodyPlace, BodyReader
from turnlog.store.packed_columns import PARENT_ID, unpack_data, unpack_ids, unpack_records
from turnlog.store.rows import CALL_COLUMNS, MESSAGE_COLUMNS, MESSAGE_COUNTS, USAGE_COUNTS

Dump: TypeAlias = dict[str, dict[str, Any]]

_PRIVATE = frozenset({"key", "revision", "changed_seq", "model_key", "price_key", "billed_key"})

_PAID = "role = 'assistant' AND billed_key IS NOT NULL"

_ARCHIVED = re.compile(rb'\{"\$archived":\[(\d+),')
"""A place in the archive that a stored body names, and its source."""

_NAMES = "WITH names AS (SELECT key, agent || ':' || external_id AS id FROM sessions)"


def dump(connection: sqlite3.Connection) -> Dump:
    """Table -> what it says, by the ids of what it speaks of."""
    return {
        "sources": _sources(connection),
        "archive": _archive(connection),
        "sessions": _sessions(connection),
        "messages": _messages(connection),
        "bodies": _bodies(connection),
        "memberships": _memberships(connection),
        "parts": _parts(connection),
        "events": _events(connection),
        "links": _rows(connection, "SELECT child_id, parent_id, kind, * FROM links", 3),
        "spills": _rows(
            connection,
            "SELECT p.session_id, p.name, s.path, p.media_type, p.size FROM spills p"
            " JOIN sources s ON s.key = p.source_key",
            2,
        ),
        "diagnostics": _rows(
            connection,
            "SELECT s.path, d.generation, d.offset, d.reason, d.length, d.line, d.json_path, d.severity"
            " FROM diagnostics d JOIN sources s ON s.key = d.source_key",
            4,
        ),
        "usage": _usage(connection),
        "call totals": _rows(
            connection,
            f"{_NAMES} SELECT t.tool_name, t.tool_kind, t.command, coalesce(o.name, ''), t.quarter_hour, n.id, t.calls,"
            " t.failed, t.denied, t.aborted, t.open, t.duration_ms, t.unknown_durations FROM call_totals t"
            " JOIN names n ON n.key = t.session_key LEFT JOIN models o ON o.key = t.model_key",
            6,
        ),
        "edit totals": _rows(
            connection,
            f"{_NAMES} SELECT t.path, n.id, t.quarter_hour, t.edits FROM edit_totals t"
            " JOIN names n ON n.key = t.session_key",
            3,
        ),
        "blobs": _blobs(connection),
    }


def differences(one: Dump, other: Dump) -> list[str]:
    """What two dumps say differently, a line each."""
    return [
        f"{table} {key}: {one[table].get(key)} != {other[table].get(key)}"
        for table in one
        for key in sorted({*one[table], *other[table]})
        if one[table].get(key) != other[table].get(key)
    ]


def _rows(connection: sqlite3.Connection, query: str, key_columns: int) -> dict[str, Any]:
    """Rows by the words of their first columns; every row must have a key of its own."""
    rows = connection.execute(query).fetchall()
    found = {" ".join(str(word) for word in row[:key_columns]): row[key_columns:] for row in rows}
    assert len(found) == len(rows), query
    return found


def _sources(connection: sqlite3.Connection) -> dict[str, Any]:
    columns = "path, agent, root, kind, session_id, appendable, size, generation, cursor, head_hash, tail_hash,"
    rows = _rows(
        connection, f"SELECT {columns} parser_version, lines, vanished_at IS NULL, problem, state FROM sources", 1
    )
    return {path: (*words, state and zstd.decompress(state)) for path, (*words, state) in rows.items()}


def _archive(connection: sqlite3.Connection) -> dict[str, Any]:
    archive = Archive(connection)
    return {
        f"{path} {generation.number}": (
            b"".join(archive.iter_bytes(key, generation.number)),
            generation.size,
            generation.shared_prefix,
            generation.mode,
        )
        for key, path in connection.execute("SELECT key, path FROM sources").fetchall()
        for generation in archive.generations(key)
    }


def _sessions(connection: sqlite3.Connection) -> dict[str, Any]:
    counts = ", ".join(f"s.{name}" for name in (*MESSAGE_COUNTS, "events", *USAGE_COUNTS))
    return _rows(
        connection,
        f"{_NAMES} SELECT n.id, s.native, p.path, s.title, s.title_source, s.cwd, s.git_branch, s.git_commit,"
        " s.agent_version, s.created_at, s.updated_at, parent.id, s.relationship, s.shares, s.has_branches,"
        f" s.active_leaf, s.facts_position, s.turns, s.titles, s.metadata, s.reported_cost, {counts}"
        " FROM sessions s JOIN names n ON n.key = s.key LEFT JOIN projects p ON p.key = s.project_key"
        " LEFT JOIN names parent ON parent.key = s.parent_key",
        1,
    )


def _messages(connection: sqlite3.Connection) -> dict[str, Any]:
    columns = ", ".join(f"m.{name}" for name in MESSAGE_COLUMNS if name not in _PRIVATE)
    return _rows(
        connection,
        f"{_NAMES} SELECT m.external_id, {columns}, o.name, v.name, n.id FROM messages m"
        " LEFT JOIN models o ON o.key = m.model_key LEFT JOIN price_versions v ON v.key = m.price_key"
        " LEFT JOIN names n ON n.key = m.billed_key",
        1,
    )


def _bodies(connection: sqlite3.Connection) -> dict[str, Any]:
    rows = connection.execute(f"SELECT m.external_id, {BODY_COLUMNS} FROM messages m").fetchall()
    read = WholeBodies(connection)
    return {name: read(*place).decode() for name, *place in rows}


def _memberships(connection: sqlite3.Connection) -> dict[str, Any]:
    rows = _rows(
        connection,
        f"{_NAMES} SELECT n.id, m.external_id, s.position, f.path, s.generation, {PARENT_ID}, s.parent_record, s.turn,"
        " s.step, s.fate, s.fate_cause, s.copied, s.records, s.record_ids, m.external_id FROM memberships s"
        " JOIN names n ON n.key = s.session_key JOIN messages m ON m.key = s.message_key"
        " LEFT JOIN sources f ON f.key = s.source_key",
        2,
    )
    return {
        key: (*place, unpack_records(records), sorted(unpack_ids(ids, message_id)))
        for key, (*place, records, ids, message_id) in rows.items()
    }


def _parts(connection: sqlite3.Connection) -> dict[str, Any]:
    columns = ", ".join(f"p.{name}" for name in (*CALL_COLUMNS[1:], "media_type"))
    return _rows(
        connection,
        f"SELECT m.external_id, p.sequence, {columns} FROM parts p JOIN messages m ON m.key = p.message_key",
        2,
    )


def _events(connection: sqlite3.Connection) -> dict[str, Any]:
    rows = _rows(
        connection,
        f"{_NAMES} SELECT n.id, e.position, e.external_id, e.type, e.kind, e.known, e.created_at, f.path, e.generation,"
        " e.length, e.record_id, e.parent_id, e.data, e.body FROM events e JOIN names n ON n.key = e.session_key"
        " LEFT JOIN sources f ON f.key = e.source_key",
        3,
    )
    return {
        key: (*words, unpack_data(data), body and zstd.decompress(body)) for key, (*words, data, body) in rows.items()
    }


def _usage(connection: sqlite3.Connection) -> dict[str, Any]:
    counts = ", ".join(f"u.{name}" for name in (*USAGE_COUNTS, "reported_cost"))
    return _rows(
        connection,
        f"{_NAMES} SELECT u.quarter_hour, coalesce(o.name, ''), n.id, u.is_total, {counts} FROM usage u"
        " JOIN names n ON n.key = u.session_key LEFT JOIN models o ON o.key = u.model_key",
        4,
    )


def _blobs(connection: sqlite3.Connection) -> dict[str, Any]:
    return _rows(
        connection,
        "SELECT hex(b.sha256), b.size, b.media_type, b.compressed, hex(b.data),"
        " (SELECT group_concat(id) FROM (SELECT m.external_id AS id FROM blob_uses u JOIN messages m"
        " ON m.key = u.message_key WHERE u.sha256 = b.sha256 ORDER BY 1)) FROM blobs b",
        1,
    )


def check_integrity(connection: sqlite3.Connection) -> None:
    """What must hold in every store: no damage, no dangling keys, totals that are the sums of what they total."""
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    for name in USAGE_COUNTS:
        by_session = "SELECT key, 1 * {0} FROM sessions WHERE {0} <> 0 ORDER BY 1"
        by_time = "SELECT session_key, sum({0}) FROM usage GROUP BY 1 HAVING sum({0}) <> 0 ORDER BY 1"
        assert connection.execute(by_session.format(name)).fetchall() == (
            connection.execute(by_time.format(name)).fetchall()
        ), name
    for name in (*BUCKETS, "cost"):
        # Totals of whole sessions are in no message.
        of_calls = f"SELECT session_key, sum({name}) FROM usage WHERE NOT is_total GROUP BY 1 HAVING sum({name}) <> 0"
        paid = f"SELECT billed_key, sum({name}) FROM messages WHERE {_PAID} GROUP BY 1 HAVING sum({name}) <> 0"
        assert connection.execute(f"{of_calls} ORDER BY 1").fetchall() == (
            connection.execute(f"{paid} ORDER BY 1").fetchall()
        ), name
    _check_frames(connection)
    counted = "SELECT s.key, s.messages, s.turns, s.events FROM sessions s ORDER BY 1"
    # What the file of a session no longer has is kept, and not counted.
    recounted = (
        "SELECT s.key, count(m.session_key), coalesce(max(m.turn), 0),"
        " (SELECT count(*) FROM events WHERE session_key = s.key) FROM sessions s"
        " LEFT JOIN memberships m ON m.session_key = s.key AND m.fate <> 'superseded' GROUP BY 1 ORDER BY 1"
    )
    assert connection.execute(counted).fetchall() == connection.execute(recounted).fetchall()
    # What a file said of a message that it still has is not paid: the call is paid with what the file says now.
    unpaid = (
        "SELECT count(*) FROM messages WHERE billed_key IS NULL AND key NOT IN (SELECT message_key FROM memberships"
        " WHERE fate = 'superseded' AND fate_cause IS NOT NULL) AND"
        " (key IN (SELECT message_key FROM memberships) OR key NOT IN (SELECT message_key FROM superseded))"
    )
    assert connection.execute(unpaid).fetchone() == (0,)


def _check_frames(connection: sqlite3.Connection) -> None:
    """Every body has its frame, alone where the key says so, and no row of frames is left that no message is in."""
    used: dict[int, list[tuple[int, BodyPlace]]] = {}
    for key, *place in connection.execute(f"SELECT m.key, {BODY_COLUMNS} FROM messages m"):
        used.setdefault(place[0], []).append((key, BodyPlace(*place)))
    rows = dict(connection.execute("SELECT key, data FROM frames").fetchall())
    assert rows.keys() == used.keys()
    read = BodyReader(connection)
    named: set[tuple[int, int]] = set()
    for frame_key, members in used.items():
        if frame_key < 0:
            body = zstd.decompress(rows[frame_key])
            assert members == [(-frame_key, BodyPlace(frame_key, 0, len(rows[frame_key]), 0, len(body)))]
        for key, place in members:
            body = read(*place)
            assert len(body) == place.body_size
            assert body[:1] + body[-1:] == b"{}"
            assert frame_key < 0 or frame_key <= key < frame_key + MOST_TOGETHER
            named |= {(key, int(source)) for source in _ARCHIVED.findall(body)}
    assert named == set(connection.execute("SELECT message_key, source_key FROM archived_texts").fetchall())


def open_read_only(path: Path) -> sqlite3.Connection:
    """A store's file as it is, without turnlog."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def value_of(connection: sqlite3.Connection, query: str, *parameters: object) -> Any:
    """The one value that a query answers."""
    return connection.execute(query, parameters).fetchone()[0]


def json_of(text: str | bytes) -> Any:
    """JSON that a row holds, as Python values."""
    return msgspec.json.decode(text)
