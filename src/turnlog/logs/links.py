"""The relationships that some sources tell of, and the calls that those of subagents came out of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from turnlog.agents.changes import Link
from turnlog.model import Message
from turnlog.store.reconcile.merge import merge_links
from turnlog.store.reconcile.subagents import (
    SpawnCall,
    SpawnedSession,
    match_spawn_calls,
    run_of,
    spawn_calls,
    spawned_session,
    with_call,
)


class Links:
    """Who began whom, joined of all that was said about it."""

    def __init__(self, messages_of: Callable[[str], list[Message]]) -> None:
        """`messages_of` gives the messages of a session in order, as far as they are known."""
        self._messages_of = messages_of
        self._links: dict[tuple[str, str, str], Link] = {}

    def add(self, link: Link) -> Link:
        """Join in what one record says; return what is known now."""
        key = (link.child_session_id, link.parent_session_id, link.kind)
        known = self._links.get(key)
        self._links[key] = joined = link if known is None else merge_links(known, link)
        return joined

    def named(self, child: str) -> list[Link]:
        """How a session began, as far as records name it."""
        return [link for link in self._links.values() if link.child_session_id == child]

    def of(self, *, parent: str | None = None, child: str | None = None) -> list[Link]:
        """Relationships by either side, those of subagents with the call that asked them where no record names it."""
        return [
            link
            for link in self._with_found_calls()
            if parent in (None, link.parent_session_id) and child in (None, link.child_session_id)
        ]

    def children_of_calls(self, session_id: str) -> dict[str, str]:
        """Tool call id -> session it started; a fork's copy of a call has the subagents of the original."""
        origins = self._origins(session_id)
        return {
            link.tool_call_id: link.child_session_id
            for link in sorted(self._with_found_calls(), key=lambda link: link.child_session_id, reverse=True)
            if link.kind == "subagent" and link.tool_call_id is not None and link.parent_session_id in origins
        }

    def _origins(self, session_id: str) -> set[str]:
        """The session, and those that it came out of as a fork or continuation."""
        found: set[str] = set()
        waiting = [session_id]
        while waiting:
            child = waiting.pop()
            if child not in found:
                found.add(child)
                waiting += [link.parent_session_id for link in self.named(child) if link.kind != "subagent"]
        return found

    def _with_found_calls(self) -> list[Link]:
        """All links, those of subagents without a call in any record with the one that started them.

        Where a record names a subagent's parent, no other is inferred.
        """
        named = {link.child_session_id for link in self._links.values() if link.tool_call_id is not None}
        unnamed: dict[str, list[Link]] = defaultdict(list)
        for link in self._links.values():
            if link.kind == "subagent" and link.child_session_id not in named:
                unnamed[link.parent_session_id].append(link)
        from_records = {
            link.child_session_id for link in self._links.values() if link.kind == "subagent" and not link.inferred
        }
        found = {
            parent: match_spawn_calls(self._free_calls(parent), self._spawned(children))
            for parent, children in unnamed.items()
        }
        return [
            link
            if link.kind != "subagent"
            or (call := found.get(link.parent_session_id, {}).get(link.child_session_id)) is None
            else with_call(link, call)
            for link in self._links.values()
            if link.kind != "subagent" or not link.inferred or link.child_session_id not in from_records
        ]

    def _free_calls(self, session_id: str) -> list[SpawnCall]:
        """The session's calls of subagents that no record names a child of, in order."""
        taken = {link.tool_call_id for link in self._links.values() if link.parent_session_id == session_id}
        calls = [call for message in self._messages_of(session_id) for call in spawn_calls(message)]
        return [call for call in calls if call.tool_call_id not in taken]

    def _spawned(self, links: Iterable[Link]) -> list[SpawnedSession]:
        firsts = ((link, next(iter(self._messages_of(link.child_session_id)), None)) for link in links)
        spawned = (
            first and spawned_session(link.child_session_id, first, run_of(link.metadata)) for link, first in firsts
        )
        return [found for found in spawned if found is not None]
