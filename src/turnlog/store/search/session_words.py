"""What search knows of sessions as a whole: titles, projects, tags, branches, models, agents and names of files.

`session_words` in the search database has one row for each session, under the session's key in the store. It follows
the store's change sequence by a watermark of its own, in the transactions of the indexer. So it is built for an index
that was made without it, and nothing else in that index is touched.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator

import msgspec

from turnlog.store.damaged import read_value
from turnlog.store.search.words import to_index_text

COLUMNS = ("title", "project", "tag", "branch", "model", "agent", "file")

_VERSION = 2
"""Raise it when the content of the rows changes."""

_SEPARATOR = "\ue006"
"""Between two names of one column: a word that no query has, so that no phrase goes from one name into the next."""

_MOST_SESSIONS = 500
"""Sessions that one transaction looks at."""

_TABLES = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS session_words USING fts5 ({', '.join(COLUMNS)},"
    ' tokenize = "unicode61 remove_diacritics 2")',
    # How far the rows follow the store's change sequence.
    "CREATE TABLE IF NOT EXISTS session_progress (key INTEGER PRIMARY KEY CHECK (key = 1), version INTEGER NOT NULL,"
    " sequence INTEGER NOT NULL) STRICT",
)

_DELETE = "DELETE FROM session_words WHERE rowid = ?"

_OF_KEYS = "IN (SELECT value FROM json_each(?))"
"""For the keys of many sessions at once: a first sync has thousands of small ones."""

_FACTS = (
    "SELECT s.key, s.agent, a.title, s.title, s.titles, p.name, p.path, s.git_branch, f.worktree, a.tags"
    " FROM sessions s LEFT JOIN projects p ON p.key = s.project_key LEFT JOIN projects f ON f.key = s.folder_key"
    f" LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id WHERE s.key {_OF_KEYS}"
)
_MODELS = (
    "SELECT DISTINCT u.session_key, d.name FROM usage u JOIN models d ON d.key = u.model_key"
    f" WHERE u.session_key {_OF_KEYS}"
)
_KNOWN = f"SELECT rowid, {', '.join(COLUMNS)} FROM session_words WHERE rowid {_OF_KEYS}"
_INSERT = f"INSERT INTO session_words (rowid, {', '.join(COLUMNS)}) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"

_FILES = " UNION ".join(
    [
        f"SELECT x.session_key, p.path FROM memberships x CROSS JOIN {table} p ON p.message_key = x.message_key"
        f" WHERE x.session_key {_OF_KEYS} AND p.path IS NOT NULL"
        for table in ("parts", "more_paths")
    ]
)
# CROSS JOIN: SQLite would begin with the index of paths, which has those of all messages.
_NEW_FILES = " UNION ".join(
    [
        f"SELECT x.session_key, p.path FROM messages m CROSS JOIN {table} p ON p.message_key = m.key"
        " CROSS JOIN memberships x ON x.message_key = m.key"
        " WHERE m.changed_seq > ?1 AND m.changed_seq <= ?2 AND p.path IS NOT NULL"
        for table in ("parts", "more_paths")
    ]
)
_CHANGED = (
    "SELECT session_key, max(seq) FROM changes WHERE seq > ? AND session_key IS NOT NULL"
    " GROUP BY session_key ORDER BY max(seq)"
)


def create(search: sqlite3.Connection) -> None:
    """Create the tables if they do not exist; empty them if their rows are those of another version."""
    for statement in _TABLES:
        search.execute(statement)
    if _progress(search) is None:
        search.execute("DELETE FROM session_words")
        search.execute("INSERT OR REPLACE INTO session_progress VALUES (1, ?, 0)", (_VERSION,))


def split(joined: str) -> list[str]:
    """The names of a column."""
    return joined.split(_GAP) if joined else []


def is_created(search: sqlite3.Connection) -> bool:
    """Whether the tables exist."""
    return search.execute("SELECT 1 FROM main.sqlite_master WHERE name = 'session_progress'").fetchone() is not None


def is_current(search: sqlite3.Connection) -> bool:
    """Whether the tables exist, with rows of this version."""
    return is_created(search) and _progress(search) is not None


def is_behind(search: sqlite3.Connection, newest: int) -> bool:
    """Whether sessions may have changed since; `newest` is the last number of the store's change sequence."""
    sequence = _progress(search)
    return sequence is None or sequence < newest


def _progress(search: sqlite3.Connection) -> int | None:
    """The change sequence up to which the rows are made; None if they have another version."""
    row = search.execute("SELECT sequence FROM session_progress WHERE version = ?", (_VERSION,)).fetchone()
    return None if row is None else row[0]


class SessionWords:
    """Brings the rows up to date. Used for one transaction of the search database."""

    def __init__(self, search: sqlite3.Connection, store: sqlite3.Connection) -> None:
        self._search = search
        self._store = store

    def follow(self, newest: int, forgotten: Container[int]) -> bool:
        """Write the rows of sessions that changed, of a limited number; return whether there are more.

        `newest` is the last number of the change sequence. Sessions that are just being forgotten get no row.
        """
        sequence = _progress(self._search) or 0
        changed: list[tuple[int, int]] = self._store.execute(_CHANGED, (sequence,)).fetchall()
        reached = newest
        if len(changed) > _MOST_SESSIONS:
            # Up to a number of the change sequence, because progress is one number: the sessions of that number belong
            # to one transaction of the store and stay together.
            reached = changed[_MOST_SESSIONS - 1][1]
            changed = [(key, last) for key, last in changed if last <= reached]
        self._write([key for key, _ in changed], forgotten, (sequence, reached))
        self._search.execute("UPDATE session_progress SET sequence = ?", (max(reached, sequence),))
        return reached < newest

    def drop(self, session_key: int) -> None:
        """Delete the row of a session."""
        self._search.execute(_DELETE, (session_key,))

    def _write(self, keys: list[int], forgotten: Container[int], period: tuple[int, int]) -> None:
        parameters = (json.dumps(keys),)
        facts = {key: row for key, *row in self._store.execute(_FACTS, parameters) if key not in forgotten}
        before = {key: tuple(row) for key, *row in self._search.execute(_KNOWN, parameters)}
        # A session that grows gets only the files of its changed messages; reading all its files at each line would
        # cost more the longer it is.
        files = self._files([key for key in facts if key not in before], period if before else None)
        models = _by_session(self._store.execute(_MODELS, parameters))
        after = {
            key: tuple(
                map(
                    _joined,
                    (*_names(*row), sorted(models[key]), [agent], sorted(files[key].union(_names_in(before.get(key))))),
                )
            )
            for key, (agent, *row) in facts.items()
        }
        changed = [key for key, row in after.items() if row != before.get(key)]
        gone = [key for key in before if key not in after]
        self._search.executemany(_DELETE, [(key,) for key in (*changed, *gone) if key in before])
        self._search.executemany(_INSERT, [(key, *after[key]) for key in changed])

    def _files(self, new: list[int], period: tuple[int, int] | None) -> defaultdict[int, set[str]]:
        """All files of new sessions, and those of the messages that changed in this part of the change sequence."""
        encoded = json.dumps(new)
        found = _by_session(self._store.execute(_FILES, (encoded, encoded)) if new else ())
        for key, paths in _by_session(self._store.execute(_NEW_FILES, period) if period else ()).items():
            found[key] |= paths
        return found


def _by_session(rows: Iterable[tuple[int, str]]) -> defaultdict[int, set[str]]:
    found: defaultdict[int, set[str]] = defaultdict(set)
    for key, name in rows:
        found[key].add(name)
    return found


def _names_in(row: tuple[str, ...] | None) -> list[str]:
    """The files in a row as it was."""
    return [] if row is None else split(row[-1])


def _names(
    own_title: str | None,
    title: str | None,
    titles: str | None,
    project: str | None,
    path: str | None,
    branch: str | None,
    worktree: str | None,
    tags: str | None,
) -> Iterator[list[str]]:
    """The values of the first columns. The log's other titles count too: one may have been shown when it was read."""
    others = read_value(_titles.decode, titles, {}, "titles of a session")
    yield [each for each in dict.fromkeys([own_title, title, *others.values()]) if each]
    # Of its path the last two folders: those above are in every project's.
    yield [each for each in (project, "/".join((path or "").replace("\\", "/").rstrip("/").split("/")[-2:])) if each]
    yield read_value(_tags.decode, tags, [], "tags of a session")
    yield [each for each in (branch, worktree) if each]


_titles = msgspec.json.Decoder(dict[str, str])
_tags = msgspec.json.Decoder(list[str])

_GAP = f" {_SEPARATOR} "


def _plain(text: str) -> str:
    if text.isascii() and text.isprintable():  # nothing in it is changed
        return text
    return to_index_text(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def _joined(names: list[str]) -> str:
    return _GAP.join(map(_plain, names))
