"""Which source wins if several describe one session: the table of source kinds, and what becomes of the others.

A lesser source shows a session as long as there is no better one. Once a better one describes the same thing, the
lesser source's messages move from `memberships` to `superseded` (`store.writing.messages.supersede`), and its events
are deleted. The order of reading does not matter, because each rule is a function of the stored rows. The archive keeps
the bytes of every source.
"""

from __future__ import annotations

import sqlite3

import msgspec

from turnlog.agents.base import HOOKED_FROM, SourceKind


class SourceRule(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a kind of source next to a better one."""

    name: str
    kinds: frozenset[SourceKind] = frozenset()
    """The source kinds that the rule is about; empty for chats, which programs write into the store."""
    superseded: str = ""
    """How much of it is superseded at a time, and by what; empty for the best source."""
    why: str = ""
    """Why the better source is better."""


LOG = SourceRule(
    name="log",
    kinds=frozenset({SourceKind.SESSION, SourceKind.SUBAGENT}),
)
STREAM = SourceRule(
    name="stream",
    kinds=frozenset({SourceKind.STREAM}),
    superseded="the whole session, as soon as a log has one message of it",
    why="an agent prints its messages with ids, turns and places that need not be those of its log",
)
HOOKS = SourceRule(
    name="hooks",
    kinds=frozenset({SourceKind.HOOKS}),
    superseded="each message, as soon as the log has its call, its text or anything later",
    why="a hook runs before the log has the line, and is given only a part of the message",
)
CHAT = SourceRule(
    name="chat",
    superseded="each turn, as soon as the run has ended and the agent's log has the end of the answer",
    why="the log of the agent that answered has the records, the usage and the results as the agent wrote them",
)

PRECEDENCE = (LOG, STREAM, HOOKS, CHAT)
"""The best first. A source is superseded by the log of its session; `passes.PASSES` has a pass for each but the log.

A stream and hooks of one session may coexist until a log is there: neither is complete. What hooks say of a
session as a whole (`SessionRows.apply_from_hooks`) holds only until another source describes it.
"""

_RANKS = {kind: rank for rank, rule in enumerate(PRECEDENCE) for kind in rule.kinds}


def rank_of(kind: SourceKind) -> int:
    """The index of a source kind in `PRECEDENCE`; sidecars and spilled outputs have that of the log."""
    return _RANKS.get(kind, _RANKS[SourceKind.SESSION])


STREAMED = "source_key IN (SELECT source_key FROM streams WHERE session_key = ?1)"
"""SQL: a row with a `source_key` was read from a stream that describes session ?1."""


def log_path(connection: sqlite3.Connection, session_key: int) -> str | None:
    """Path of a log with messages of the session, the first by name of several; None if there is no log.

    Messages from `HOOKED_FROM` on were read from hooks.
    """
    return connection.execute(
        "SELECT min(path) FROM sources WHERE key IN"
        f" (SELECT source_key FROM memberships WHERE session_key = ?1 AND position < ?2 AND NOT {STREAMED})",
        (session_key, HOOKED_FROM),
    ).fetchone()[0]


def drop_held_again(connection: sqlite3.Connection, session_key: int) -> None:
    """Delete superseded places of messages that the session contains again, because a source was read once more."""
    connection.execute(
        "DELETE FROM superseded WHERE session_key = ?1 AND message_key IN"
        " (SELECT message_key FROM memberships WHERE session_key = ?1)",
        (session_key,),
    )
