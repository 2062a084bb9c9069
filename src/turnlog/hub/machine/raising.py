"""Whom the next push shows more: readers, on the hub, of sessions whose level is higher than when they were sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnlog.hub.machine.levels import Levels, is_lower
from turnlog.hub.machine.state import MachineState, Sent
from turnlog.hub.readers import SharedSession, SharedSessions
from turnlog.store.feed.owners import agents_own_id
from turnlog.store.feed.reading import projects_of_sessions, snapshot

_TEAM = "everybody in the team"


class Readers(NamedTuple):
    """Who may read sessions, as a person says it, and how many sessions."""

    who: str
    sessions: int


def raised_sessions(store_path: Path, state: MachineState, levels: Levels) -> dict[str, Sent]:
    """Session -> how it was sent, for those of which more leaves with the next push."""
    sent = state.sent()
    if not sent:
        return {}
    with snapshot(store_path) as connection:
        projects = projects_of_sessions(connection)
    return {
        session_id: sent[session_id]
        for session_id, *place in projects
        if session_id in sent and is_lower(sent[session_id].level, levels.of(*place))
    }


def readers_of(raised: Mapping[str, Sent], shared: SharedSessions) -> list[Readers]:
    """Who besides their owner may read these sessions on the hub once they are sent; nobody is not in it.

    A session that has left at `metrics` or not at all comes under its own id. Who could read it there before may do so
    again; otherwise it is a new one.
    """
    known = {each.id: each for each in shared.items}
    of_own_id: dict[str, set[str]] = {}
    for each in shared.items:
        of_own_id.setdefault(agents_own_id(each.id), set()).add(_readers(each))
    found = Counter[str]()
    for session_id, sent in raised.items():
        if sent.level in ("none", "metrics"):
            found.update(of_own_id.get(session_id) or ({_TEAM} if shared.new_sessions == "team" else ()))
        elif sent.name in known:
            found[_readers(known[sent.name])] += 1
    return [Readers(who, count) for who, count in found.most_common()]


def _readers(session: SharedSession) -> str:
    if session.visibility == "people":
        return ", ".join(session.people)
    return _TEAM if session.visibility == "team" else "whoever has a link"
