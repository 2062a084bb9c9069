"""The title of a session, chosen from all titles that sources give it.

Some agents write titles into other files, which identify the session by its newest record (`summary` lines of Claude
Code) or by its id (`session_index.jsonl` of Codex). A title by record applies as long as the session ends with that
record and its own log has no summary. A title by id was set by the user and wins over those in the log. It also applies
to sessions that are named after that one (`turnlog.agents.changes.NAMED_AFTER`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import get_args

import msgspec

from turnlog.agents.changes import NAMED_AFTER, LeafTitle
from turnlog.model.session import TitleSource, title_from, title_given, title_line

_LOOKUP_SIZE = 500

_NAMED_AFTER = f"metadata ->> '$.{NAMED_AFTER}'"


class LeafTitles:
    """The titles that files of one transaction give to other sessions, and the sessions that these may change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Begin with nothing."""
        self._connection = connection
        self._leaves: set[tuple[str, str]] = set()

    def save(self, agent: str, titles: Iterable[LeafTitle], source_key: int) -> None:
        """Save the titles that a file gives to sessions with these newest records or ids."""
        for found in titles:
            self._connection.execute(
                "INSERT OR REPLACE INTO leaf_titles (agent, record_id, source_key, title) VALUES (?, ?, ?, ?)",
                (agent, found.record_id, source_key, found.title),
            )
            self._leaves.add((agent, found.record_id))

    def drop(self, source_key: int) -> None:
        """Delete the titles of a file that was rewritten: it is read again."""
        self._leaves.update(leaves_of(self._connection, [source_key]))
        self._connection.execute("DELETE FROM leaf_titles WHERE source_key = ?", (source_key,))

    def take_concerned(self) -> list[str]:
        """Ids of the sessions, stored or not, whose title may have changed since the last call."""
        leaves, self._leaves = sorted(self._leaves), set()
        found = [record_id for _, record_id in leaves if ":" in record_id]
        # A file names several records and no index contains them, so this scans the sessions once for all of them.
        for start in range(0, len(leaves), _LOOKUP_SIZE):
            piece = leaves[start : start + _LOOKUP_SIZE]
            records = [record_id for _, record_id in piece]
            named = [record_id for record_id in records if ":" in record_id]
            rows = self._connection.execute(
                f"SELECT agent, external_id, active_leaf, {_NAMED_AFTER} FROM sessions"
                f" WHERE (active_leaf IN ({_marks(records)}) OR {_NAMED_AFTER} IN ({_marks(named)}))",
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
    """The title of a session and its source; None and None if it has none.

    Args:
        connection: The store.
        session_id: The session, stored or not.
        titles: The titles in its own log.
        leaf: Its newest record.
        named_after: The id of the session that it is named after.
    """
    # `max`: several files may name one session, and the order in which they were read must not matter.
    found = dict(
        connection.execute(
            "SELECT record_id, max(title) FROM leaf_titles"
            " WHERE agent = ? AND record_id IN (?, ?, ?) GROUP BY record_id",
            (session_id.partition(":")[0], session_id, named_after, leaf),
        ).fetchall()
    )
    # A summary in the session's own log wins over one in another file.
    if leaf in found and "summary" not in titles:
        titles = {**titles, "summary": found[leaf]}
    named = found.get(session_id, found.get(named_after))
    if named is not None:
        titles = {**titles, "custom": named}
    return choose_title(titles) or (None, None)


def leaves_of(connection: sqlite3.Connection, source_keys: Iterable[int]) -> list[tuple[str, str]]:
    """Agent and newest record (or session id) of each session to which these files give a title."""
    marks = ",".join(str(key) for key in source_keys)
    return connection.execute(f"SELECT agent, record_id FROM leaf_titles WHERE source_key IN ({marks})").fetchall()


def retitle(connection: sqlite3.Connection, leaves: Iterable[tuple[str, str]]) -> None:
    """Update the titles of sessions with these newest records or ids."""
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


def choose_title(titles: Mapping[TitleSource, str]) -> tuple[str, TitleSource] | None:
    """The title to show and its source: the user's first, then the agent's, the first prompt last (R-C6).

    A given title becomes one line, one that an agent made loses quotation marks around it, and a prompt becomes its
    first meaningful words (`title_from`); `titles` are not changed.
    """
    for source in get_args(TitleSource):
        to_title = _TO_TITLE.get(source, title_line)
        if (found := titles.get(source)) and (title := to_title(found)):
            return title, source
    return None


_TO_TITLE: Mapping[TitleSource, Callable[[str], str]] = {
    "prompt": title_from,
    "generated": title_given,
    "summary": title_given,
}
