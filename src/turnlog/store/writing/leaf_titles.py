"""Titles that one file gives to the conversation of another, which it names by its newest record or its session's id.

A session has a title by its newest record as long as it ends with that, and its own log gives it none but the first
prompt. One by its id is the user's, and comes before what the log calls it: such a file is written at each new name.
It holds for sessions too that say they are named after that one (`turnlog.agents.changes.NAMED_AFTER`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from turnlog.agents.changes import NAMED_AFTER, LeafTitle
from turnlog.model.session import TitleSource
from turnlog.store.joining import choose_title

_LOOKUP_SIZE = 500

_NAMED_AFTER = f"metadata ->> '$.{NAMED_AFTER}'"


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
        found = [record_id for _, record_id in leaves if ":" in record_id]
        # One look at all sessions for many records: a file has several, and no index has them.
        for start in range(0, len(leaves), _LOOKUP_SIZE):
            piece = leaves[start : start + _LOOKUP_SIZE]
            records = [record_id for _, record_id in piece]
            named = [record_id for record_id in records if ":" in record_id]
            rows = self._connection.execute(
                f"SELECT agent, external_id, active_leaf, {_NAMED_AFTER} FROM sessions WHERE owner_key = 1"
                f" AND (active_leaf IN ({_marks(records)}) OR {_NAMED_AFTER} IN ({_marks(named)}))",
                (*records, *named),
            )
            found += [
                f"{agent}:{external_id}"
                for agent, external_id, leaf, named_after in rows
                if (agent, leaf) in piece or (agent, named_after) in piece
            ]
        return found


def title_of(
    connection: sqlite3.Connection,
    session_id: str,
    titles: Mapping[TitleSource, str],
    leaf: str | None,
    named_after: str | None,
) -> tuple[str | None, TitleSource | None]:
    """What a session is called, and where that is from.

    Args:
        connection: The store.
        session_id: The session, stored or not.
        titles: What its own log calls it.
        leaf: Its newest record.
        named_after: The id of the session whose name is its too.
    """
    found = dict(
        connection.execute(
            "SELECT record_id, max(title) FROM leaf_titles"
            " WHERE agent = ? AND record_id IN (?, ?, ?) GROUP BY record_id",
            (session_id.partition(":")[0], session_id, named_after, leaf),
        ).fetchall()
    )
    if leaf in found and "summary" not in titles:
        titles = {**titles, "summary": found[leaf]}
    named = found.get(session_id, found.get(named_after))
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
            f"SELECT key, external_id, titles, active_leaf, {_NAMED_AFTER} FROM sessions"
            f" WHERE agent = ?1 AND (active_leaf = ?2 OR agent || ':' || external_id = ?2 OR {_NAMED_AFTER} = ?2)",
            (agent, leaf),
        ).fetchall()
        for key, external_id, json, active_leaf, named_after in rows:
            titles = msgspec.json.decode(json, type=dict[TitleSource, str]) if json else dict[TitleSource, str]()
            connection.execute(
                "UPDATE sessions SET title = ?, title_source = ? WHERE key = ?",
                (*title_of(connection, f"{agent}:{external_id}", titles, active_leaf, named_after), key),
            )


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
