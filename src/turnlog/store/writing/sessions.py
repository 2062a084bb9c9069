"""The session rows of one transaction, one draft per session, and the usage billed to them.

What feeds say about a session is merged in memory with its row (`reconcile.merge.merge_session_changes`), and counts
are kept as differences. So a session costs one row per transaction, however many files and feeds describe it. Keys are
assigned at once, because messages and events refer to them.

Usage is kept by day and model, also as differences. What a message added is subtracted with the same numbers later, so
totals always equal the sum of their messages.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from turnlog.agents.base import KNOWN_FROM, SourceKind
from turnlog.agents.changes import NAMED_AFTER, SessionChange
from turnlog.model import Fate, Message
from turnlog.model.session import TitleSource
from turnlog.store import bodies
from turnlog.store.dollars import NANO
from turnlog.store.frames import BodyReader
from turnlog.store.keys import Names
from turnlog.store.reconcile.merge import merge_session_changes
from turnlog.store.reconcile.titles import LeafTitles, title_of
from turnlog.store.rows import (
    MESSAGE_COUNTS,
    USAGE_COUNTS,
    UsageAdded,
    decode_totals,
    message_buckets,
    message_facts,
    milliseconds,
    moment,
    nanos,
    usage_added,
)
from turnlog.store.values import LONGEST_MEMORY
from turnlog.store.writing.call_totals import CallTotals
from turnlog.store.writing.owners import join_task

_FACTS = (
    "folder_key",
    "project_at",
    "title",
    "title_source",
    "titles",
    "titled_at",
    "metadata",
    "has_branches",
    "created_at",
    "updated_at",
    "cwd",
    "git_branch",
    "git_commit",
    "agent_version",
    "reported_cost",
    "active_leaf",
    "facts_position",
    "totals",
)
_COUNTS = (*MESSAGE_COUNTS, "events", *USAGE_COUNTS)
"""Columns of `sessions` that are sums."""

_INSERT_COLUMNS = ("key", "agent", "external_id", *_FACTS, "turns", "changed_seq", *_COUNTS)
_INSERT = f"INSERT INTO sessions ({', '.join(_INSERT_COLUMNS)}) VALUES ({', '.join('?' * len(_INSERT_COLUMNS))})"
_UPDATE_FACTS = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _FACTS)} WHERE key = ?"
_UPDATE_COUNTS = (
    f"UPDATE sessions SET turns = max(turns, ?), changed_seq = max(changed_seq, ?),"
    f" {', '.join(f'{name} = {name} + ?' for name in _COUNTS)} WHERE key = ?"
)
_SELECT = (
    "SELECT key, shares, (SELECT path FROM projects p WHERE p.key = folder_key), project_at, titles, titled_at,"
    " metadata, has_branches, created_at, updated_at, cwd, git_branch, git_commit, agent_version,"
    " reported_cost, active_leaf, facts_position, totals FROM sessions"
    " WHERE agent = ? AND external_id = ?"
)

_USAGE_COLUMNS = (*USAGE_COUNTS, "reported_cost")
_UPSERT_USAGE = (
    f"INSERT INTO usage (quarter_hour, model_key, session_key, {', '.join(_USAGE_COLUMNS)})"
    f" VALUES ({', '.join('?' * (3 + len(_USAGE_COLUMNS)))})"
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _USAGE_COLUMNS)}"
)

_MOST_COUNTS = 1024
"""Rows of counts that are kept before they are added up."""

_MOST_TIMES = 1 << 16
"""Times of new messages that are kept; with more of them, all messages of the session are looked at."""

NO_MODEL = 0
"""`usage.model_key` of calls with an unknown model."""


class Departure(msgspec.Struct, frozen=True):
    """A message or event that has left a session, to be reported to viewers of its changes."""

    is_event: bool
    position: int
    id: str


class SessionDraft(msgspec.Struct):
    """What one transaction will write of one session."""

    key: int
    session_id: str = ""
    """Empty if no source of the transaction describes the session, which only contains a changed message."""
    facts: SessionChange = msgspec.field(default_factory=lambda: SessionChange(session_id=""))
    """The facts known so far, from its row and from the feeds of this transaction."""
    is_created: bool = False
    """This transaction created it."""
    has_row: bool = True
    has_new_facts: bool = False
    """`facts` differ from the row, or the title may."""
    needs_fates: bool = False
    """A record left a branch or compacted the context: recompute the fates of its messages."""
    is_shared: bool = False
    """It shares messages with other sessions: recompute who is billed."""
    starts_sharing: bool = False
    """Set the column that says so."""
    sequence: int = 0
    """Its number in the change sequence; 0 while nothing has changed."""
    is_announced: bool = True
    """The row of `sequence` in `changes` was written."""
    turns: int = 0
    """The newest turn with a new message; 0 if there is none."""
    events: int = 0
    message_counts: list[tuple[int, ...]] = msgspec.field(default_factory=list[tuple[int, ...]])
    """Sums of `rows.MESSAGE_COUNTS` of added messages, minus those of removed ones."""
    usage_counts: list[Sequence[int]] = msgspec.field(default_factory=list[Sequence[int]])
    """Sums of `rows.USAGE_COUNTS` billed to it in this transaction, minus those that moved elsewhere."""
    departures: list[Departure] = msgspec.field(default_factory=list[Departure])
    new_times: list[int] = msgspec.field(default_factory=list[int])
    """Times of messages of its own that were added, in Unix milliseconds."""
    task: str | None = None
    """The task that its environment names."""
    is_retimed: bool = False
    """Other times have changed or are gone: measure its activity from all of its messages."""

    def note_time(self, created_at: int | None) -> None:
        """Note the time of a new message, in Unix milliseconds."""
        if self.is_retimed or created_at is None:
            return
        self.new_times.append(created_at)
        # A log may have a million.
        self.is_retimed = len(self.new_times) >= _MOST_TIMES

    def add_message(self, counts: tuple[int, ...]) -> None:
        """Count a message that the session now contains (`rows.MESSAGE_COUNTS`)."""
        self._count(counts)

    def remove_message(self, counts: tuple[int, ...]) -> None:
        """Subtract a message from the counts."""
        self._count(tuple([-count for count in counts]))

    def _count(self, counts: tuple[int, ...]) -> None:
        self.message_counts.append(counts)
        # A session may have a million messages. Summing many rows at once is the cheapest.
        if len(self.message_counts) >= _MOST_COUNTS:
            self.message_counts = [tuple(_sums(self.message_counts, MESSAGE_COUNTS))]

    def note_turn(self, turn: int | None) -> None:
        """Note that this turn has a message."""
        if turn is not None and turn > self.turns:
            self.turns = turn

    @property
    def has_new_counts(self) -> bool:
        """Whether sums or the number in the change sequence must be written."""
        has_sums = self.message_counts or self.usage_counts or self.events or self.turns
        return bool(has_sums) or not self.is_announced

    def count_columns(self) -> list[int]:
        """The columns of `_COUNTS`."""
        return [*_sums(self.message_counts, MESSAGE_COUNTS), self.events, *_sums(self.usage_counts, USAGE_COUNTS)]

    def settle(self) -> None:
        """Reset everything that was written. Flags that passes read stay."""
        self.has_row = self.is_announced = True
        self.has_new_facts = self.starts_sharing = False
        self.turns = self.events = 0
        self.message_counts.clear()
        self.usage_counts.clear()
        self.departures.clear()
        self.task = None


def _sums(counts: Sequence[Sequence[int]], names: Sequence[str]) -> list[int]:
    return [sum(column) for column in zip(*counts, strict=True)] if counts else [0] * len(names)


class SessionRows:
    """The sessions of one transaction."""

    def __init__(self, connection: sqlite3.Connection, names: Names) -> None:
        self._connection = connection
        self._names = names
        self._now = int(time.time() * 1000)
        self.drafts: dict[int, SessionDraft] = {}
        """By key; of sessions that this transaction speaks of, and of those whose messages it changed."""
        self._keys: dict[str, int | None] = {}
        """Key of every session that was asked for; None for one that the user has forgotten."""
        self.leaf_titles = LeafTitles(connection)
        self._forgotten = {row[0] for row in connection.execute("SELECT session_id FROM tombstones")}
        self._next_key = _next(connection, "SELECT max(key) FROM sessions")
        self._next_sequence = _next(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'changes'")

    @property
    def ids(self) -> set[str]:
        """Ids of the sessions that this transaction describes."""
        return {draft.session_id for draft in self.drafts.values() if draft.session_id}

    @property
    def keys(self) -> set[int]:
        """Keys of the sessions that this transaction describes."""
        return {draft.key for draft in self.drafts.values() if draft.session_id}

    @property
    def created(self) -> set[str]:
        """Ids of the sessions that this transaction created."""
        return {draft.session_id for draft in self.drafts.values() if draft.is_created}

    @property
    def created_keys(self) -> list[int]:
        """Keys of the sessions that this transaction created."""
        return [draft.key for draft in self.drafts.values() if draft.is_created]

    @property
    def shared(self) -> set[int]:
        """Keys of touched sessions that share messages with others."""
        return {draft.key for draft in self.drafts.values() if draft.is_shared}

    @property
    def without_fates(self) -> set[int]:
        """Keys of sessions whose fates must be recomputed, because of a record."""
        return {draft.key for draft in self.drafts.values() if draft.needs_fates}

    @property
    def last_change(self) -> int:
        """The newest number of the change sequence; 0 when nothing changed."""
        return max((draft.sequence for draft in self.drafts.values()), default=0)

    def key(self, session_id: str) -> int | None:
        """The key of a session, created if it is new; None if the user has forgotten it."""
        if session_id in self._keys:
            return self._keys[session_id]
        draft = self._load(session_id)
        if draft is None and session_id not in self._forgotten:
            facts = SessionChange(session_id=session_id)
            draft = SessionDraft(self._next_key, session_id, facts, is_created=True, has_row=False)
            self.drafts[draft.key] = draft
            self._next_key += 1
        key = self._keys[session_id] = None if draft is None else draft.key
        return key

    def draft(self, key: int) -> SessionDraft:
        """The draft of a session that is stored or was created by `key`."""
        draft = self.drafts.get(key)
        if draft is None:
            draft = self.drafts[key] = SessionDraft(key)
        return draft

    def _load(self, session_id: str) -> SessionDraft | None:
        """Load the draft of a stored session from its row."""
        agent, _, external_id = session_id.partition(":")
        row = self._connection.execute(_SELECT, (agent, external_id)).fetchone()
        if row is None:
            return None
        key, shares, *facts = row
        draft = self.draft(key)
        draft.session_id, draft.facts = session_id, _change_of(session_id, facts)
        draft.is_shared = draft.is_shared or bool(shares)
        return draft

    def apply(self, change: SessionChange, *, is_rewritten: bool = False) -> None:
        """Merge a feed's facts about a session; `is_rewritten` if its file had another content before."""
        key = self.key(change.session_id)
        if key is None:
            return
        self.sequence(key)
        draft = self.drafts[key]
        if draft.facts.metadata.get(KNOWN_FROM) == "hooks":
            # Facts from hooks hold only until another source has any: a log has all of them, in its own words.
            draft.facts = SessionChange(session_id=change.session_id)
        draft.needs_fates = draft.needs_fates or change.has_branches
        draft.facts = merge_session_changes(draft.facts, change, is_rewritten=is_rewritten)
        draft.has_new_facts = True
        for total in change.totals.values():
            # The pass that counts totals finds their models.
            self._names.model(total.model)

    def apply_from_hooks(self, change: SessionChange) -> None:
        """Merge facts from hooks, unless another source has described the session."""
        key = self.key(change.session_id)
        if key is None:
            return
        self.sequence(key)
        draft = self.drafts[key]
        draft.task = change.task or draft.task
        is_unknown = not draft.has_row and not draft.has_new_facts
        if is_unknown or draft.facts.metadata.get(KNOWN_FROM) == "hooks":
            draft.facts = merge_session_changes(draft.facts, change)
            draft.has_new_facts = True

    @property
    def is_any_forgotten(self) -> bool:
        """Whether the user has forgotten any session."""
        return bool(self._forgotten)

    def is_forgotten(self, session_id: str | None) -> bool:
        """Whether the user has forgotten this session."""
        return session_id in self._forgotten

    def names_forgotten(self, data: bytes) -> bool:
        """Whether these bytes contain the agent's id of a forgotten session."""
        return any(session_id.partition(":")[2].encode() in data for session_id in self._forgotten)

    def start_over(self, session_id: str | None, source_key: int) -> None:
        """A log was rewritten: what it says of its session, and of others inside it, is newer than all earlier facts.

        `session_id` is None if the path of the log does not say whose it is.
        """
        named = [] if session_id is None else [session_id]
        for found in dict.fromkeys([*named, *self._only_in(source_key)]):
            key = self.key(found)
            if key is not None:
                facts = self.drafts[key].facts
                facts.position = 0
                # The record at the end of the active branch is one of the older file.
                facts.active_leaf = None
                self._drop_titles(facts, source_key)

    def _only_in(self, source_key: int) -> list[str]:
        """The sessions that have messages in this file, and neither messages in another nor a file of their own."""
        rows = self._connection.execute(
            "SELECT s.agent || ':' || s.external_id AS id FROM sessions s"
            " WHERE s.key IN (SELECT session_key FROM memberships WHERE source_key = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.session_key = s.key AND m.source_key <> ?1)"
            " AND NOT EXISTS (SELECT 1 FROM sources f WHERE f.session_id = s.agent || ':' || s.external_id"
            " AND f.key <> ?1) ORDER BY s.key",
            (source_key,),
        )
        return [row[0] for row in rows]

    def _drop_titles(self, facts: SessionChange, source_key: int) -> None:
        """Drop the titles that only the older content of this log can have given: it is read again from its start.

        What another file of the session may have said stays, because that one is not read again.
        """
        rows = self._connection.execute(
            "SELECT DISTINCT kind FROM sources WHERE session_id = ? AND key <> ?", (facts.session_id, source_key)
        )
        others = {SourceKind(kind) for (kind,) in rows}
        if not others - {SourceKind.SIDECAR, SourceKind.SPILL, SourceKind.HOOKS}:
            kept = () if SourceKind.SIDECAR not in others else ("custom", "generated")
            facts.titles = {source: title for source, title in facts.titles.items() if source in kept}
            facts.titled_at = None

    def count_by_fate(self, key: int, message_key: int, before: Fate, now: Fate) -> None:
        """Count a message that the session's file has again, or no longer count one that it has no longer."""
        if (before is Fate.SUPERSEDED) is (now is Fate.SUPERSEDED):
            return
        counts = message_counts(self._connection, message_key)
        if now is Fate.SUPERSEDED:
            self.draft(key).remove_message(counts)
        else:
            self.draft(key).add_message(counts)

    def count_turns(self, key: int) -> None:
        """Count the turns of a stored session again, because the newest may have left it."""
        self._connection.execute(
            "UPDATE sessions SET turns = (SELECT coalesce(max(turn), 0) FROM memberships"
            " WHERE session_key = ?1 AND fate <> 'superseded') WHERE key = ?1",
            (key,),
        )

    def share(self, keys: Iterable[int]) -> None:
        """Note that these sessions share a message."""
        for key in keys:
            draft = self.draft(key)
            draft.is_shared = draft.starts_sharing = True

    def sequence(self, key: int) -> int:
        """This transaction's number in the change sequence, for one session."""
        draft = self.drafts.get(key) or self.draft(key)
        if not draft.sequence:
            draft.sequence, draft.is_announced = self._next_sequence, False
            self._next_sequence += 1
        return draft.sequence

    def note_gone(self, key: int, things: Iterable[tuple[int, str]], *, events: bool = False) -> None:
        """Note that messages or events (position, id) have left a session."""
        departures = [Departure(events, position, id) for position, id in things]
        if departures:
            self.sequence(key)
            self.drafts[key].departures += departures

    def flush(self) -> None:
        """Write all drafts to their rows. Later additions need another `flush`."""
        self._retitle()
        drafts = sorted(self.drafts.values(), key=lambda draft: draft.key)
        self._write(_INSERT, [self._new_row(draft) for draft in drafts if not draft.has_row])
        stored = [draft for draft in drafts if draft.has_row]
        self._write(_UPDATE_FACTS, [(*self._fact_columns(draft), draft.key) for draft in stored if draft.has_new_facts])
        self._write(
            _UPDATE_COUNTS,
            [
                (draft.turns, draft.sequence, *draft.count_columns(), draft.key)
                for draft in stored
                if draft.has_new_counts
            ],
        )
        self._write(
            "INSERT INTO changes (seq, session_key, kind, at) VALUES (?, ?, 'session', ?)",
            [(draft.sequence, draft.key, self._now) for draft in drafts if not draft.is_announced],
        )
        self._write_departures(drafts)
        for draft in drafts:
            if draft.task is not None:
                join_task(self._connection, draft.key, draft.task)
        self._write(
            "UPDATE sessions SET shares = 1 WHERE key = ? AND shares = 0",
            [(draft.key,) for draft in drafts if draft.starts_sharing],
        )
        for draft in drafts:
            draft.settle()

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        # When a log grows by a line, most of these lists are empty.
        if rows:
            self._connection.executemany(statement, rows)

    def _retitle(self) -> None:
        """Update the titles of sessions that other files have titled, or no longer title."""
        for session_id in self.leaf_titles.take_concerned():
            if session_id in self._keys or self._load(session_id) is not None:
                key = self.key(session_id)
                if key is not None:
                    self.sequence(key)
                    self.drafts[key].has_new_facts = True

    def _write_departures(self, drafts: Iterable[SessionDraft]) -> None:
        rows = [
            (draft.sequence, draft.key, gone.is_event, gone.position, gone.id)
            for draft in drafts
            for gone in draft.departures
        ]
        if rows:
            self._connection.executemany(
                "INSERT OR IGNORE INTO gone (seq, session_key, is_event, position, id) VALUES (?, ?, ?, ?, ?)", rows
            )
            # A viewer that was away for longer reads the session again (`Store.session_changes` returns None).
            self._connection.execute("DELETE FROM gone WHERE seq <= ?", (self._next_sequence - LONGEST_MEMORY,))

    def _new_row(self, draft: SessionDraft) -> tuple[Any, ...]:
        agent, _, external_id = draft.session_id.partition(":")
        facts = self._fact_columns(draft)
        return (draft.key, agent, external_id, *facts, draft.turns, draft.sequence, *draft.count_columns())

    def _fact_columns(self, draft: SessionDraft) -> tuple[Any, ...]:
        """The columns of `_FACTS`."""
        facts = draft.facts
        folder_key = None if facts.project_path is None else self._names.project(facts.project_path)
        named_after = facts.metadata.get(NAMED_AFTER)
        title, title_source = title_of(self._connection, draft.session_id, facts.titles, facts.active_leaf, named_after)
        return (
            folder_key,
            milliseconds(facts.project_at),
            title,
            title_source,
            _json(facts.titles),
            milliseconds(facts.titled_at),
            _json(facts.metadata),
            facts.has_branches,
            milliseconds(facts.first_at),
            milliseconds(facts.last_at),
            facts.cwd,
            facts.git_branch,
            facts.git_commit,
            facts.agent_version,
            nanos(facts.reported_cost),
            facts.active_leaf,
            facts.position,
            _json(facts.totals),
        )


def _change_of(session_id: str, facts: Sequence[Any]) -> SessionChange:
    """The facts in a session's row, as a change."""
    project, project_at, titles, titled_at, metadata, has_branches, created_at, updated_at, *latest = facts
    cwd, branch, commit, version, cost, leaf, position, totals = latest
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
        totals=decode_totals(totals),
        has_branches=bool(has_branches),
        metadata=msgspec.json.decode(metadata) if metadata else {},
    )


def _json(mapping: dict[Any, Any]) -> str | None:
    return msgspec.json.encode(mapping, order="sorted").decode() if mapping else None


def message_counts(connection: sqlite3.Connection, message_key: int) -> tuple[int, ...]:
    """What a stored message adds to the counts of a session that contains it (`rows.MESSAGE_COUNTS`)."""
    return message_facts(bodies.decode(BodyReader(connection).of(message_key))).counts


def _next(connection: sqlite3.Connection, query: str) -> int:
    row = connection.execute(query).fetchone()
    return (row[0] or 0) + 1 if row else 1


class UsageRows:
    """Differences to the usage of one transaction: by quarter hour and model, and per billed session."""

    def __init__(self, connection: sqlite3.Connection, names: Names, sessions: SessionRows) -> None:
        self._connection = connection
        self._names = names
        self._sessions = sessions
        self.calls = CallTotals(connection)
        self.sums: dict[tuple[int, int, int], list[tuple[int, ...]]] = defaultdict(list)
        """Quarter hour, model, session -> `_USAGE_COLUMNS` of messages that were added, negative of those removed."""

    def add(self, session_key: int, message: Message, cost: int | None) -> None:
        """Bill a model call to a session: its usage and cost (nano-dollars), at its time."""
        self._collect(session_key, message, cost, 1)

    def remove(self, session_key: int, message: Message, cost: int | None) -> None:
        """Subtract what `add` added for the same message and cost."""
        self._collect(session_key, message, cost, -1)

    def add_prepared(self, session_key: int, model_key: int, usage: UsageAdded | None) -> None:
        """Bill a model call to a session; None is no call."""
        if usage is not None:
            self._count((usage.quarter_hour, model_key, session_key), usage.counts)

    def _collect(self, session_key: int, message: Message, cost: int | None, sign: int) -> None:
        usage = usage_added(message, cost, milliseconds(message.created_at), message_buckets(message))
        if usage is not None:
            key = (usage.quarter_hour, self.model_key(message.model), session_key)
            self._count(key, usage.counts if sign > 0 else tuple([-count for count in usage.counts]))

    def _count(self, key: tuple[int, int, int], counts: tuple[int, ...]) -> None:
        counted = self.sums[key]
        counted.append(counts)
        if len(counted) >= _MOST_COUNTS:
            counted[:] = [tuple(_sums(counted, _USAGE_COLUMNS))]

    def model_key(self, model: str | None) -> int:
        """The key of a model, as totals name it."""
        return self._names.model(model) or NO_MODEL

    def bill(self, message_key: int, old: int | None, new: int | None) -> None:
        """Move the bill of a stored message and its calls from session `old` to `new` (None: to none)."""
        cost = self._connection.execute("SELECT cost FROM messages WHERE key = ?", (message_key,)).fetchone()[0]
        message = bodies.decode(BodyReader(self._connection).of(message_key))
        model_key = self.model_key(message.model)
        if old is not None:
            self.remove(old, message, cost)
            self.calls.remove_stored(old, model_key, message_key)
            self._sessions.sequence(old)
        if new is not None:
            self.add(new, message, cost)
            self.calls.add_stored(new, model_key, message_key)
            self._sessions.sequence(new)
        self._connection.execute("UPDATE messages SET billed_key = ? WHERE key = ?", (new, message_key))

    def flush(self) -> None:
        """Add the differences to the rows by quarter hour, and pass those of each session to its draft."""
        self.calls.flush()
        sums = {key: [sum(column) for column in zip(*added, strict=True)] for key, added in self.sums.items()}
        for (_, _, session_key), (*counts, _reported) in sums.items():
            self._sessions.draft(session_key).usage_counts.append(counts)
        if not sums:
            return
        self._connection.executemany(_UPSERT_USAGE, [(*key, *counts) for key, counts in sums.items() if any(counts)])
        # A quarter hour without calls, because the last one moved to another session or time, has no row.
        self._connection.executemany(
            "DELETE FROM usage"
            " WHERE quarter_hour = ? AND model_key = ? AND session_key = ? AND is_total = 0 AND calls = 0",
            list(self.sums),
        )
        self.sums.clear()
