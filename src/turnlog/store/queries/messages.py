"""Messages of a session with their places, single messages, and the records they came from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable, Iterator
from typing import Any

from turnlog.agents.changes import RecordRef
from turnlog.errors import NotFoundError
from turnlog.history.order import place_results, result_positions
from turnlog.model import Cost, Fate, Membership, Message, Provenance, ToolKind
from turnlog.store import bodies
from turnlog.store.archive import Archive
from turnlog.store.archived_texts import WholeBodies
from turnlog.store.base import PlacedMessage, RawRecord
from turnlog.store.blobs import BlobLoader
from turnlog.store.packed_columns import unpack_ids, unpack_records
from turnlog.store.queries.placed_rows import SELECT_MEMBERS, SELECT_SUPERSEDED, PlacedRow, select_placed
from turnlog.store.queries.spans import Span, held, select_span
from turnlog.store.queries.structured import StructuredResults
from turnlog.store.rows import dollars
from turnlog.store.session_keys import session_key

_FIND_MESSAGE = (
    "WITH RECURSIVE agents (name) AS (SELECT min(agent) FROM messages UNION ALL"
    " SELECT (SELECT min(agent) FROM messages WHERE agent > name) FROM agents WHERE name IS NOT NULL)"
    " SELECT found.key FROM agents CROSS JOIN messages found"
    " ON found.agent = agents.name AND found.external_id = ?"
)
"""Ids are unique within an agent: one look-up for each of the few there are, found by hopping along the same index."""


def load_messages(
    connection: sqlite3.Connection,
    session_id: str,
    span: Span,
    fates: Iterable[Fate] | None,
    *,
    structured: Container[ToolKind] = (),
    resolve_blobs: bool,
) -> list[PlacedMessage]:
    """Messages of a session in order; see `Store.messages`."""
    key = session_key(connection, session_id)
    wanted = None if fates is None else [str(fate) for fate in fates]
    condition = "1" if wanted is None else f"s.fate IN ({','.join('?' * len(wanted))})"
    select = select_placed(held(connection, key))
    rows = [PlacedRow.of(row) for row in select_span(connection, select, key, span, condition, wanted or ())]
    placed = _place(connection, session_id, rows, resolve_blobs=resolve_blobs)
    if not structured:
        return list(placed)
    filling = StructuredResults(connection, session_id, structured)
    return [each._replace(message=filling.fill(row, each.message)) for row, each in zip(rows, placed, strict=True)]


def load_messages_at(
    connection: sqlite3.Connection, session_id: str, positions: Iterable[int], *, resolve_blobs: bool
) -> list[PlacedMessage]:
    """The messages of a session at these positions, in order."""
    key = session_key(connection, session_id)
    select = select_placed(held(connection, key))
    wanted = json.dumps(list(positions))
    found = select_span(connection, select, key, Span(), "s.position IN (SELECT value FROM json_each(?))", (wanted,))
    return list(_place(connection, session_id, [PlacedRow.of(row) for row in found], resolve_blobs=resolve_blobs))


def position_of(connection: sqlite3.Connection, session_id: str, message_id: str) -> int | None:
    """Where a message stands in a session; None where it does not."""
    key = session_key(connection, session_id)
    try:
        rows = _membership_rows(connection, message_id)
    except NotFoundError:
        return None
    return next((row.position for row in rows if row.session_key == key), None)


def load_message(
    connection: sqlite3.Connection, message_id: str, session_id: str | None, *, structured: bool, resolve_blobs: bool
) -> Message:
    """One message; see `Store.message`."""
    row = _membership_row(connection, message_id, session_id)
    owner = _session_id(connection, row.session_key)
    found = next(_place(connection, owner, [row], resolve_blobs=resolve_blobs))
    return StructuredResults(connection, owner, ToolKind).fill(row, found.message) if structured else found.message


def load_memberships(connection: sqlite3.Connection, message_id: str) -> list[Membership]:
    """The place of a message in each session that holds it."""
    return [
        _membership(row, _session_id(connection, row.session_key), _parents(connection, [row]))
        for row in _membership_rows(connection, message_id)
    ]


def load_records(connection: sqlite3.Connection, message_id: str, session_id: str | None) -> list[RawRecord]:
    """The records that a message was made from, in the order of the log, none twice."""
    row = _membership_row(connection, message_id, session_id)
    if row.source_key is None:
        return []
    archive = Archive(connection)
    return [
        RawRecord(place, archive.read(row.source_key, row.generation, place.offset or 0, place.length or 0))
        for place in _provenance(row)
    ]


def children_of_calls(connection: sqlite3.Connection, session_id: str) -> dict[str, str]:
    """Tool call id -> id of the subagent session it started.

    A fork's copy of a call has the subagents of the session that the fork came out of.
    """
    rows = connection.execute(
        "WITH RECURSIVE origin (id) AS (SELECT ? UNION SELECT l.parent_id FROM links l JOIN origin o"
        " ON l.child_id = o.id AND l.kind <> 'subagent')"
        " SELECT coalesce(l.tool_call_id, l.found_call_id) AS call, l.child_id FROM links l JOIN origin o"
        " ON l.parent_id = o.id WHERE l.kind = 'subagent' AND call IS NOT NULL ORDER BY l.child_id DESC",
        (session_id,),
    )
    return dict(rows.fetchall())


def result_places(position: int, records: bytes | None) -> dict[str, int]:
    """Result id -> position of the record that brought it, of the message at `position`."""
    return places_of_results(position, unpack_records(records))


def places_of_results(position: int, records: Iterable[RecordRef]) -> dict[str, int]:
    """`result_places` of records that are unpacked."""
    return result_positions(position, records)


def _place(
    connection: sqlite3.Connection, session_id: str, rows: list[PlacedRow], *, resolve_blobs: bool
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


def _membership(row: PlacedRow, session_id: str, parents: dict[str, str]) -> Membership:
    return Membership(
        session_id=session_id,
        message_id=row.message_id,
        position=row.position,
        parent_id=row.parent_id or parents.get(row.parent_record or ""),
        turn=row.turn,
        step=row.step,
        fate=Fate(row.fate),
        fate_cause=row.fate_cause,
        is_billed=row.pays_key == row.session_key,
        records=_provenance(row),
    )


def _provenance(row: PlacedRow) -> tuple[Provenance, ...]:
    if row.source is None:
        return ()
    places = dict.fromkeys((offset, length) for offset, length, _ in unpack_records(row.records) if length)
    return tuple(Provenance(source=row.source, offset=offset, length=length) for offset, length in places)


def _cost(row: PlacedRow) -> Cost | None:
    return None if row.cost is None else dollars(row.cost, price_version=row.price_version)


def _parents(connection: sqlite3.Connection, rows: Iterable[PlacedRow]) -> dict[str, str]:
    """Record id -> message id, of a session that has parents which a fold knew by their record only."""
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


def _membership_rows(connection: sqlite3.Connection, message_id: str) -> list[PlacedRow]:
    """Every place of a message, the one in the billed session first."""
    found = connection.execute(_FIND_MESSAGE, (message_id,)).fetchall()
    rows: list[tuple[Any, ...]] = []
    for key in found:
        rows += connection.execute(
            f"{SELECT_MEMBERS} WHERE m.key = ? ORDER BY s.session_key IS NOT m.pays_key, s.session_key", key
        ).fetchall()
        rows += connection.execute(f"{SELECT_SUPERSEDED} WHERE m.key = ? ORDER BY s.session_key", key).fetchall()
    if not rows:
        raise NotFoundError(f"there is no message {message_id}")
    return [PlacedRow.of(row) for row in rows]


def _membership_row(connection: sqlite3.Connection, message_id: str, session_id: str | None) -> PlacedRow:
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
