"""The row of a message in a session: its place there, what it costs, and where its body lies."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnlog.store.frames import BODY_COLUMNS, PLACE, BodyPlace
from turnlog.store.packed_columns import PARENT_ID


class PlacedRow(NamedTuple):
    """What `select_placed` selects."""

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
    def of(cls, row: tuple[Any, ...]) -> PlacedRow:
        """From a row of the database."""
        return cls._make((*row[: PLACE.start], BodyPlace._make(row[PLACE])))


def select_placed(table: str, *, parent_record: str = "s.parent_record", fate: str = "s.fate") -> str:
    """The rows of the messages that stand in a table of places, which is `s` in conditions, and its messages `m`."""
    return (
        f"SELECT m.external_id, s.session_key, s.position, {PARENT_ID}, {parent_record}, s.turn, s.step, {fate},"
        " s.fate_cause, m.pays_key, s.records, f.path, s.source_key, s.generation, m.cost, v.name,"
        f" {BODY_COLUMNS}"
        f" FROM {table} s JOIN messages m ON m.key = s.message_key LEFT JOIN sources f ON f.key = s.source_key"
        " LEFT JOIN price_versions v ON v.key = m.price_key"
    )


SELECT_MEMBERS = select_placed("memberships")

SELECT_SUPERSEDED = select_placed("superseded", parent_record="NULL", fate="'superseded'")
"""Places that gave way to a session's own log (see `store.reconcile.streams`): seldom any."""
