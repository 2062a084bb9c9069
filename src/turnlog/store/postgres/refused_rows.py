"""What of a batch a copy cannot take: one row must not keep everybody from finding what comes after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


_ALONE: Final = (
    "projects",
    "sources",
    "generations",
    "diagnostics",
    "spills",
    "links",
    "annotations",
    "answers",
    "runs",
)
"""Tables whose rows are taken without those of sessions and messages, each after those that it refers to."""

_NAMED: Final = ("owners", "models", "price_versions")
"""Tables whose rows are nothing but names."""

_OF_SOURCE: Final = ("generations", "diagnostics", "spills", "streams")
"""Tables whose rows are of nothing without their source. Others lose the reference."""


class Taken(NamedTuple):
    """What of a batch can be taken."""

    batch: FeedBatch
    left_out: frozenset[int]
    """Keys of the messages that are not in it."""
    rows: dict[str, int]
    """Table -> how many of its rows are not in it, of tables that are taken row by row."""


def what_can_be_taken(batch: FeedBatch, takes: Callable[[FeedBatch], bool]) -> Taken | None:
    """The batch without rows that are refused; None if nothing of it is taken.

    Of a session, or of a message, all rows are left out where one is refused. `takes` says whether a batch would be
    taken, and leaves nothing of it.
    """
    alone = _alone(batch)
    refused = {table: frozenset(range(len(rows))) for table, rows in alone.rows.items() if table in _ALONE}
    if not takes(_without_rows(alone, refused)):
        return None
    for table in _ALONE:
        every = refused.get(table, frozenset[int]())

        def are_taken(kept: frozenset[int], table: str = table, every: frozenset[int] = every) -> bool:
            return takes(_without_rows(alone, {**refused, table: every - kept}))

        refused[table] = _refused(every, are_taken)
    rest = _without_rows(batch, refused)
    sessions, messages = frozenset[int](rest.names["sessions"]), _keys_of(rest, "messages")
    empty = _without_messages(rest, messages)
    out = _refused(sessions, lambda kept: takes(_without_sessions(empty, sessions - kept)))
    whole = _without_sessions(rest, out)
    messages = _keys_of(whole, "messages")
    out = _refused(messages, lambda kept: takes(_without_messages(whole, messages - kept)))
    whole = _without_messages(whole, out)
    return Taken(
        whole,
        _keys_of(batch, "messages") - _keys_of(whole, "messages"),
        {table: len(refused[table]) for table in _ALONE if refused[table]},
    )


def _keys_of(batch: FeedBatch, table: str) -> frozenset[int]:
    return frozenset[int](row[0] for row in batch.rows.get(table, ()))


def _refused(keys: frozenset[int], are_taken: Callable[[frozenset[int]], bool]) -> frozenset[int]:
    if not keys or are_taken(keys):
        return frozenset[int]()
    if len(keys) == 1:
        return keys
    ordered = sorted(keys)
    halves = ordered[: len(keys) // 2], ordered[len(keys) // 2 :]
    found = frozenset[int]().union(*(_refused(frozenset(half), are_taken) for half in halves))
    # Each half alone may be taken: then one contradicts the other.
    return found or keys


def _alone(batch: FeedBatch) -> FeedBatch:
    """The batch without its sessions and messages."""
    return msgspec.structs.replace(
        batch,
        rows={table: rows if table in _ALONE or table in _NAMED else [] for table, rows in batch.rows.items()},
        names={**batch.names, "sessions": {}, "messages": {}},
        bodies={},
        billed={},
        complete=[],
        whole=[],
    )


def _without_rows(batch: FeedBatch, out: Mapping[str, frozenset[int]]) -> FeedBatch:
    """The batch without some rows of tables (by their places there), and without what is of these alone."""
    rows, names = dict(batch.rows), dict(batch.names)
    for table, places in out.items():
        if not places:
            continue
        gone = {row[0] for at, row in enumerate(batch.rows[table]) if at in places}
        rows[table] = [row for at, row in enumerate(batch.rows[table]) if at not in places]
        if table in names:
            names[table] = {key: name for key, name in names[table].items() if key not in gone}
    lost = batch.names.get("sources", {}).keys() - names.get("sources", {}).keys()
    for table in _OF_SOURCE if lost else ():
        at = TABLES[table].index("source_key")
        rows[table] = [row for row in rows.get(table, ()) if row[at] not in lost]
    return msgspec.structs.replace(batch, rows=rows, names=names)


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
