"""What search knows of sessions as a whole: titles, projects, tags, branches, models, agents and names of files.

`session_words` in the search database has one row for each session, under the session's key in the store. It follows
the store's change sequence by a watermark of its own, in the transactions of the indexer. So it is built for an index
that was made without it, and nothing else in that index is touched.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterator

import msgspec

from turnlog.store.search.words import to_index_text

COLUMNS = ("title", "project", "tag", "branch", "model", "agent", "file")

_VERSION = 1
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

_FACTS = (
    "SELECT s.agent, a.title, s.title, s.titles, p.name, p.path, s.git_branch, f.worktree, a.tags"
    " FROM sessions s LEFT JOIN projects p ON p.key = s.project_key LEFT JOIN projects f ON f.key = s.folder_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id WHERE s.key = ?"
)
_MODELS = "SELECT DISTINCT d.name FROM usage u JOIN models d ON d.key = u.model_key WHERE u.session_key = ?"
_FILES = (
    "SELECT p.path FROM memberships x JOIN parts p ON p.message_key = x.message_key"
    " WHERE x.session_key = ?1 AND p.path IS NOT NULL"
    " UNION SELECT p.path FROM memberships x JOIN more_paths p ON p.message_key = x.message_key"
    " WHERE x.session_key = ?1"
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
            reached = changed[_MOST_SESSIONS - 1][1]
            changed = [(key, last) for key, last in changed if last <= reached]
        files = _NewFiles(self._store, sequence, reached)
        for key, _ in changed:
            self._write(key, files, is_gone=key in forgotten)
        self._search.execute("UPDATE session_progress SET sequence = ?", (max(reached, sequence),))
        return reached < newest

    def drop(self, session_key: int) -> None:
        """Delete the row of a session."""
        self._search.execute("DELETE FROM session_words WHERE rowid = ?", (session_key,))

    def _write(self, key: int, new_files: _NewFiles, *, is_gone: bool) -> None:
        facts = None if is_gone else self._store.execute(_FACTS, (key,)).fetchone()
        if facts is None:
            self.drop(key)
            return
        known = self._search.execute(f"SELECT {', '.join(COLUMNS)} FROM session_words WHERE rowid = ?", (key,))
        before: tuple[str, ...] | None = known.fetchone()
        if before is None:
            files = {path for (path,) in self._store.execute(_FILES, (key,))}
        else:
            files = new_files.of_session(key).union(split(before[-1]))
        models = [name for (name,) in self._store.execute(_MODELS, (key,))]
        after = tuple(_joined(names) for names in (*_names(*facts[1:]), models, [facts[0]]))
        after += (_joined(sorted(files)),)
        if after != before:
            self.drop(key)
            marks = ", ".join("?" * (len(COLUMNS) + 1))
            self._search.execute(
                f"INSERT INTO session_words (rowid, {', '.join(COLUMNS)}) VALUES ({marks})", (key, *after)
            )


class _NewFiles:
    """The files of the messages that changed between two numbers of the change sequence. Read when first asked for."""

    def __init__(self, store: sqlite3.Connection, sequence: int, reached: int) -> None:
        self._store = store
        self._range = (sequence, reached)
        self._files: dict[int, set[str]] | None = None

    def of_session(self, key: int) -> set[str]:
        """Those of one session."""
        if self._files is None:
            self._files = defaultdict(set)
            for session_key, path in self._store.execute(_NEW_FILES, self._range):
                self._files[session_key].add(path)
        return self._files[key]


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
    others: dict[str, str] = msgspec.json.decode(titles) if titles else {}
    yield [each for each in dict.fromkeys([own_title, title, *others.values()]) if each]
    # Of its path the last two folders: those above are in every project's.
    yield [each for each in (project, "/".join((path or "").replace("\\", "/").rstrip("/").split("/")[-2:])) if each]
    yield msgspec.json.decode(tags, type=list[str]) if tags else []
    yield [each for each in (branch, worktree) if each]


_GAP = f" {_SEPARATOR} "


def _plain(text: str) -> str:
    return to_index_text(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def _joined(names: list[str]) -> str:
    return _GAP.join(map(_plain, names))
