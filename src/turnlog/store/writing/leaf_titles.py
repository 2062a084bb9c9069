"""Titles that one file gives to the conversation of another, which it names by its newest record or its session's id.

A session has a title by its newest record as long as it ends with that, and its own log gives it none but the first
prompt. One by its id is the user's, and comes before what the log calls it: such a file is written at each new name.
It holds for the session's branches too, whose ids are its own with `_` and another behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from turnlog.agents.changes import LeafTitle
from turnlog.model.session import TitleSource
from turnlog.store.joining import choose_title

_LOOKUP_SIZE = 500

_BRANCH = "_"
"""Between the id of a session and that of a branch of it."""


class LeafTitles:
    """What the files of a transaction say of other conversations, and whom that may concern."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Begin with nothing."""
        self._connection = connection
        self._leaves: set[tuple[str, str]] = set()

    def give(self, agent: str, titles: Iterable[LeafTitle], source_key: int) -> None:
        """Keep what a file says of the conversations that end with these records."""
        for found in titles:
            self._connection.execute(
                "INSERT OR REPLACE INTO leaf_titles (agent, record_id, source_key, title) VALUES (?, ?, ?, ?)",
                (agent, found.record_id, source_key, found.title),
            )
            self._leaves.add((agent, found.record_id))

    def drop(self, source_key: int) -> None:
        """A file was written anew: what it says of other conversations it says again."""
        self._leaves.update(leaves_of(self._connection, [source_key]))
        self._connection.execute("DELETE FROM leaf_titles WHERE source_key = ?", (source_key,))

    def take_concerned(self) -> list[str]:
        """Ids of the sessions, stored or not, that may be called otherwise since this was last asked."""
        leaves, self._leaves = sorted(self._leaves), set()
        found = [name for _, record_id in leaves if ":" in record_id for name in self._called_so(record_id)]
        # One look at all sessions for many records: a file has several, and no index has them.
        for start in range(0, len(leaves), _LOOKUP_SIZE):
            piece = leaves[start : start + _LOOKUP_SIZE]
            rows = self._connection.execute(
                "SELECT agent, external_id, active_leaf FROM sessions WHERE owner_key = 1 AND active_leaf IN"
                f" ({', '.join('?' * len(piece))})",
                [record_id for _, record_id in piece],
            )
            found += [f"{agent}:{external_id}" for agent, external_id, leaf in rows if (agent, leaf) in piece]
        return found

    def _called_so(self, session_id: str) -> list[str]:
        """The session, stored or not, and its branches that are stored."""
        agent, _, external_id = session_id.partition(":")
        rows = self._connection.execute(
            "SELECT external_id FROM sessions"
            " WHERE owner_key = 1 AND agent = ? AND external_id >= ? AND external_id < ?",
            (agent, f"{external_id}{_BRANCH}", f"{external_id}{chr(ord(_BRANCH) + 1)}"),
        )
        return [session_id, *(f"{agent}:{branch}" for (branch,) in rows)]


def title_of(
    connection: sqlite3.Connection, session_id: str, titles: Mapping[TitleSource, str], leaf: str | None
) -> tuple[str | None, TitleSource | None]:
    """What a session is called, and where that is from, given what its own log calls it and its newest record."""
    found = dict(
        connection.execute(
            "SELECT record_id, max(title) FROM leaf_titles"
            " WHERE agent = ? AND record_id IN (?, ?, ?) GROUP BY record_id",
            (session_id.partition(":")[0], session_id, session_id.rpartition(_BRANCH)[0], leaf),
        ).fetchall()
    )
    if leaf in found and "summary" not in titles:
        titles = {**titles, "summary": found[leaf]}
    named = found.get(session_id, found.get(session_id.rpartition(_BRANCH)[0]))
    if named is not None:
        titles = {**titles, "custom": named}
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
            " WHERE agent = ?1 AND (active_leaf = ?2 OR agent || ':' || external_id = ?2"
            " OR substr(agent || ':' || external_id, 1, length(?2) + 1) = ?2 || ?3)",
            (agent, leaf, _BRANCH),
        ).fetchall()
        for key, external_id, json, active_leaf in rows:
            titles = msgspec.json.decode(json, type=dict[TitleSource, str]) if json else dict[TitleSource, str]()
            connection.execute(
                "UPDATE sessions SET title = ?, title_source = ? WHERE key = ?",
                (*title_of(connection, f"{agent}:{external_id}", titles, active_leaf), key),
            )
