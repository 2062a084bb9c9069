"""The session rows that a transaction touches: keys at once, everything else in one statement at its end.

What feeds learn about a session is joined in memory with what its row says (`joining.join_session_changes`), and
totals are kept as differences, so that a session costs a row a transaction however many files and feeds speak of it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from turnlog.agents.changes import NAMED_AFTER, SessionChange
from turnlog.agents.hooked import TOLD_BY
from turnlog.model.session import TitleSource
from turnlog.store.base import LONGEST_MEMORY
from turnlog.store.joining import join_session_changes
from turnlog.store.names import Names
from turnlog.store.rows import NANO, milliseconds, moment, nanos
from turnlog.store.writing.leaf_titles import LeafTitles, title_of
from turnlog.store.writing.session_counts import COUNTS, SessionCounts

_FACTS = (
    "project_key",
    "project_at",
    "title",
    "title_source",
    "titles",
    "titled_at",
    "metadata",
    "relink",
    "created_at",
    "updated_at",
    "cwd",
    "git_branch",
    "git_commit",
    "agent_version",
    "reported_cost",
    "active_leaf",
    "patch_position",
)
_INSERT_COLUMNS = ("key", "agent", "external_id", *_FACTS, "turns", "changed_seq", *COUNTS)
_INSERT = f"INSERT INTO sessions ({', '.join(_INSERT_COLUMNS)}) VALUES ({', '.join('?' * len(_INSERT_COLUMNS))})"
_UPDATE_FACTS = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _FACTS)} WHERE key = ?"
_UPDATE_COUNTS = (
    f"UPDATE sessions SET turns = max(turns, ?), changed_seq = max(changed_seq, ?),"
    f" {', '.join(f'{name} = {name} + ?' for name in COUNTS)} WHERE key = ?"
)
_SELECT = (
    "SELECT key, shares, (SELECT path FROM projects p WHERE p.key = project_key), project_at, titles, titled_at,"
    " metadata, relink, created_at, updated_at, cwd, git_branch, git_commit, agent_version,"
    " reported_cost, active_leaf, patch_position FROM sessions"
    " WHERE owner_key = 1 AND agent = ? AND external_id = ?"
)


class SessionRows:
    """Sessions of one transaction."""

    def __init__(self, connection: sqlite3.Connection, names: Names) -> None:
        self._connection = connection
        self._names = names
        self._now = int(time.time() * 1000)
        self._keys: dict[str, int | None] = {}
        self._ids: dict[int, str] = {}
        self._new: set[int] = set()
        self._facts: dict[int, SessionChange] = {}
        self._learned: set[int] = set()
        self.counts = SessionCounts()
        self._sequences: dict[int, int] = {}
        self._gone: list[tuple[int, int, bool, int, str]] = []
        self._unwritten: list[tuple[int, int, int]] = []
        self.leaf_titles = LeafTitles(connection)
        self._forgotten = {row[0] for row in connection.execute("SELECT session_id FROM tombstones")}
        self._next_key = _next(connection, "SELECT max(key) FROM sessions")
        self._next_sequence = _next(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'changes'")
        self.created: set[str] = set()
        """Ids of sessions that this transaction makes."""
        self.relink: set[int] = set()
        """Keys of sessions whose fates must be worked out anew."""
        self._sharing: set[int] = set()
        self.shared: set[int] = set()
        """Keys of sessions that share messages with others, and were touched."""

    @property
    def touched(self) -> set[str]:
        """Ids of the sessions that this transaction speaks of."""
        return set(self._ids.values())

    @property
    def keys(self) -> set[int]:
        """Keys of the sessions that this transaction speaks of."""
        return set(self._ids)

    @property
    def last_change(self) -> int:
        """The newest number of the change sequence; 0 when nothing changed."""
        return max(self._sequences.values(), default=0)

    def key(self, session_id: str) -> int | None:
        """The key of a session, made if it is new; None for one that the user has forgotten."""
        if session_id in self._keys:
            return self._keys[session_id]
        key = self._find(session_id)
        if key is None and session_id not in self._forgotten:
            key = self._next_key
            self._next_key += 1
            self._new.add(key)
            self._facts[key] = SessionChange(session_id=session_id)
            self.created.add(session_id)
        self._keys[session_id] = key
        if key is not None:
            self._ids[key] = session_id
        return key

    def has_branches(self, key: int) -> bool:
        """Whether the session has left a branch or compacted its context, now or before."""
        return self._facts[key].relink

    def active_leaf(self, key: int) -> str | None:
        """The record at the end of the session's active branch, as far as records say."""
        return self._facts[key].active_leaf

    def id(self, key: int) -> str:
        """The id of a session that this transaction has asked for."""
        return self._ids[key]

    def _find(self, session_id: str) -> int | None:
        agent, _, external_id = session_id.partition(":")
        row = self._connection.execute(_SELECT, (agent, external_id)).fetchone()
        if row is None:
            return None
        key, shares, *facts = row
        self._facts[key] = _change_of(session_id, facts)
        if shares:
            self.shared.add(key)
        return key

    def learn(self, change: SessionChange) -> None:
        """Join what a feed says about a session with what is known."""
        key = self.key(change.session_id)
        if key is None:
            return
        self.sequence(key)
        if self._facts[key].metadata.get(TOLD_BY) == "hooks":
            # What hooks told held until now only: the log tells it all, and its own way.
            self._facts[key] = SessionChange(session_id=change.session_id)
        known = self._facts[key]
        if change.relink:
            self.relink.add(key)
        self._facts[key] = join_session_changes(known, change)
        self._learned.add(key)

    def learn_from_hooks(self, change: SessionChange) -> None:
        """Join what hooks tell of a session, as long as nothing else has told of it."""
        key = self.key(change.session_id)
        if key is None:
            return
        self.sequence(key)
        is_unheard_of = key in self._new and key not in self._learned
        if is_unheard_of or self._facts[key].metadata.get(TOLD_BY) == "hooks":
            self._facts[key] = join_session_changes(self._facts[key], change)
            self._learned.add(key)

    @property
    def is_any_forgotten(self) -> bool:
        """Whether the user has ever wanted nothing of a session kept."""
        return bool(self._forgotten)

    def is_forgotten(self, session_id: str | None) -> bool:
        """Whether the user wants nothing of it kept."""
        return session_id in self._forgotten

    def names_forgotten(self, data: bytes) -> bool:
        """Whether somewhere in these bytes stands the id that an agent gave a forgotten session."""
        return any(session_id.partition(":")[2].encode() in data for session_id in self._forgotten)

    def start_over(self, session_id: str) -> None:
        """The session's own log was written anew: what it says now is newer than anything it said before."""
        key = self.key(session_id)
        if key is not None:
            self._facts[key].position = 0

    def share(self, keys: Iterable[int]) -> None:
        """These sessions hold a message together."""
        self.shared.update(keys)
        self._sharing.update(keys)

    def sequence(self, key: int) -> int:
        """This transaction's number in the change sequence, for one session."""
        sequence = self._sequences.get(key)
        if sequence is None:
            sequence = self._sequences[key] = self._next_sequence
            self._next_sequence += 1
            self._unwritten.append((sequence, key, self._now))
        return sequence

    def lose(self, key: int, things: Iterable[tuple[int, str]], *, events: bool = False) -> None:
        """Messages or events (position, id) have left a session: who follows its changes is told."""
        self._gone += [(self.sequence(key), key, events, position, id) for position, id in things]

    def write(self) -> None:
        """Write all rows; what comes later goes into them by another `write`."""
        self._retitle()
        counts = self.counts.take()
        nothing = (0, [0] * len(COUNTS))
        rows = [self._new_row(key, *counts.pop(key, nothing)) for key in sorted(self._new)]
        self._connection.executemany(_INSERT, rows)
        learned = self._learned - self._new
        self._connection.executemany(_UPDATE_FACTS, [(*self._fact_columns(key), key) for key in sorted(learned)])
        changed = {*counts, *(key for _, key, _ in self._unwritten)} - self._new
        for key in sorted(changed):
            turns, added = counts.get(key, nothing)
            self._connection.execute(_UPDATE_COUNTS, (turns, self._sequences.get(key, 0), *added, key))
        self._connection.executemany(
            "INSERT INTO changes (seq, session_key, kind, at) VALUES (?, ?, 'session', ?)", self._unwritten
        )
        self._write_gone()
        self._connection.executemany(
            "UPDATE sessions SET shares = 1 WHERE key = ? AND shares = 0", [(key,) for key in self._sharing]
        )
        for pending in (self._new, self._learned, self._unwritten, self._sharing):
            pending.clear()

    def _retitle(self) -> None:
        """Sessions that other files gave a title, or took one from, are written with what they are called now."""
        for session_id in self.leaf_titles.take_concerned():
            if session_id in self._keys or self._find(session_id) is not None:
                key = self.key(session_id)
                if key is not None:
                    self.sequence(key)
                    self._learned.add(key)

    def _write_gone(self) -> None:
        if not self._gone:
            return
        self._connection.executemany(
            "INSERT OR IGNORE INTO gone (seq, session_key, is_event, position, id) VALUES (?, ?, ?, ?, ?)", self._gone
        )
        self._connection.execute("DELETE FROM gone WHERE seq <= ?", (self._next_sequence - LONGEST_MEMORY,))
        self._gone.clear()

    def _new_row(self, key: int, turns: int, counts: list[int]) -> tuple[Any, ...]:
        agent, _, external_id = self._ids[key].partition(":")
        return (key, agent, external_id, *self._fact_columns(key), turns, self._sequences.get(key, 0), *counts)

    def _fact_columns(self, key: int) -> tuple[Any, ...]:
        """The columns of `_FACTS`."""
        facts = self._facts[key]
        project_key = None if facts.project_path is None else self._names.project(facts.project_path)
        named_after = facts.metadata.get(NAMED_AFTER)
        title, title_source = title_of(self._connection, self._ids[key], facts.titles, facts.active_leaf, named_after)
        return (
            project_key,
            milliseconds(facts.project_at),
            title,
            title_source,
            _json(facts.titles),
            milliseconds(facts.titled_at),
            _json(facts.metadata),
            facts.relink,
            milliseconds(facts.first_at),
            milliseconds(facts.last_at),
            facts.cwd,
            facts.git_branch,
            facts.git_commit,
            facts.agent_version,
            nanos(facts.reported_cost),
            facts.active_leaf,
            facts.position,
        )


def _change_of(session_id: str, facts: Sequence[Any]) -> SessionChange:
    """What a session's row says, as a feed would have said it."""
    project, project_at, titles, titled_at, metadata, relink, created_at, updated_at, *latest = facts
    cwd, branch, commit, version, cost, leaf, position = latest
    return SessionChange(
        session_id=session_id,
        position=position,
        project_path=project,
        project_at=moment(project_at),
        cwd=cwd,
        git_branch=branch,
        git_commit=commit,
        agent_version=version,
        titles=msgspec.json.decode(titles, type=dict[TitleSource, str]) if titles else {},
        titled_at=moment(titled_at),
        first_at=moment(created_at),
        last_at=moment(updated_at),
        reported_cost=None if cost is None else cost / NANO,
        active_leaf=leaf,
        relink=bool(relink),
        metadata=msgspec.json.decode(metadata) if metadata else {},
    )


def _json(mapping: dict[Any, Any]) -> str | None:
    return msgspec.json.encode(mapping, order="sorted").decode() if mapping else None


def _next(connection: sqlite3.Connection, question: str) -> int:
    row = connection.execute(question).fetchone()
    return (row[0] or 0) + 1 if row else 1
