"""Messages of a session in SQLite: whole, as places without contents, and the records they were made from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Container, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnlog.errors import NotFoundError
from turnlog.history.order import place_results, result_positions
from turnlog.model import Cost, Fate, Membership, Message, Provenance, ToolCallPart, ToolKind, ToolResult
from turnlog.model.codec import encode
from turnlog.model.message import part_ids
from turnlog.store import bodies
from turnlog.store.archive import Archive, RecordReader
from turnlog.store.external_content import BlobLoader, WholeBodies
from turnlog.store.frames import BODY_COLUMNS, PLACE, BodyPlace
from turnlog.store.keys import FIND_MESSAGE, find_key, session_key
from turnlog.store.packed_columns import PARENT_ID, unpack_ids, unpack_records
from turnlog.store.rows import dollars
from turnlog.store.sqlite.reading import Connections, Span, decode_cursor, encode_cursor, held, select_span
from turnlog.store.sqlite.runs import OF_RUN, find_run
from turnlog.store.values import MessagePlace, Page, PlacedMessage, RawRecord, StoredPart

if TYPE_CHECKING:
    from turnlog.agents.base import Agent

_PLACES = "SELECT s.position, m.external_id, m.role FROM {held} s JOIN messages m ON m.key = s.message_key"
_BODIES = f"SELECT m.external_id, {BODY_COLUMNS} FROM {{held}} s JOIN messages m ON m.key = s.message_key"

_BLOB_MARK = b'blob":'
"""Occurs in every body that refers to a blob, and in some others."""


class _PlacedRow(NamedTuple):
    """The row of a message in a session: its place, its cost, and the place of its body."""

    message_id: str
    session_key: int
    position: int
    parent_id: str | None
    parent_record: str | None
    turn: int | None
    step: int | None
    fate: str
    fate_cause: str | None
    billed_key: int | None
    records: bytes | None
    source: str | None
    source_key: int | None
    generation: int
    cost: int | None
    price_version: str | None
    body: BodyPlace

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> _PlacedRow:
        return cls._make((*row[: PLACE.start], BodyPlace._make(row[PLACE])))


def _select_placed(table: str, *, parent_record: str = "s.parent_record", fate: str = "s.fate") -> str:
    """Select the messages `m` of a table of places, which conditions call `s`."""
    return (
        f"SELECT m.external_id, s.session_key, s.position, {PARENT_ID}, {parent_record}, s.turn, s.step, {fate},"
        " s.fate_cause, m.billed_key, s.records, f.path, s.source_key, s.generation, m.cost, v.name,"
        f" {BODY_COLUMNS}"
        f" FROM {table} s JOIN messages m ON m.key = s.message_key LEFT JOIN sources f ON f.key = s.source_key"
        " LEFT JOIN price_versions v ON v.key = m.price_key"
    )


_SELECT_MEMBERS = _select_placed("memberships")

_SELECT_SUPERSEDED = _select_placed("superseded", parent_record="NULL", fate="'superseded'")
"""SQL: the session has places that its own log superseded (`store.reconcile.lesser_sources`), which is rare."""


_SESSION_ID = "(SELECT agent || ':' || external_id FROM sessions WHERE key = s.session_key)"
"""SQL: the id of the session of a place, which orders places alike in every store."""


class MessageQueries(Connections):
    """The queries of `Store` about messages."""

    def messages(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int | None = None,
        fates: Iterable[Fate] | None = None,
        structured: Container[ToolKind] = (),
        resolve_blobs: bool = True,
    ) -> list[PlacedMessage]:
        wanted = None if fates is None else [str(fate) for fate in fates]
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            select = _select_placed(held(connection, key))
            condition = "1" if wanted is None else _fate_in(wanted)
            span = Span(after, before, around, limit)
            rows = [_PlacedRow.of(row) for row in select_span(connection, select, key, span, condition, wanted or ())]
            return _whole(connection, session_id, rows, structured, resolve_blobs=resolve_blobs)

    def messages_at(
        self, session_id: str, positions: Collection[int], *, structured: Container[ToolKind] = ()
    ) -> list[PlacedMessage]:
        condition, values = "s.position IN (SELECT value FROM json_each(?))", (json.dumps(sorted(positions)),)
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            found = select_span(connection, _select_placed(held(connection, key)), key, Span(), condition, values)
            rows = [_PlacedRow.of(row) for row in found]
            return _whole(connection, session_id, rows, structured, resolve_blobs=True)

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        with self._snapshot() as connection:
            row = _membership_row(connection, message_id, session_id)
            owner = _session_id(connection, row.session_key)
            message = next(_place(connection, owner, [row], resolve_blobs=resolve_blobs)).message
            return _StructuredResults(connection, owner, ToolKind).fill(row, message) if structured else message

    def part(self, part_id: str, *, session_id: str | None = None) -> StoredPart:
        with self._snapshot() as connection:
            for message_id in _messages_of_part(connection, part_id):
                message = self.message(message_id, session_id=session_id, structured=True)
                ids = part_ids(message)
                if part_id in ids:
                    sequence = ids.index(part_id)
                    return StoredPart(part_id, message_id, sequence, message.parts[sequence])
        raise NotFoundError(f"there is no part {part_id}")

    def run_messages(
        self, run_id: str, *, limit: int = 50, cursor: str | None = None, resolve_blobs: bool = True
    ) -> Page[PlacedMessage]:
        last = decode_cursor("run-messages", (int, int), cursor)
        with self._snapshot() as connection:
            run = find_run(connection, run_id)
            key = None if run.session_id is None else find_key(connection, run.session_id)
            if run.session_id is None or key is None:
                return Page(())
            condition, values = f"EXISTS (SELECT 1 FROM runs r WHERE r.id = ? AND {OF_RUN})", [run.id]
            if last is not None:
                condition, values = f"{condition} AND (s.position, s.message_key) > (?, ?)", [*values, *last]
            select = _select_placed(held(connection, key))
            found = select_span(connection, select, key, Span(limit=limit + 1), condition, values)
            rows = [_PlacedRow.of(row) for row in found[:limit]]
            placed = tuple(_place(connection, run.session_id, rows, resolve_blobs=resolve_blobs))
            following = None
            if len(found) > limit:
                place = (rows[-1].position, _message_key(connection, run.session_id, rows[-1].message_id))
                following = encode_cursor("run-messages", *place)
            return Page(placed, following)

    def memberships(self, message_id: str) -> list[Membership]:
        with self._snapshot() as connection:
            return [
                _membership(row, _session_id(connection, row.session_key), _parents(connection, [row]))
                for row in _membership_rows(connection, message_id)
            ]

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        with self._snapshot() as connection:
            row = _membership_row(connection, message_id, session_id)
            if row.source_key is None:
                return []
            archive = Archive(connection)
            return [
                RawRecord(place, archive.read(row.source_key, row.generation, place.offset or 0, place.length or 0))
                for place in _provenance(row)
            ]

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        wanted = [str(fate) for fate in fates]
        span = Span(after=None if since is None else since - 1, limit=limit)
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            select = _PLACES.format(held=held(connection, key))
            return [MessagePlace(*row) for row in select_span(connection, select, key, span, _fate_in(wanted), wanted)]

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        wanted = [str(fate) for fate in fates]
        span = Span(after=first - 1, before=last + 1)
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            select = _BODIES.format(held=held(connection, key))
            rows = select_span(connection, select, key, span, _fate_in(wanted), wanted)
            read = WholeBodies(connection)
            found = {message_id: read(*place) for message_id, *place in rows}
            return _resolve(connection, found) if resolve_blobs else found

    def child_sessions(self, session_id: str) -> dict[str, str]:
        with self._snapshot() as connection:
            session_key(connection, session_id)  # raises if it is not stored
            return children_of_calls(connection, session_id)


def _whole(
    connection: sqlite3.Connection,
    session_id: str,
    rows: list[_PlacedRow],
    structured: Container[ToolKind],
    *,
    resolve_blobs: bool,
) -> list[PlacedMessage]:
    """The messages of these rows, with the agent's own JSON of results of these kinds of calls."""
    placed = _place(connection, session_id, rows, resolve_blobs=resolve_blobs)
    if not structured:
        return list(placed)
    results = _StructuredResults(connection, session_id, structured)
    return [
        msgspec.structs.replace(each, message=results.fill(row, each.message))
        for row, each in zip(rows, placed, strict=True)
    ]


def messages_at(connection: sqlite3.Connection, session_id: str, positions: Iterable[int]) -> list[PlacedMessage]:
    """The messages of a session at these positions, in order; large contents are references."""
    key = session_key(connection, session_id)
    select = _select_placed(held(connection, key))
    wanted = json.dumps(list(positions))
    found = select_span(connection, select, key, Span(), "s.position IN (SELECT value FROM json_each(?))", (wanted,))
    return list(_place(connection, session_id, [_PlacedRow.of(row) for row in found], resolve_blobs=False))


def position_of(connection: sqlite3.Connection, session_id: str, message_id: str) -> int | None:
    """The position of a message in a session; None if the session does not contain it."""
    key = session_key(connection, session_id)
    try:
        rows = _membership_rows(connection, message_id)
    except NotFoundError:
        return None
    return next((row.position for row in rows if row.session_key == key), None)


def children_of_calls(connection: sqlite3.Connection, session_id: str) -> dict[str, str]:
    """Tool call id -> id of the subagent session that it started.

    The copy of a call in a fork has the subagents of the session it was copied from.
    """
    rows = connection.execute(
        "WITH RECURSIVE origin (id) AS (SELECT ? UNION SELECT l.parent_id FROM links l JOIN origin o"
        " ON l.child_id = o.id AND l.kind <> 'subagent')"
        " SELECT coalesce(l.tool_call_id, l.found_call_id) AS call, l.child_id FROM links l JOIN origin o"
        " ON l.parent_id = o.id WHERE l.kind = 'subagent' AND coalesce(l.tool_call_id, l.found_call_id) IS NOT NULL"
        " ORDER BY l.child_id DESC",
        (session_id,),
    )
    # Of several children of one call, the last row counts: the one with the smallest id, whatever was read first.
    return dict(rows.fetchall())


def _messages_of_part(connection: sqlite3.Connection, part_id: str) -> list[str]:
    """The messages that may have a part of this id, those with the longest ids first: both ids may have dots."""
    # The unique index of messages begins with the agent, which a part's id does not name: all agents are tried.
    dots = [index for index, letter in enumerate(part_id) if letter == "."]
    rows = connection.execute(
        "SELECT external_id FROM messages WHERE agent IN (SELECT DISTINCT agent FROM sessions)"
        " AND external_id IN (SELECT value FROM json_each(?)) GROUP BY external_id ORDER BY length(external_id) DESC",
        (json.dumps([part_id[:dot] for dot in dots]),),
    )
    return [row[0] for row in rows]


def _message_key(connection: sqlite3.Connection, session_id: str, message_id: str) -> int:
    """The key of a message that a session holds."""
    return connection.execute(
        "SELECT m.key FROM messages m JOIN memberships s ON s.message_key = m.key AND s.session_key = ?"
        " WHERE m.agent = ? AND m.external_id = ?",
        (session_key(connection, session_id), session_id.partition(":")[0], message_id),
    ).fetchone()[0]


def result_places(position: int, records: bytes | None) -> dict[str, int]:
    """Result id -> position of the record with the result, for the message at `position`."""
    return result_positions(position, unpack_records(records))


def _place(
    connection: sqlite3.Connection, session_id: str, rows: list[_PlacedRow], *, resolve_blobs: bool
) -> Iterator[PlacedMessage]:
    children = children_of_calls(connection, session_id)
    parents = _parents(connection, rows)
    loader, read = BlobLoader(connection), WholeBodies(connection)
    for row in rows:
        message = bodies.decode(read(*row.body))
        if resolve_blobs:
            message = bodies.resolve(message, loader)
        message = place_results(message, result_places(row.position, row.records), children)
        yield PlacedMessage(message, _membership(row, session_id, parents), _cost(row))


def _membership(row: _PlacedRow, session_id: str, parents: dict[str, str]) -> Membership:
    return Membership(
        session_id=session_id,
        message_id=row.message_id,
        position=row.position,
        parent_id=row.parent_id or parents.get(row.parent_record or ""),
        turn=row.turn,
        step=row.step,
        fate=Fate(row.fate),
        fate_cause=row.fate_cause,
        is_billed=row.billed_key == row.session_key,
        records=_provenance(row),
    )


def _provenance(row: _PlacedRow) -> tuple[Provenance, ...]:
    if row.source is None:
        return ()
    places = dict.fromkeys((offset, length) for offset, length, _ in unpack_records(row.records) if length)
    return tuple(Provenance(source=row.source, offset=offset, length=length) for offset, length in places)


def _cost(row: _PlacedRow) -> Cost | None:
    return None if row.cost is None else dollars(row.cost, price_version=row.price_version)


def _parents(connection: sqlite3.Connection, rows: Iterable[_PlacedRow]) -> dict[str, str]:
    """Record id -> message id, for a session with parents that a fold knew only by their record."""
    # Most sessions have none, and reading all record ids of a session is slow.
    row = next((row for row in rows if row.parent_id is None and row.parent_record is not None), None)
    if row is None:
        return {}
    found: dict[str, str] = dict(
        connection.execute(
            "SELECT record_id, parent_id FROM events"
            " WHERE session_key = ? AND record_id IS NOT NULL AND parent_id IS NOT NULL",
            (row.session_key,),
        ).fetchall()
    )
    members = connection.execute(
        "SELECT m.external_id, s.record_ids FROM memberships s JOIN messages m ON m.key = s.message_key"
        " WHERE s.session_key = ? AND s.record_ids IS NOT NULL",
        (row.session_key,),
    )
    for message_id, record_ids in members:
        for record_id in unpack_ids(record_ids, message_id):
            found[record_id] = message_id
    return found


def _membership_rows(connection: sqlite3.Connection, message_id: str) -> list[_PlacedRow]:
    """All places of a message, that in the billed session first."""
    found = connection.execute(FIND_MESSAGE, (message_id,)).fetchall()
    rows: list[tuple[Any, ...]] = []
    for key in found:
        rows += connection.execute(
            f"{_SELECT_MEMBERS} WHERE m.key = ? ORDER BY s.session_key IS NOT m.billed_key, {_SESSION_ID}", key
        ).fetchall()
        rows += connection.execute(f"{_SELECT_SUPERSEDED} WHERE m.key = ? ORDER BY {_SESSION_ID}", key).fetchall()
    if not rows:
        raise NotFoundError(f"there is no message {message_id}")
    return [_PlacedRow.of(row) for row in rows]


def _membership_row(connection: sqlite3.Connection, message_id: str, session_id: str | None) -> _PlacedRow:
    rows = _membership_rows(connection, message_id)
    if session_id is None:
        return rows[0]
    key = session_key(connection, session_id)
    for row in rows:
        if row.session_key == key:
            return row
    raise NotFoundError(f"session {session_id} does not hold message {message_id}")


def _session_id(connection: sqlite3.Connection, key: int) -> str:
    agent, external_id = connection.execute("SELECT agent, external_id FROM sessions WHERE key = ?", (key,)).fetchone()
    return f"{agent}:{external_id}"


def _fate_in(fates: list[str]) -> str:
    return f"s.fate IN ({','.join('?' * len(fates))})"


def _resolve(connection: sqlite3.Connection, found: dict[str, bytes]) -> dict[str, bytes]:
    loader = BlobLoader(connection)
    for message_id, body in found.items():
        if _BLOB_MARK in body:
            found[message_id] = encode(bodies.resolve(bodies.decode(body), loader))
    return found


def _result_records(row: _PlacedRow) -> dict[str, tuple[int, int]]:
    """Result id -> offset and length of the record with the result: the message's own if that contains it."""
    records = unpack_records(row.records)
    own = next(((offset, length) for offset, length, what in records if what is None), None)
    places = {what: (offset, length) for offset, length, what in records if isinstance(what, str)}
    return {what: place if place[1] or own is None else own for what, place in places.items()}


class _StructuredResults:
    """Reads the agent's own JSON of results from the records that contain them."""

    def __init__(self, connection: sqlite3.Connection, session_id: str, kinds: Container[ToolKind]) -> None:
        self._name = session_id.partition(":")[0]
        self._kinds = kinds
        self._archive = RecordReader(Archive(connection))

    def fill(self, row: _PlacedRow, message: Message) -> Message:
        """The message with the agent's own JSON of results of these kinds of calls."""
        wanted = [part for part in message.parts if isinstance(part, ToolCallPart) and part.kind in self._kinds]
        if not wanted or row.source_key is None:
            return message
        places = _result_records(row)
        filled = {id(call): self._filled(call, row, places) for call in wanted}
        return msgspec.structs.replace(message, parts=tuple([filled.get(id(part), part) for part in message.parts]))

    @cached_property
    def _agent(self) -> Agent | None:
        # Agents of other packages are found through entry points, which is slow: import only when needed.
        from turnlog.agents import agent

        try:
            return agent(self._name)
        except Exception:  # An exception in another package must not make a message unreadable.
            return None

    def _filled(self, call: ToolCallPart, row: _PlacedRow, places: dict[str, tuple[int, int]]) -> ToolCallPart:
        results = tuple([self._result(call, result, row, places.get(result.id)) for result in call.results])
        return msgspec.structs.replace(call, results=results)

    def _result(
        self, call: ToolCallPart, result: ToolResult, row: _PlacedRow, place: tuple[int, int] | None
    ) -> ToolResult:
        if place is None or row.source_key is None or self._agent is None:
            return result
        record = self._archive.read(row.source_key, row.generation, *place)
        structured = self._agent.structured_result(record, call.tool_call_id)
        return result if structured is None else msgspec.structs.replace(result, structured=structured)
