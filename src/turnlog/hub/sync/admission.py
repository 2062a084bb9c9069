"""Checks what a machine sends before anything is written, and makes its rows those of the person who sends them.

Nothing in a batch is believed: rows have the shape of their tables, name only what the batch names, and say the same as
these names. Whose the rows are is what the token says. Paths of files get the machine in front, because two machines
have other files at one path.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from turnlog.store import zstd
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.values import IDENTITY, KEYS, TABLES, UNKNOWN_MODEL, FeedBatch, Row

MOST_OF_BODIES: Final = 256 << 20
"""Bytes of all bodies of a batch, decompressed."""

LEVELS: Final = frozenset({"metrics", "redacted", "full"})

_LARGEST: Final = 1 << 63

_KINDS: Final[frozenset[type]] = frozenset({int, bool, str, bytes, type(None)})

_COLON: Final = ":"


class SendingMachine(NamedTuple):
    """The machine that sends, and its person."""

    owner: Owner
    name: str
    """As people call it."""


class WrongBatchError(ValueError):
    """A batch that cannot be written as it is."""


class TooLargeError(ValueError):
    """More than is taken at once."""


def admit(batch: FeedBatch, machine: SendingMachine) -> FeedBatch:
    """The batch with rows of this machine. Raises WrongBatchError or TooLargeError."""
    _check_shape(batch)
    _check_names(batch)
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
    """The path of a file, with the machine in front."""
    return f"{machine.owner.machine}{_COLON}{path}"


def _placed(rows: Sequence[Row], columns: Sequence[str], machine: SendingMachine) -> list[Row]:
    places = {TABLES["sources"].index(column) for column in columns}
    return [tuple([placed(value, machine) if at in places else value for at, value in enumerate(row)]) for row in rows]


def _check_shape(batch: FeedBatch) -> None:
    for table, rows in batch.rows.items():
        columns = TABLES.get(table)
        if columns is None:
            raise WrongBatchError(f"there is no table {table[:100]!r}")
        # Sets of all values at once: a check value by value takes as long as writing them.
        if lengths := {*map(len, rows)} - {len(columns)}:
            raise WrongBatchError(f"a row of {table} has {lengths.pop()} values: {len(columns)} are columns")
        kinds: set[type] = {*map(type, chain.from_iterable(rows))}
        if kinds := kinds - _KINDS:
            raise WrongBatchError(f"a row of {table} has a value that is {kinds.pop().__name__}")
    for table, names in batch.names.items():
        identity = IDENTITY.get(table)
        if identity is None:
            raise WrongBatchError(f"the table {table[:100]!r} has no names")
        for key, name in names.items():
            if len(name) != len(identity) or not all(isinstance(value, str) for value in name):
                raise WrongBatchError(f"the name of {key} in {table} is not {', '.join(identity)}")
    if batch.generation < 0 or min(batch.after) < 0 or max(*batch.until, batch.generation) >= _LARGEST:
        raise WrongBatchError("positions are numbers from 0 to 2^63")
    wrong = sorted({*batch.levels.values()} - LEVELS)
    if wrong:
        raise WrongBatchError(f"there is no upload level {wrong[0][:100]!r}")


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


def _check_bodies(batch: FeedBatch) -> None:
    messages = {row[0] for row in batch.rows.get("messages", ())}
    if messages != batch.bodies.keys():
        raise WrongBatchError("not every message has a body, or a body has no message")
    size = 0
    for key, body in batch.bodies.items():
        try:
            declared = zstd.content_size(body)
        except zstd.ZstdError as error:
            raise WrongBatchError(f"the body of message {key} is no zstd frame") from error
        if declared < 0:
            raise WrongBatchError(f"the body of message {key} does not say its size")
        size += declared
        if size > MOST_OF_BODIES:
            raise TooLargeError(f"the bodies of a batch have at most {MOST_OF_BODIES} bytes, decompressed")
