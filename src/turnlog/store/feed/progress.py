"""How far the feeds of other stores were taken: a setting for each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from turnlog.store.feed.values import FeedPosition

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

FEED: Final = "feed of "
"""What the name of the setting begins with; behind it is the feed's name."""


def position_of(connection: Connection, store: str) -> FeedPosition:
    """How far the store with this id was taken."""
    return progress_of(connection, store)[0]


def progress_of(connection: Connection, store: str) -> tuple[FeedPosition, int]:
    """How far the store with this id was taken, and in which generation."""
    position, generation, _ = _read(connection, store)
    return position, generation


def lock_progress(connection: Connection, store: str) -> None:
    """Keep other batches of this store out until the end of the transaction."""
    lock_setting(connection, _setting(store), _packed(FeedPosition(), 0, ""))


def lock_setting(connection: Connection, name: str, first: str) -> None:
    """Keep a row of the settings from others until the end of the transaction; it is made if it is not there."""
    connection.execute("INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)", (name, first))
    connection.execute("UPDATE settings SET value = value WHERE name = ?", (name,))


def save_progress(connection: Connection, store: str, position: FeedPosition, generation: int, machine: str) -> None:
    """Note how far a feed was taken, and whose store it is: what is kept of a machine that is removed goes by it."""
    _write(connection, store, _packed(position, generation, machine))


def feeds_of(connection: Connection, user: str) -> set[str]:
    """The stores of this person of which batches were taken."""
    prefix = _setting(f"{user}/")
    rows = connection.execute("SELECT name FROM settings WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))
    return {name[len(FEED) :] for (name,) in rows.fetchall()}


def begin_again(connection: Connection, store: str) -> None:
    """Take nothing of this store any more, unless its feed begins again. The caller owns the transaction."""
    _, generation, machine = _read(connection, store)
    _write(connection, store, _packed(FeedPosition(), generation + 1, machine))


def _read(connection: Connection, store: str) -> tuple[FeedPosition, int, str]:
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (_setting(store),)).fetchone()
    if row is None:
        return FeedPosition(), 0, ""
    values: list[Any] = json.loads(row[0])
    of_position, machine = len(FeedPosition._fields), values[-1] if isinstance(values[-1], str) else ""
    return FeedPosition(*values[:of_position]), values[of_position], machine


def _write(connection: Connection, store: str, progress: str) -> None:
    connection.execute("UPDATE settings SET value = ? WHERE name = ?", (progress, _setting(store)))


def _packed(position: FeedPosition, generation: int, machine: str) -> str:
    return json.dumps((*position, generation, machine))


def _setting(store: str) -> str:
    return f"{FEED}{store}"
