"""What depends on a whole session or on several: fates, who pays for shared messages, inferred relationships.

Every function here is a pure function of the stored rows, run again whenever its inputs may have changed, so that
the order in which sources were read leaves no trace.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import NamedTuple

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.changes import EventChange, Placement
from turnlog.model import Fate, RecordEvent
from turnlog.model.codec import decode_event
from turnlog.model.tree import Placed
from turnlog.store import zstd
from turnlog.store.joining import messages_of_records, parents_of, place_messages, told_fate
from turnlog.store.places import PARENT_ID, unpack_ids
from turnlog.store.writing.splices import shared_compactions

_LOOKUP_SIZE = 500

_BY_STORE = 2
"""`links.inferred` of a link that no agent told: 0 is said by a record, 1 inferred by an agent's module."""


NEAREST = (
    "NOT (l.kind = 'fork' AND EXISTS (SELECT 1 FROM links nearer JOIN links above ON above.child_id = nearer.parent_id"
    " WHERE nearer.child_id = l.child_id AND nearer.kind = 'fork' AND nearer.parent_id <> l.child_id"
    " AND above.parent_id = l.parent_id AND above.kind = 'fork'))"
    " AND NOT (l.kind = 'subagent' AND l.inferred AND EXISTS (SELECT 1 FROM links told"
    " WHERE told.child_id = l.child_id AND told.kind = 'subagent' AND NOT told.inferred))"
)
"""Of links `l`: not the fork from a session of which another that was forked from is a fork itself. A copy of a copy
names the makers of all that it holds; it came out of the last of them. Nor a parent that is inferred of a subagent
whose parent a record names: the session that a person sees is above all of them."""


class PayerChange(NamedTuple):
    """A message whose cost moves from one session's totals to another's."""

    message_key: int
    old: int | None
    new: int


class _Member(NamedTuple):
    message_key: int
    external_id: str
    position: int
    parent_id: str | None
    parent_record: str | None
    record_ids: bytes | None
    fate: str
    fate_cause: str | None

    def placement(self, session_id: str) -> Placement:
        return Placement(
            session_id=session_id,
            position=self.position,
            parent_id=self.parent_id,
            parent_record=self.parent_record,
            record_ids=unpack_ids(self.record_ids, self.external_id),
            fate=told_fate(Fate(self.fate)),
        )


def relink(connection: sqlite3.Connection, session_key: int, sequence: int) -> None:
    """Resolve parents that a fold no longer knew, and work out what the branches make of every message.

    What gets another fate has changed with this number of the change sequence.
    """
    session_id = _session_id(connection, session_key)
    members = _members(connection, session_key)
    placements = {member.external_id: member.placement(session_id) for member in members}
    events = _events(connection, session_key, session_id)
    active_leaf, has_branches = connection.execute(
        "SELECT active_leaf, relink FROM sessions WHERE key = ?", (session_key,)
    ).fetchone()
    message_of = messages_of_records(placements, events)
    shared = shared_compactions(connection, session_key, session_id) if members and members[0].position < 0 else []
    placed = place_messages(placements, [*shared, *events], message_of, active_leaf) if has_branches or shared else {}
    parents = parents_of(placements, message_of)
    changed: list[tuple[str | None, str, str | None, int, int, int]] = []
    for member in members:
        parent = parents[member.external_id]
        at = placed.get(member.external_id) or Placed(fate=Fate(member.fate), cause=member.fate_cause)
        if (parent, at.fate, at.cause) != (member.parent_id, member.fate, member.fate_cause):
            has_changed = (at.fate, at.cause) != (member.fate, member.fate_cause)
            changed.append((parent, at.fate, at.cause, sequence if has_changed else 0, session_key, member.message_key))
    connection.executemany(
        f"UPDATE memberships AS s SET parent_id = iif({PARENT_ID} IS ?1, parent_id, ?1), fate = ?2, fate_cause = ?3,"
        " changed_seq = max(changed_seq, ?4) WHERE session_key = ?5 AND message_key = ?6",
        changed,
    )


def _members(connection: sqlite3.Connection, session_key: int) -> list[_Member]:
    rows = connection.execute(
        f"SELECT m.key, m.external_id, s.position, {PARENT_ID}, s.parent_record, s.record_ids, s.fate, s.fate_cause"
        " FROM memberships s JOIN messages m ON m.key = s.message_key"
        " WHERE s.session_key = ? AND s.position < ? ORDER BY s.position",
        (session_key, HOOKED_FROM),
    )
    return [_Member(*row) for row in rows]


def _events(connection: sqlite3.Connection, session_key: int, session_id: str) -> list[EventChange]:
    """The events that bear on the tree: links in the chain of records, and compactions."""
    rows = connection.execute(
        "SELECT position, record_id, parent_id, CASE type WHEN 'compaction' THEN body END FROM events"
        " WHERE session_key = ? AND (record_id IS NOT NULL OR type = 'compaction')",
        (session_key,),
    )
    return [
        EventChange(
            session_id=session_id,
            event=decode_event(zstd.decompress(body)) if body else RecordEvent(id="", kind="", position=position),
            record_id=record_id,
            parent_id=parent_id,
        )
        for position, record_id, parent_id, body in rows
    ]


class Settlement(NamedTuple):
    """What `settle` found."""

    payers: list[PayerChange]
    session_ids: set[str]
    """The sessions whose relationships may have changed."""


def settle(connection: sqlite3.Connection, session_keys: set[int]) -> Settlement:
    """Work out who pays for the messages that these sessions share, and which session came out of which.

    A session that holds nothing of its own, or whose own messages begin earliest, is the origin; one whose records
    say they are copies never pays while another member does not say so.
    """
    group = _relatives(connection, session_keys)
    rank = {key: _rank(connection, key) for key in group}
    payers: list[PayerChange] = []
    latest: dict[int, tuple[int, int]] = {}
    for message_key, old, members in _shared_messages(connection, group):
        new = min(members, key=lambda member: (member[1], rank[member[0]]))[0]
        if new != old:
            payers.append(PayerChange(message_key, old, new))
        for key, _, position in members:
            if key != new and position >= latest.get(key, (-1, 0))[0]:
                latest[key] = (position, new)
    _infer_links(connection, group, {child: parent for child, (_, parent) in latest.items()}, rank)
    return Settlement(payers, session_ids(connection, group))


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


def _rank(connection: sqlite3.Connection, session_key: int) -> tuple[int, str]:
    """When the session's own messages begin (-1: it has none, so others copied all of it), then its id."""
    own = connection.execute(
        "SELECT min(coalesce(m.created_at, 0)) FROM memberships s JOIN messages m ON m.key = s.message_key"
        " WHERE s.session_key = ? AND s.position < ? AND NOT EXISTS (SELECT 1 FROM memberships o"
        " WHERE o.message_key = s.message_key AND o.session_key <> s.session_key)",
        (session_key, HOOKED_FROM),
    ).fetchone()[0]
    external_id = connection.execute("SELECT external_id FROM sessions WHERE key = ?", (session_key,)).fetchone()[0]
    return (-1 if own is None else own, external_id)


def _shared_messages(
    connection: sqlite3.Connection, group: set[int]
) -> list[tuple[int, int | None, list[tuple[int, int, int]]]]:
    """(message, its payer, [(session, copied, position)]) of every message that two sessions of the group hold."""
    members: dict[tuple[int, int | None], list[tuple[int, int, int]]] = defaultdict(list)
    for session_key in sorted(group):
        rows = connection.execute(
            "SELECT s.message_key, m.pays_key, s.copied, s.position FROM memberships s"
            " JOIN messages m ON m.key = s.message_key WHERE s.session_key = ?",
            (session_key,),
        )
        for message_key, payer, copied, position in rows:
            members[message_key, payer].append((session_key, copied, position))
    return [(key, payer, found) for (key, payer), found in members.items() if len(found) > 1]


def _infer_links(
    connection: sqlite3.Connection, group: set[int], parents: dict[int, int], rank: dict[int, tuple[int, str]]
) -> None:
    """Write down which session came out of which, where no agent says it.

    It continues its parent when the parent holds nothing of its own behind the shared part, else it is a fork.
    No session comes out of one that came out of it.
    """
    ids = {key: _session_id(connection, key) for key in group}
    for child in group:
        drop_inferred(connection, ids[child])
    for child in sorted(group, key=rank.__getitem__):
        parent = parents.get(child)
        stated = connection.execute("SELECT 1 FROM links WHERE child_id = ?", (ids[child],)).fetchone()
        if parent is None or stated or _comes_out_of(connection, ids[parent], ids[child]):
            continue
        agent = ids[child].partition(":")[0]
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
    """Forget what the store itself inferred about a session; what an agent inferred stays."""
    connection.execute("DELETE FROM links WHERE child_id = ? AND inferred = ?", (child_id, _BY_STORE))


def sharing(connection: sqlite3.Connection, ids: set[str]) -> set[int]:
    """Keys of those of these sessions that share messages with others."""
    rows = (
        connection.execute(
            "SELECT key FROM sessions WHERE owner_key = 1 AND agent = ? AND external_id = ? AND shares = 1",
            session_id.partition(":")[::2],
        ).fetchone()
        for session_id in ids
    )
    return {row[0] for row in rows if row is not None}


def session_ids(connection: sqlite3.Connection, keys: set[int]) -> set[str]:
    """The ids of sessions by their keys."""
    return {_session_id(connection, key) for key in keys}


def _session_id(connection: sqlite3.Connection, key: int) -> str:
    agent, external_id = connection.execute("SELECT agent, external_id FROM sessions WHERE key = ?", (key,)).fetchone()
    return f"{agent}:{external_id}"


def attach_parents(connection: sqlite3.Connection, linked: set[str], relinked: set[str]) -> None:
    """Set `parent_key` and `relationship` from the links.

    Args:
        connection: The store.
        linked: Sessions that are new or have new links: their children are looked at too.
        relinked: Sessions whose links may have gone.
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
    for child in children:
        parent, kind = _best_parent(connection, child)
        agent, _, external_id = child.partition(":")
        connection.execute(
            "UPDATE sessions SET parent_key = ?, relationship = ? WHERE owner_key = 1 AND agent = ?"
            " AND external_id = ? AND (parent_key IS NOT ? OR relationship IS NOT ?)",
            (parent, kind, agent, external_id, parent, kind),
        )


def _best_parent(connection: sqlite3.Connection, child: str) -> tuple[int | None, str | None]:
    """The parent that is stored, stated before inferred, the closest kind of relationship first."""
    links = connection.execute(
        f"SELECT parent_id, kind FROM links l WHERE child_id = ? AND parent_id <> child_id ORDER BY {NEAREST} DESC,"
        " inferred, CASE kind WHEN 'subagent' THEN 0 WHEN 'fork' THEN 1 ELSE 2 END, parent_id",
        (child,),
    )
    for parent_id, kind in links.fetchall():
        agent, _, external_id = parent_id.partition(":")
        row = connection.execute(
            "SELECT key FROM sessions WHERE owner_key = 1 AND agent = ? AND external_id = ?", (agent, external_id)
        ).fetchone()
        if row is not None:
            return row[0], kind
    return None, None
