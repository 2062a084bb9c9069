"""Checks what a machine sends before anything is written, and makes its rows those of the person who sends them.

Nothing in a batch is believed: rows, whose values `decoding` has checked, name only what the batch names, and say the
same as these names. Whose the rows are is what the token says. Paths of files get the person and the machine in front,
because two machines have other files at one path, and programs with a person's token are no machine at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from turnlog.hub.sync.decoding import WrongBatchError, check_bodies
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.values import IDENTITY, KEYS, TABLES, UNKNOWN_MODEL, FeedBatch, Row
from turnlog.store.packed_columns import PLAIN_TYPES

_COLON: Final = ":"


class SendingMachine(NamedTuple):
    """The machine that sends, and its person."""

    owner: Owner
    name: str
    """As people call it."""


def admit(batch: FeedBatch, machine: SendingMachine) -> FeedBatch:
    """The batch with rows of this machine. Raises WrongBatchError or TooLargeError."""
    _check_names(batch)
    _check_events(batch)
    _check_bodies(batch)
    rows, names = dict(batch.rows), dict(batch.names)
    user, where = machine.owner.user, machine.name
    rows["owners"] = [(key, user, "", task, where) for key, _, _, task, _ in rows.get("owners", ())]
    names["owners"] = {key: (user, "", name[2], where) for key, name in names.get("owners", {}).items()}
    rows["sources"] = _placed(rows.get("sources", ()), ("path", "root"), machine)
    names["sources"] = {key: (placed(name[0], machine),) for key, name in names.get("sources", {}).items()}
    # Bytes come by themselves, with their hash.
    rows["blobs"] = [(sha256, size, media_type, 0, b"") for sha256, size, media_type, _, _ in rows.get("blobs", ())]
    return msgspec.structs.replace(batch, rows=rows, names=names)


def placed(path: str, machine: SendingMachine) -> str:
    """The path of a file, with its person and their machine in front: no two people have files of one name."""
    return f"{machine.owner.user}/{machine.owner.machine}{_COLON}{path}"


def _placed(rows: Sequence[Row], columns: Sequence[str], machine: SendingMachine) -> list[Row]:
    places = {TABLES["sources"].index(column) for column in columns}
    return [tuple([placed(value, machine) if at in places else value for at, value in enumerate(row)]) for row in rows]


def _check_names(batch: FeedBatch) -> None:
    """Every key has a name, and rows say the same as their names."""
    sessions = batch.names.get("sessions", {})
    for keys in (batch.complete, batch.whole, batch.levels, batch.copies):
        if missing := [key for key in keys if key not in sessions]:
            raise WrongBatchError(f"{missing[0]} is no session of this batch")
    for table, rows in batch.rows.items():
        columns = TABLES[table]
        references = [(at, KEYS[name]) for at, name in enumerate(columns) if name in KEYS]
        for at, named in references:
            known = {*batch.names.get(named, {}), None}
            if named == "models":
                known.add(UNKNOWN_MODEL)
            if missing := {row[at] for row in rows} - known:
                raise WrongBatchError(f"{columns[at]} of a row of {table} is {missing.pop()}, which has no name")
        if table in IDENTITY:
            places = [columns.index(name) for name in IDENTITY[table]]
            names = batch.names.get(table, {})
            if len({row[0] for row in rows}) != len(rows):
                raise WrongBatchError(f"two rows of {table} have one key")
            for row in rows:
                if names.get(row[0]) != tuple([row[at] for at in places]):
                    raise WrongBatchError(f"row {row[0]} of {table} has another name than the batch says")
    for table in ("sessions", "messages"):
        names = batch.names.get(table, {})
        if len(set(names.values())) != len(names):
            raise WrongBatchError(f"two keys of {table} have one name")


def _check_events(batch: FeedBatch) -> None:
    """An event has a body, or its columns are enough."""
    for number, row in enumerate(batch.rows.get("events", ())):
        if row[_BODY] is None and row[_TYPE] not in PLAIN_TYPES:
            raise WrongBatchError(f"row {number} of events: type is {row[_TYPE]!r}, which needs a body")


_TYPE: Final = TABLES["events"].index("type")
_BODY: Final = TABLES["events"].index("body")


def _check_bodies(batch: FeedBatch) -> None:
    messages = {row[0] for row in batch.rows.get("messages", ())}
    if messages != batch.bodies.keys():
        raise WrongBatchError("not every message has a body, or a body has no message")
    check_bodies(batch.bodies)
