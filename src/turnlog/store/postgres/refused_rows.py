"""What of a batch a copy cannot take: one row must not keep everybody from finding what comes after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from turnlog.store.feed.values import TABLES, FeedBatch, Row

_IDS: Final = {
    "links": ("child_id", "parent_id"),
    "annotations": ("session_id",),
    "answers": ("session_id",),
    "runs": ("session_id",),
    "spills": ("session_id",),
}
"""Table -> its columns with ids of sessions."""


class Taken(NamedTuple):
    """What of a batch can be taken."""

    batch: FeedBatch
    left_out: frozenset[int]
    """Keys of the messages that are not in it."""


def what_can_be_taken(batch: FeedBatch, takes: Callable[[FeedBatch], bool]) -> Taken | None:
    """The batch without the messages, or else without the sessions, of which rows are refused; None if neither helps.

    `takes` says whether a batch would be taken, and leaves nothing of it.
    """
    messages = frozenset[int](row[0] for row in batch.rows.get("messages", ()))
    for keys, without in ((messages, _without_messages), (frozenset[int](batch.names["sessions"]), _without_sessions)):
        if takes(without(batch, keys)):
            refused = _refused(keys, lambda kept, keys=keys, without=without: takes(without(batch, keys - kept)))
            rest = without(batch, refused)
            return Taken(rest, messages - {row[0] for row in rest.rows.get("messages", ())})
    return None


def _refused(keys: frozenset[int], are_taken: Callable[[frozenset[int]], bool]) -> frozenset[int]:
    if are_taken(keys):
        return frozenset[int]()
    if len(keys) == 1:
        return keys
    ordered = sorted(keys)
    halves = ordered[: len(keys) // 2], ordered[len(keys) // 2 :]
    found = frozenset[int]().union(*(_refused(frozenset(half), are_taken) for half in halves))
    # Each half alone may be taken: then one contradicts the other.
    return found or keys


def _without_messages(batch: FeedBatch, out: frozenset[int]) -> FeedBatch:
    names = batch.names
    messages = {key: name for key, name in names.get("messages", {}).items() if key not in out}
    return msgspec.structs.replace(
        batch,
        rows=_without_keys(batch.rows, {"message_key": out}, {"messages": out}),
        names={**names, "messages": messages},
        bodies={key: body for key, body in batch.bodies.items() if key not in out},
        billed={key: billed for key, billed in batch.billed.items() if key not in out},
    )


def _without_sessions(batch: FeedBatch, out: frozenset[int]) -> FeedBatch:
    names = batch.names["sessions"]
    ids = {":".join(name) for key, name in names.items() if key in out}
    rows = _without_keys(batch.rows, {"session_key": out}, {"sessions": out})
    for table, columns in _IDS.items():
        places = [TABLES[table].index(column) for column in columns]
        rows[table] = [row for row in rows.get(table, ()) if not any(row[at] in ids for at in places)]
    rest = msgspec.structs.replace(
        batch,
        rows=rows,
        names={**batch.names, "sessions": {key: name for key, name in names.items() if key not in out}},
        complete=[key for key in batch.complete if key not in out],
        whole=[key for key in batch.whole if key not in out],
    )
    return _without_messages(rest, _messages_in(batch.rows) - _messages_in(rows))


def _messages_in(rows: dict[str, list[Row]]) -> frozenset[int]:
    """The messages that have a place."""
    return frozenset[int](row[2] for table in ("memberships", "superseded") for row in rows.get(table, ()))


def _without_keys(
    rows: dict[str, list[Row]], columns: dict[str, frozenset[int]], tables: dict[str, frozenset[int]]
) -> dict[str, list[Row]]:
    """Rows without those that have these keys in a column, or in the table itself."""
    kept: dict[str, list[Row]] = {}
    for table, found in rows.items():
        tests = [(TABLES[table].index(name), out) for name, out in columns.items() if name in TABLES[table]]
        tests += [(0, out) for name, out in tables.items() if name == table]
        kept[table] = [row for row in found if not any(row[at] in out for at, out in tests)]
    return kept
