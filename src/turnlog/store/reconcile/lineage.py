"""Sessions that contain the same messages: which of them is billed, and which one is the parent.

A resumed or forked session often copies its parent's records into its own log. The message is stored once, each
session has a membership, and one session is billed. Every function here is a pure function of the stored rows and is
repeated whenever its input may have changed, so the order in which sources are read does not matter.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from turnlog.agents.base import HOOKED_FROM
from turnlog.store.keys import find_key, session_id_of

_LOOKUP_SIZE = 500

_BY_STORE = 2
"""`links.inferred` of a link that the store inferred. 0: a record states it. 1: an agent's module inferred it."""


NEAREST = (
    "NOT (l.kind = 'fork' AND EXISTS (SELECT 1 FROM links nearer JOIN links above ON above.child_id = nearer.parent_id"
    " WHERE nearer.child_id = l.child_id AND nearer.kind = 'fork' AND nearer.parent_id <> l.child_id"
    " AND above.parent_id = l.parent_id AND above.kind = 'fork'))"
    " AND NOT (l.kind = 'subagent' AND l.inferred AND EXISTS (SELECT 1 FROM links named"
    " WHERE named.child_id = l.child_id AND named.kind = 'subagent' AND NOT named.inferred))"
)
"""Of links `l`: the link to the nearest parent, where several are known.

A copy of a copy names the sessions that made all its records; it came out of the last of them. So the fork from a
session is left out where the child is also a fork of one of that session's forks. An inferred parent of a subagent is
left out where a record names its parent."""


class BillingChange(NamedTuple):
    """A message whose cost moves from the totals of one session to those of another."""

    message_key: int
    old: int | None
    new: int


class SharedMessages(NamedTuple):
    """The result of `settle_shared`."""

    billing: list[BillingChange]
    session_ids: set[str]
    """Sessions whose relationships may have changed."""


def settle_shared(connection: sqlite3.Connection, session_keys: set[int]) -> SharedMessages:
    """Decide which session is billed for messages that these sessions share, and how the sessions are related.

    The origin is a session without messages of its own (the shortest, if several have none: each copied those
    before it), or the one whose own messages begin earliest. A session whose records are marked as copies is not
    billed if another one's are not, nor one whose records name another of them as the session it came out of. This
    writes the links between the sessions; the caller moves the bills.
    """
    group = _relatives(connection, session_keys)
    rank = {key: _rank(connection, key) for key in group}
    ids = {key: session_id_of(connection, key) for key in group}
    depths = _Depths(connection, ids)
    billing: list[BillingChange] = []
    latest: dict[int, tuple[int, int]] = {}
    for message_key, old, members in _shared_messages(connection, group):
        # Records that are marked as copies (`forkedFrom` in Claude Code's log) decide first, then what records say a
        # session came out of (Kimi Code's state). Claude Code 1.0.24 and 1.0.91 copied a resumed history with neither;
        # then the session wins whose own messages begin earliest.
        depth = depths.among(frozenset(key for key, _, _ in members))
        new = min(members, key=lambda member: (member[1], depth[member[0]], rank[member[0]]))[0]
        # A message that was handed over is billed to no session, nor are copies of it.
        if new != old and not (old is None and all(copied for _, copied, _ in members)):
            billing.append(BillingChange(message_key, old, new))
        for key, _, position in members:
            # A copy of a copy shares messages with all sessions before it. Its parent is the one that is billed for the
            # last message they share.
            if key != new and position >= latest.get(key, (-1, 0))[0]:
                latest[key] = (position, new)
    _infer_links(connection, group, {child: parent for child, (_, parent) in latest.items()}, rank)
    return SharedMessages(billing, session_ids(connection, group))


def _relatives(connection: sqlite3.Connection, session_keys: set[int]) -> set[int]:
    """These sessions and all that share messages with them, directly or through others."""
    found: set[int] = set()
    pending = set(session_keys)
    while pending:
        key = pending.pop()
        found.add(key)
        rows = connection.execute(
            "SELECT DISTINCT other.session_key FROM memberships own"
            " JOIN memberships other ON other.message_key = own.message_key WHERE own.session_key = ?",
            (key,),
        )
        pending.update({row[0] for row in rows} - found)
    return found


def _rank(connection: sqlite3.Connection, session_key: int) -> tuple[int, int, str]:
    """The time at which its own messages begin (-1: it has none, so others copied all of it), its length, its id."""
    own, count = connection.execute(
        "SELECT min(iif(EXISTS (SELECT 1 FROM memberships o WHERE o.message_key = s.message_key"
        " AND o.session_key <> s.session_key), NULL, coalesce(m.created_at, 0))), count(*)"
        " FROM memberships s JOIN messages m ON m.key = s.message_key WHERE s.session_key = ? AND s.position < ?",
        (session_key, HOOKED_FROM),
    ).fetchone()
    external_id = connection.execute("SELECT external_id FROM sessions WHERE key = ?", (session_key,)).fetchone()[0]
    return (-1 if own is None else own, count, external_id)


class _Depths:
    """Out of how many of some sessions of a group each of them came, as records say."""

    def __init__(self, connection: sqlite3.Connection, ids: Mapping[int, str]) -> None:
        """Begin with the ids of a group that shares messages.

        A link over a session outside of the group says nothing: that may be read after the group was settled.
        """
        keys = {session_id: key for key, session_id in ids.items()}
        stated = "SELECT parent_id FROM links WHERE child_id = ? AND inferred <> ?"
        self._parents = {
            key: [keys[parent] for (parent,) in connection.execute(stated, (session_id, _BY_STORE)) if parent in keys]
            for key, session_id in ids.items()
        }
        self._above = {key: self._ancestors(key) for key in ids}
        self._among: dict[frozenset[int], dict[int, int]] = {}

    def _ancestors(self, key: int) -> set[int]:
        found, pending = {key}, [key]
        while pending:
            new = [parent for parent in self._parents[pending.pop()] if parent not in found]
            found.update(new)
            pending += new
        return found - {key}

    def among(self, holders: frozenset[int]) -> dict[int, int]:
        """Session -> how many of these it came out of. Many messages have the same holders."""
        known = self._among.get(holders)
        if known is None:
            known = self._among[holders] = {key: len(self._above[key] & holders) for key in holders}
        return known


class Origins:
    """Which of the sessions that share a message had it first."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Begin; what is found of a session is kept for further messages."""
        self._connection = connection
        self._ranks: dict[int, tuple[int, int, str]] = {}
        self._above: dict[int, frozenset[str]] = {}

    def of(self, message_key: int) -> list[int]:
        """The sessions that hold a message, the original's first, a fork after those that it came out of."""
        rows = self._connection.execute(
            "SELECT session_key, copied FROM memberships WHERE message_key = ?", (message_key,)
        ).fetchall()
        ids = {key: session_id_of(self._connection, key) for key, _ in rows}
        for key in ids.keys() - self._ranks.keys():
            self._ranks[key] = _rank(self._connection, key)
            self._above[key] = _ancestors(self._connection, ids[key])
        depth = {key: len(self._above[key].intersection(ids.values())) for key in ids}
        return [key for key, _ in sorted(rows, key=lambda row: (row[1], depth[row[0]], self._ranks[row[0]]))]


def _ancestors(connection: sqlite3.Connection, session_id: str) -> frozenset[str]:
    """The sessions that records name as those that this one came out of."""
    rows = connection.execute(
        "WITH RECURSIVE above (id) AS (SELECT parent_id FROM links WHERE child_id = ?1 AND inferred <> ?2"
        " UNION SELECT l.parent_id FROM links l JOIN above a ON l.child_id = a.id WHERE l.inferred <> ?2)"
        " SELECT id FROM above WHERE id <> ?1",
        (session_id, _BY_STORE),
    )
    return frozenset(row[0] for row in rows)


def _shared_messages(
    connection: sqlite3.Connection, group: set[int]
) -> list[tuple[int, int | None, list[tuple[int, int, int]]]]:
    """(message, billed session, [(session, copied, position)]) for each message in at least two of these sessions."""
    members: dict[tuple[int, int | None], list[tuple[int, int, int]]] = defaultdict(list)
    for session_key in sorted(group):
        rows = connection.execute(
            "SELECT s.message_key, m.billed_key, s.copied, s.position FROM memberships s"
            " JOIN messages m ON m.key = s.message_key WHERE s.session_key = ?",
            (session_key,),
        )
        for message_key, billed_key, copied, position in rows:
            members[message_key, billed_key].append((session_key, copied, position))
    return [(key, billed_key, found) for (key, billed_key), found in members.items() if len(found) > 1]


def _infer_links(
    connection: sqlite3.Connection, group: set[int], parents: dict[int, int], rank: dict[int, tuple[int, int, str]]
) -> None:
    """Save how sessions are related, where no agent records it.

    A child whose parent has no own messages after the shared ones is a continuation, otherwise a fork. The result has
    no cycles.
    """
    ids = {key: session_id_of(connection, key) for key in group}
    # What was inferred before may not hold any more, since another session of the group has been read.
    for child in group:
        drop_inferred(connection, ids[child])
    # Origins first, so that the check for cycles does not depend on the order of keys.
    for child in sorted(group, key=rank.__getitem__):
        parent = parents.get(child)
        stated = connection.execute("SELECT 1 FROM links WHERE child_id = ?", (ids[child],)).fetchone()
        # A relationship that an agent records wins over what shared messages suggest.
        if parent is None or stated or _comes_out_of(connection, ids[parent], ids[child]):
            continue
        agent = ids[child].partition(":")[0]
        # -1: the parent has nothing after the shared messages, so the child continues where it ended.
        kind = "continuation" if rank[parent][0] == -1 else "fork"
        connection.execute(
            "INSERT INTO links (agent, parent_id, child_id, kind, inferred) VALUES (?, ?, ?, ?, ?)",
            (agent, ids[parent], ids[child], kind, _BY_STORE),
        )


def _comes_out_of(connection: sqlite3.Connection, session_id: str, ancestor: str) -> bool:
    return (
        connection.execute(
            "WITH RECURSIVE above (id) AS (SELECT ? UNION SELECT l.parent_id FROM links l JOIN above a"
            " ON l.child_id = a.id) SELECT 1 FROM above WHERE id = ?",
            (session_id, ancestor),
        ).fetchone()
        is not None
    )


def drop_inferred(connection: sqlite3.Connection, child_id: str) -> None:
    """Delete the links of a session that the store inferred; those that an agent's module inferred stay."""
    connection.execute("DELETE FROM links WHERE child_id = ? AND inferred = ?", (child_id, _BY_STORE))


def sharing(connection: sqlite3.Connection, linked: set[str]) -> set[int]:
    """Keys of sessions that share messages with others, and of which a new link of these says out of what they came."""
    ids = _with_descendants(connection, linked)
    rows = (
        connection.execute(
            "SELECT key FROM sessions WHERE agent = ? AND external_id = ? AND shares = 1",
            session_id.partition(":")[::2],
        ).fetchone()
        for session_id in ids
    )
    return {row[0] for row in rows if row is not None}


def session_ids(connection: sqlite3.Connection, keys: set[int]) -> set[str]:
    """The ids of sessions by their keys."""
    return {session_id_of(connection, key) for key in keys}


def attach_parents(connection: sqlite3.Connection, linked: set[str], relinked: set[str]) -> set[int]:
    """Set `parent_key` and `relationship` from the links; return the keys of the sessions that they changed.

    Args:
        connection: The store.
        linked: Sessions that are new or have new links; their children are updated too.
        relinked: Sessions whose links may have been deleted.
    """
    children = set(relinked)
    ids = sorted(linked | relinked)
    for start in range(0, len(ids), _LOOKUP_SIZE):
        piece = ids[start : start + _LOOKUP_SIZE]
        marks = ",".join("?" * len(piece))
        rows = connection.execute(
            f"SELECT child_id FROM links WHERE parent_id IN ({marks})"
            f" UNION SELECT child_id FROM links WHERE child_id IN ({marks})",
            (*piece, *piece),
        )
        children.update(row[0] for row in rows)
    attached: set[int] = set()
    # A new link may close a cycle of subagents or open one: which of them has no parent is decided for all of them.
    for child in _with_descendants(connection, children, "subagent"):
        _, parent, kind = _nearest_parent(connection, child)
        if kind == "subagent" and _begins_cycle(connection, child):
            parent, kind = None, None
            _report_cycle(connection, child)
        agent, _, external_id = child.partition(":")
        changed = connection.execute(
            "UPDATE sessions SET parent_key = ?, relationship = ? WHERE agent = ?"
            " AND external_id = ? AND (parent_key IS NOT ? OR relationship IS NOT ?) RETURNING key",
            (parent, kind, agent, external_id, parent, kind),
        )
        attached.update(key for (key,) in changed.fetchall())
    return attached


def _with_descendants(connection: sqlite3.Connection, ids: set[str], kind: str | None = None) -> set[str]:
    """These sessions and all below them, by links of one kind or of any."""
    found: set[str] = set(ids)
    pending = sorted(ids)
    while pending:
        marks = ",".join("?" * len(piece := pending[:_LOOKUP_SIZE]))
        rows = connection.execute(
            f"SELECT child_id FROM links WHERE parent_id IN ({marks}) AND kind = coalesce(?, kind)", (*piece, kind)
        ).fetchall()
        new = {child for (child,) in rows} - found
        found |= new
        pending[:_LOOKUP_SIZE] = sorted(new)
    return found


def _begins_cycle(connection: sqlite3.Connection, session_id: str) -> bool:
    """Whether a session is its own subagent's subagent, and the first by id of those that are so together.

    Damaged or made-up logs say that. Without a session at their top they would be in no list.
    """
    seen: set[str] = set()
    above: str | None = session_id
    while above is not None and above not in seen:
        seen.add(above)
        above, _, kind = _nearest_parent(connection, above)
        if kind != "subagent":
            return False
    return above == session_id == min(seen)


def _report_cycle(connection: sqlite3.Connection, session_id: str) -> None:
    """Add a diagnostic to the file of a session that has no parent because it is its own subagent's subagent."""
    connection.execute(
        "INSERT OR IGNORE INTO diagnostics (source_key, generation, offset, length, severity, reason)"
        " SELECT key, generation, 0, 0, 'error', ? FROM sources WHERE session_id = ?",
        ("a subagent of its own subagent: it is shown without a parent", session_id),
    )


def _nearest_parent(connection: sqlite3.Connection, child: str) -> tuple[str | None, int | None, str | None]:
    """Id, key and kind of the nearest stored parent: recorded links before inferred ones, then by kind."""
    links = connection.execute(
        f"SELECT parent_id, kind FROM links l WHERE child_id = ? AND parent_id <> child_id ORDER BY {NEAREST} DESC,"
        " inferred, CASE kind WHEN 'subagent' THEN 0 WHEN 'fork' THEN 1 ELSE 2 END, parent_id",
        (child,),
    )
    for parent_id, kind in links.fetchall():
        key = find_key(connection, parent_id)
        # A parent that has not been read has no key. Once it has one, this runs again.
        if key is not None:
            return parent_id, key, kind
    return None, None, None
