"""Titles that one file gives to the conversation of another, which it names by its newest record or its session's id.

A session has a title by its newest record as long as it ends with that, and its own log gives it none but the first
prompt. One by its id is the user's, and comes before what the log calls it: such a file is written at each new name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from turnlog.model.session import TitleSource
from turnlog.store.joining import choose_title


def title_of(
    connection: sqlite3.Connection, session_id: str, titles: Mapping[TitleSource, str], leaf: str | None
) -> tuple[str | None, TitleSource | None]:
    """What a session is called, and where that is from, given what its own log calls it and its newest record."""
    found = dict(
        connection.execute(
            "SELECT record_id, max(title) FROM leaf_titles WHERE agent = ? AND record_id IN (?, ?) GROUP BY record_id",
            (session_id.partition(":")[0], session_id, leaf),
        ).fetchall()
    )
    if leaf in found and "summary" not in titles:
        titles = {**titles, "summary": found[leaf]}
    if session_id in found:
        titles = {**titles, "custom": found[session_id]}
    return choose_title(titles) or (None, None)


def leaves_of(connection: sqlite3.Connection, source_keys: Iterable[int]) -> list[tuple[str, str]]:
    """Agent and newest record (or session) of every conversation that these files give a title."""
    marks = ",".join(str(key) for key in source_keys)
    return connection.execute(f"SELECT agent, record_id FROM leaf_titles WHERE source_key IN ({marks})").fetchall()


def retitle(connection: sqlite3.Connection, leaves: Iterable[tuple[str, str]]) -> None:
    """Work out anew what the sessions with these newest records, or these ids, are called."""
    for agent, leaf in leaves:
        rows = connection.execute(
            "SELECT key, external_id, titles, active_leaf FROM sessions"
            " WHERE agent = ?1 AND (active_leaf = ?2 OR agent || ':' || external_id = ?2)",
            (agent, leaf),
        ).fetchall()
        for key, external_id, json, active_leaf in rows:
            titles = msgspec.json.decode(json, type=dict[TitleSource, str]) if json else dict[TitleSource, str]()
            connection.execute(
                "UPDATE sessions SET title = ?, title_source = ? WHERE key = ?",
                (*title_of(connection, f"{agent}:{external_id}", titles, active_leaf), key),
            )
