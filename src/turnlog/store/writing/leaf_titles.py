"""Titles that one file gives to the conversation of another, which it names by its newest record.

A session has such a title as long as it ends with that record, and its own log gives it none but the first prompt.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from turnlog.model.session import TitleSource
from turnlog.store.joining import choose_title


def title_of(
    connection: sqlite3.Connection, agent: str, titles: Mapping[TitleSource, str], leaf: str | None
) -> tuple[str | None, TitleSource | None]:
    """What a session is called, and where that is from, given what its own log calls it and its newest record."""
    if leaf and "summary" not in titles:
        found = connection.execute(
            "SELECT max(title) FROM leaf_titles WHERE agent = ? AND record_id = ?", (agent, leaf)
        ).fetchone()[0]
        titles = titles if found is None else {**titles, "summary": found}
    return choose_title(titles) or (None, None)


def leaves_of(connection: sqlite3.Connection, source_keys: Iterable[int]) -> list[tuple[str, str]]:
    """Agent and newest record of every conversation that these files give a title."""
    marks = ",".join(str(key) for key in source_keys)
    return connection.execute(f"SELECT agent, record_id FROM leaf_titles WHERE source_key IN ({marks})").fetchall()


def retitle(connection: sqlite3.Connection, leaves: Iterable[tuple[str, str]]) -> None:
    """Work out anew what the sessions with these newest records are called."""
    for agent, leaf in leaves:
        rows = connection.execute(
            "SELECT key, titles FROM sessions WHERE agent = ? AND active_leaf = ?", (agent, leaf)
        ).fetchall()
        for key, json in rows:
            titles = msgspec.json.decode(json, type=dict[TitleSource, str]) if json else dict[TitleSource, str]()
            connection.execute(
                "UPDATE sessions SET title = ?, title_source = ? WHERE key = ?",
                (*title_of(connection, agent, titles, leaf), key),
            )
