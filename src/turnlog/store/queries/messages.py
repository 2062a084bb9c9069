"""Messages of a session with their places, single messages, and the records they came from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnlog.errors import NotFoundError
from turnlog.history.order import place_results
from turnlog.model import Cost, Fate, Membership, Message, Provenance, ToolCallPart, ToolKind, ToolResult
from turnlog.model.message import arrival
from turnlog.store import bodies
from turnlog.store.archive import Archive, ReadingAhead
from turnlog.store.base import PlacedMessage, RawRecord
from turnlog.store.blobs import BlobLoader
from turnlog.store.families import session_key
from turnlog.store.frames import BODY_COLUMNS, PLACE, BodyPlace, BodyReader
from turnlog.store.places import unpack_ids, unpack_records
from turnlog.store.sums import dollars

if TYPE_CHECKING:
    from turnlog.agents.base import Agent


class _Row(NamedTuple):
    message_id: str
    session_key: int
    position: int
    parent_id: str | None
    parent_record: str | None
    turn: int | None
    step: int | None
    fate: str
    fate_cause: str | None
    pays_key: int | None
    records: bytes | None
    source: str | None
    source_key: int | None
    generation: int
    cost: int | None
    price_version: str | None
    body: BodyPlace

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> _Row:
        """From what `_PLACED` selects."""
        return cls._make((*row[: PLACE.start], BodyPlace._make(row[PLACE])))


_PLACED = (
    "SELECT m.external_id, s.session_key, s.position, s.parent_id, s.parent_record, s.turn, s.step, s.fate,"
    " s.fate_cause, m.pays_key, s.records, f.path, s.source_key, s.generation, m.cost, v.name,"
    f" {BODY_COLUMNS}"
    " FROM {held} s JOIN messages m ON m.key = s.message_key LEFT JOIN sources f ON f.key = s.source_key"
    " LEFT JOIN price_versions v ON v.key = m.price_key"
)
_SELECT = _PLACED.format(held="memberships")

_HELD = (
    "(SELECT session_key, position, message_key, source_key, generation, parent_id, parent_record, turn, step, fate,"
    " fate_cause, records FROM memberships UNION ALL SELECT session_key, position, message_key, source_key, generation,"
    " parent_id, NULL, turn, step, fate, fate_cause, records FROM superseded WHERE fate IS NOT NULL)"
)

_SUPERSEDED = (
    "SELECT m.external_id, s.session_key, s.position, s.parent_id, NULL, s.turn, s.step, 'superseded',"
    " s.fate_cause, m.pays_key, s.records, f.path, s.source_key, s.generation, m.cost, v.name,"
    f" {BODY_COLUMNS}"
    " FROM superseded s JOIN messages m ON m.key = s.message_key LEFT JOIN sources f ON f.key = s.source_key"
    " LEFT JOIN price_versions v ON v.key = m.price_key"
)
"""Places that gave way to a session's own log (see `store.writing.streams`): seldom any."""


_FIND_MESSAGE = (
    "WITH RECURSIVE agents (name) AS (SELECT min(agent) FROM messages UNION ALL"
    " SELECT (SELECT min(agent) FROM messages WHERE agent > name) FROM agents WHERE name IS NOT NULL)"
    " SELECT found.key FROM agents CROSS JOIN messages found"
    " ON found.agent = agents.name AND found.external_id = ?"
)
"""Ids are unique within an agent: one look-up for each of the few there are, found by hopping along the same index."""


class Span(NamedTuple):
    """Which messages of a session, by position."""

    after: int | None = None
    before: int | None = None
    around: int | None = None
    limit: int | None = None


def select_span(
    connection: sqlite3.Connection, select: str, key: int, span: Span, condition: str = "1", values: Iterable[Any] = ()
) -> list[tuple[Any, ...]]:
    """Rows of `select` (over `memberships s`, or what `held` says) that a span holds, in order.

    Raises ValueError when the span asks for two things at once.
    """
    if span.around is not None and (span.after is not None or span.before is not None):
        raise ValueError("around cannot be combined with after or before")
    parameters = (key, *values)
    where = f"{select} WHERE s.session_key = ? AND {condition}"
    limit = -1 if span.limit is None else span.limit
    forwards = "ORDER BY s.position, s.message_key LIMIT ?"
    backwards = "ORDER BY s.position DESC, s.message_key DESC LIMIT ?"
    if span.around is not None:
        half = connection.execute(
            f"{where} AND s.position < ? {backwards}", (*parameters, span.around, limit if limit < 0 else limit // 2)
        ).fetchall()
        rest = limit if limit < 0 else limit - len(half)
        return [
            *reversed(half),
            *connection.execute(f"{where} AND s.position >= ? {forwards}", (*parameters, span.around, rest)),
        ]
    bounds = [(span.after, "s.position > ?"), (span.before, "s.position < ?")]
    where += "".join(f" AND {bound}" for value, bound in bounds if value is not None)
    parameters += tuple(value for value, _ in bounds if value is not None)
    if span.before is not None and span.after is None:
        return connection.execute(f"{where} {backwards}", (*parameters, limit)).fetchall()[::-1]
    return connection.execute(f"{where} {forwards}", (*parameters, limit)).fetchall()


def held(connection: sqlite3.Connection, key: int) -> str:
    """The table of what a session holds by its own id: of a chat also what agents' logs tell of (`writing.answers`)."""
    found = connection.execute("SELECT 1 FROM superseded WHERE session_key = ? AND fate IS NOT NULL LIMIT 1", (key,))
    return _HELD if found.fetchone() else "memberships"


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
    select = _PLACED.format(held=held(connection, key))
    rows = [_Row.of(row) for row in select_span(connection, select, key, span, condition, wanted or ())]
    placed = _place(connection, session_id, rows, resolve_blobs=resolve_blobs)
    if not structured:
        return list(placed)
    filling = _Structured(connection, session_id, structured)
    return [each._replace(message=filling.fill(row, each.message)) for row, each in zip(rows, placed, strict=True)]


def load_messages_at(
    connection: sqlite3.Connection, session_id: str, positions: Iterable[int], *, resolve_blobs: bool
) -> list[PlacedMessage]:
    """The messages of a session at these positions, in order."""
    key = session_key(connection, session_id)
    select = _PLACED.format(held=held(connection, key))
    wanted = json.dumps(list(positions))
    found = select_span(connection, select, key, Span(), "s.position IN (SELECT value FROM json_each(?))", (wanted,))
    return list(_place(connection, session_id, [_Row.of(row) for row in found], resolve_blobs=resolve_blobs))


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
    return _Structured(connection, owner, ToolKind).fill(row, found.message) if structured else found.message


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
    found = {what: offset for offset, _, what in unpack_records(records) if isinstance(what, str)}
    return found if position >= 0 else {what: arrival(position, offset) for what, offset in found.items()}


def _place(
    connection: sqlite3.Connection, session_id: str, rows: list[_Row], *, resolve_blobs: bool
) -> Iterator[PlacedMessage]:
    children = children_of_calls(connection, session_id)
    parents = _parents(connection, rows)
    loader, read = BlobLoader(connection), BodyReader(connection)
    for row in rows:
        message = bodies.decode(read(*row.body))
        if resolve_blobs:
            message = bodies.resolve(message, loader)
        message = place_results(message, result_places(row.position, row.records), children)
        yield PlacedMessage(message, _membership(row, session_id, parents), _cost(row))


def _membership(row: _Row, session_id: str, parents: dict[str, str]) -> Membership:
    return Membership(
        session_id=session_id,
        message_id=row.message_id,
        position=row.position,
        parent_id=row.parent_id or parents.get(row.parent_record or ""),
        turn=row.turn,
        step=row.step,
        fate=Fate(row.fate),
        fate_cause=row.fate_cause,
        pays=row.pays_key == row.session_key,
        records=_provenance(row),
    )


def _provenance(row: _Row) -> tuple[Provenance, ...]:
    if row.source is None:
        return ()
    places = dict.fromkeys((offset, length) for offset, length, _ in unpack_records(row.records) if length)
    return tuple(Provenance(source=row.source, offset=offset, length=length) for offset, length in places)


def _cost(row: _Row) -> Cost | None:
    return None if row.cost is None else dollars(row.cost, price_version=row.price_version)


def _parents(connection: sqlite3.Connection, rows: Iterable[_Row]) -> dict[str, str]:
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
        for record_id in unpack_ids(record_ids):
            found[record_id] = message_id
    return found


def _membership_rows(connection: sqlite3.Connection, message_id: str) -> list[_Row]:
    """Every place of a message, the one in the session that pays first."""
    found = connection.execute(_FIND_MESSAGE, (message_id,)).fetchall()
    rows: list[tuple[Any, ...]] = []
    for key in found:
        rows += connection.execute(
            f"{_SELECT} WHERE m.key = ? ORDER BY s.session_key IS NOT m.pays_key, s.session_key", key
        ).fetchall()
        rows += connection.execute(f"{_SUPERSEDED} WHERE m.key = ? ORDER BY s.session_key", key).fetchall()
    if not rows:
        raise NotFoundError(f"there is no message {message_id}")
    return [_Row.of(row) for row in rows]


def _membership_row(connection: sqlite3.Connection, message_id: str, session_id: str | None) -> _Row:
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


def _result_records(row: _Row) -> dict[str, tuple[int, int]]:
    """Result id -> offset and length of the record that brought it: the message's own when it stands in that."""
    records = unpack_records(row.records)
    own = next(((offset, length) for offset, length, what in records if what is None), None)
    places = {what: (offset, length) for offset, length, what in records if isinstance(what, str)}
    return {what: place if place[1] or own is None else own for what, place in places.items()}


class _Structured:
    """Fills in the agent's own JSON of each result, read from the record that brought it."""

    def __init__(self, connection: sqlite3.Connection, session_id: str, kinds: Container[ToolKind]) -> None:
        self._name = session_id.partition(":")[0]
        self._kinds = kinds
        self._archive = ReadingAhead(Archive(connection))

    def fill(self, row: _Row, message: Message) -> Message:
        """The message with what its calls of these kinds brought."""
        wanted = [part for part in message.parts if isinstance(part, ToolCallPart) and part.kind in self._kinds]
        if not wanted or row.source_key is None:
            return message
        places = _result_records(row)
        filled = {id(call): self._filled(call, row, places) for call in wanted}
        return msgspec.structs.replace(message, parts=tuple([filled.get(id(part), part) for part in message.parts]))

    @cached_property
    def _agent(self) -> Agent | None:
        # Agents of other packages are found through the entry points of all that are installed: asked for late.
        from turnlog.agents import agent

        try:
            return agent(self._name)
        except Exception:  # A stranger's package must not take a message down.
            return None

    def _filled(self, call: ToolCallPart, row: _Row, places: dict[str, tuple[int, int]]) -> ToolCallPart:
        results = tuple([self._result(call, result, row, places.get(result.id)) for result in call.results])
        return msgspec.structs.replace(call, results=results)

    def _result(self, call: ToolCallPart, result: ToolResult, row: _Row, place: tuple[int, int] | None) -> ToolResult:
        if place is None or row.source_key is None or self._agent is None:
            return result
        record = self._archive.read(row.source_key, row.generation, *place)
        structured = self._agent.structured_result(record, call.tool_call_id)
        return result if structured is None else msgspec.structs.replace(result, structured=structured)
