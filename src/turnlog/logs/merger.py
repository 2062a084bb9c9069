"""What the folds of some sources say, merged in memory as the store's writers merge it in tables.

Both use `turnlog.model.merge` and `turnlog.store.reconcile`, so a log read alone has the history that it has in a
store. That sessions share messages only a store can know: it is not looked for here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import (
    ANSWERED_BY,
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    ResultChange,
    SessionChange,
    with_model,
)
from turnlog.history.order import place_results, result_positions
from turnlog.model import HistoryEvent, Membership, Message, Provenance, ToolCallPart, ToolResultEvent
from turnlog.model.merge import merge_messages
from turnlog.model.tree import Placed
from turnlog.store.reconcile.calls import (
    CallEnd,
    SpawnCall,
    SpawnedSession,
    abort_open_calls,
    calls_in,
    end_of_call,
    end_of_subagent,
    match_spawn_calls,
    run_of,
    spawn_calls,
    spawned_session,
    with_call,
)
from turnlog.store.reconcile.merge import (
    add_late_result,
    merge_links,
    merge_placements,
    merge_records,
    merge_session_changes,
    messages_of_records,
    parents_of,
    place_messages,
)
from turnlog.store.reconcile.responses import (
    changes_with_names,
    event_change_with_names,
    is_named_by_provider,
    is_same_in_session,
    is_same_response,
    named,
    placement_with_names,
    response_name,
    shared_id,
    with_names,
)


class LinkMerger:
    """Which session started or continued which, merged of all that records say."""

    def __init__(self, messages_of: Callable[[str], list[Message]]) -> None:
        """`messages_of` gives the messages of a session in order, as far as they are known."""
        self._messages_of = messages_of
        self._links: dict[tuple[str, str, str], Link] = {}

    def add(self, link: Link) -> Link:
        """Merge in what one record says; return what is known now."""
        key = (link.child_session_id, link.parent_session_id, link.kind)
        known = self._links.get(key)
        self._links[key] = merged = link if known is None else merge_links(known, link)
        return merged

    def rename(self, message_id: str, name: str) -> None:
        """Name the message of calls, which has another id now."""
        for key, link in self._links.items():
            if link.message_id == message_id:
                self._links[key] = msgspec.structs.replace(link, message_id=name)

    def named(self, child: str) -> list[Link]:
        """How a session began, as far as records name it."""
        return [link for link in self._links.values() if link.child_session_id == child]

    def of(self, *, parent: str | None = None, child: str | None = None) -> list[Link]:
        """Relationships by either side, those of subagents with the call that started them where no record names it."""
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


class _Place(NamedTuple):
    """The position of a message in one session, and its file."""

    placement: Placement
    source: str


class SourceMerger:
    """Everything that some sources say."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.sessions: dict[str, SessionChange] = {}
        self.diagnostics: list[tuple[Source, Diagnostic]] = []
        self.spills: dict[tuple[str, str], str] = {}
        """Session id and name -> path of the file that holds the whole output."""
        self._messages: dict[str, Message] = {}
        self._names: dict[tuple[str, str], str] = {}
        """Session id and message id -> what a message is called whose id another response has."""
        self._places: dict[str, dict[str, _Place]] = defaultdict(dict)
        self._calls: dict[tuple[str, str], str] = {}
        self._orphans: dict[str, dict[str, tuple[ResultChange, str]]] = defaultdict(dict)
        self._events: dict[str, dict[tuple[int, str], tuple[EventChange, str]]] = defaultdict(dict)
        self.links = LinkMerger(self._in_order)

    def add(self, source: Source, changes: Changes) -> dict[str, str]:
        """Merge in what one feed found; return the ids of messages that it changed, each with its session."""
        changed: dict[str, str] = {}
        changes = self._with_names(source, changes)
        for change in changes.sessions.values():
            known = self.sessions.get(change.session_id)
            self.sessions[change.session_id] = change if known is None else merge_session_changes(known, change)
        for change in changes.messages:
            self._add_message(change, source)
            changed[change.message.id] = change.placement.session_id
        # A result may be read before its call: files are read in any order.
        for session_id in set(changed.values()):
            changed.update(self._adopt_orphans(session_id))
        for change in changes.results:
            message_id = self._add_result(change, source.path)
            if message_id is not None:
                changed[message_id] = change.session_id
        for change in changes.events:
            self._session(change.session_id)
            # Copies of a log have the same events: the file that was read first is the one that is named.
            key = (change.event.position, _event_id(change.event))
            self._events[change.session_id].setdefault(key, (change, source.path))
        for link in map(self.links.add, changes.links):
            message_id = self._calls.get((link.parent_session_id, link.tool_call_id or ""))
            if message_id is not None:
                changed[message_id] = link.parent_session_id
        self.spills.update({(spill.session_id, spill.name): source.path for spill in changes.spills})
        self.diagnostics += [(source, found) for found in changes.diagnostics]
        return changed

    def _with_names(self, source: Source, changes: Changes) -> Changes:
        """The changes of a feed with messages under their names: see `store.writing.response_names`."""
        for change in changes.messages:
            place = (change.placement.session_id, change.message.id)
            if place not in self._names and is_named_by_provider(change.message):
                name = self._name_of(source, change)
                if name != change.message.id:
                    self._names[place] = name
        if not self._names:
            return changes
        messages = [with_names(change, self._names) for change in changes.messages]
        return msgspec.structs.replace(changes_with_names(changes, self._names), messages=messages)

    def _name_of(self, source: Source, change: MessageChange) -> str:
        message, placement = change.message, change.placement
        known = self._places.get(placement.session_id, {}).get(message.id)
        if known is not None and known.source == source.path and known.placement.position == placement.position:
            return message.id
        shared, name = shared_id(message), response_name(message, placement)
        is_named = message.id in self._messages or any(message_id == shared for _, message_id in self._names)
        if not is_named and message.id == shared:
            return message.id
        # Those of this file were told apart by the fold.
        here = {each for each, place in self._places[placement.session_id].items() if place.source == source.path}
        others = [each for each, other in self._messages.items() if each not in here and shared_id(other) == shared]
        same = next((each for each in sorted(others) if self._is_same(each, change, source.path)), None)
        if same is not None:
            return same
        if message.id in self._messages:
            self._set_apart(message.id)
        return name if is_named else message.id

    def _set_apart(self, message_id: str) -> None:
        """Give a message the name by which it is told from another response with its id."""
        held = [places[message_id].placement for places in self._places.values() if message_id in places]
        message = self._messages.pop(message_id)
        name = min(response_name(message, placement) for placement in held)
        self._messages[name] = named(message, name)
        for session_id, places in self._places.items():
            if message_id not in places:
                continue
            self._names[session_id, message_id] = name
            places[name] = places.pop(message_id)
            names = {(session_id, message_id): name}
            for each, place in places.items():
                places[each] = place._replace(placement=placement_with_names(place.placement, names))
            events = self._events[session_id]
            for key, (event, path) in events.items():
                events[key] = event_change_with_names(event, names), path
        self._calls = {place: name if called == message_id else called for place, called in self._calls.items()}
        self.links.rename(message_id, name)

    def _is_same(self, message_id: str, change: MessageChange, path: str) -> bool:
        place = self._places.get(change.placement.session_id, {}).get(message_id)
        if place is not None and place.source != path:
            return is_same_in_session(self._messages[message_id], change.message)
        held = [places[message_id] for places in self._places.values() if message_id in places]
        records = {record for place in held for record in place.placement.record_ids}
        return is_same_response(self._messages[message_id], records, change.message, change.placement.record_ids)

    def messages(self, session_id: str, message_ids: Iterable[str]) -> Iterator[Message]:
        """Messages as far as they are known, with the places of their results and the subagents of their calls."""
        children = self.links.children_of_calls(session_id)
        end = self._end_of(session_id, set())
        model = self.sessions[session_id].metadata.get(ANSWERED_BY)
        for message_id in message_ids:
            placement = self._places[session_id][message_id].placement
            places = result_positions(placement.position, placement.records)
            message = self._messages[message_id]
            if model is not None and message.role == "assistant":
                message = with_model(message, session_id.partition(":")[0], model)
            yield place_results(message if end is None else abort_open_calls(message, end), places, children)

    def _end_of(self, session_id: str, seen: set[str]) -> CallEnd | None:
        """The end of the call that started a subagent, where that is known; None for any other session."""
        # In a damaged log, a session may be its own ancestor.
        seen.add(session_id)
        for link in self.links.of(child=session_id):
            parent = link.parent_session_id
            if link.kind != "subagent" or parent in seen:
                continue
            message = self._messages.get(self._calls.get((parent, link.tool_call_id or ""), ""))
            if message is not None:
                above = self._end_of(parent, seen)
                whole = message if above is None else abort_open_calls(message, above)
                ends = (end_of_call(call) for call in calls_in(whole) if call.tool_call_id == link.tool_call_id)
                return end_of_subagent(next(ends, None), link.metadata)
        return None

    def placed(self, session_id: str) -> list[tuple[Message, Membership]]:
        """The messages of a session in order, each with its place; fates are those of the whole tree."""
        places = dict(sorted(self._places[session_id].items(), key=lambda item: item[1].placement.position))
        placements = {message_id: place.placement for message_id, place in places.items()}
        events = [change for change, _ in self._events[session_id].values()]
        facts = self.sessions[session_id]
        message_of = messages_of_records(placements, events)
        fates = place_messages(placements, events, message_of, facts.active_leaf) if facts.has_branches else {}
        parents = parents_of(placements, message_of)
        memberships = [
            _membership(
                session_id,
                message_id,
                place,
                parents[message_id],
                fates.get(message_id),
                # A copy is billed where its original is not among the sources: somebody has paid for it.
                is_billed=not place.placement.copied or not self._has_original(message_id),
            )
            for message_id, place in places.items()
        ]
        return list(zip(self.messages(session_id, places), memberships, strict=True))

    def _has_original(self, message_id: str) -> bool:
        """Whether a session holds the message whose records do not say it is a copy: that one is billed."""
        held = [places[message_id] for places in self._places.values() if message_id in places]
        return any(not place.placement.copied for place in held)

    def events(self, session_id: str) -> list[HistoryEvent]:
        """What happened in a session besides messages and results of known calls, in order."""
        found = [_with_record(change.event, path, change.record) for change, path in self._events[session_id].values()]
        found += [
            _with_record(_orphan(change), path, change.record) for change, path in self._orphans[session_id].values()
        ]
        return sorted(found, key=_event_order)

    def _in_order(self, session_id: str) -> list[Message]:
        places = sorted(self._places.get(session_id, {}).items(), key=lambda item: item[1].placement.position)
        return [self._messages[message_id] for message_id, _ in places]

    def _session(self, session_id: str) -> None:
        self.sessions.setdefault(session_id, SessionChange(session_id=session_id))

    def _add_message(self, change: MessageChange, source: Source) -> None:
        message, placement = change.message, change.placement
        self._session(placement.session_id)
        known = self._messages.get(message.id)
        self._messages[message.id] = message = message if known is None else merge_messages(known, message)
        places = self._places[placement.session_id]
        place = places.get(message.id)
        places[message.id] = _Place(placement, source.path) if place is None else _merge_place(place, placement, source)
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                self._calls[placement.session_id, part.tool_call_id] = message.id

    def _add_result(self, change: ResultChange, path: str) -> str | None:
        """Add a result to its call, or keep it until the call is there; the id of the message that it changed."""
        self._session(change.session_id)
        message_id = change.message_id
        if message_id not in self._messages:
            message_id = self._calls.get((change.session_id, change.tool_call_id))
        if message_id is None:
            key = f"{change.tool_call_id}:{change.result.id}"
            self._orphans[change.session_id].setdefault(key, (change, path))
            return None
        self._messages[message_id] = add_late_result(self._messages[message_id], change)
        place = self._places[change.session_id].get(message_id)
        # Offsets in two files do not mix: only the file that provides the place adds its records.
        if place is not None and place.source == path:
            placement = msgspec.structs.replace(
                place.placement,
                records=merge_records(place.placement.records, ((*change.record, change.result.id),)),
                record_ids=tuple(dict.fromkeys((*place.placement.record_ids, *change.record_ids))),
            )
            self._places[change.session_id][message_id] = place._replace(placement=placement)
        return message_id

    def _adopt_orphans(self, session_id: str) -> dict[str, str]:
        """Results that came before their call, now that it may be there."""
        waiting = self._orphans.pop(session_id, {})
        adopted = [self._add_result(change, path) for change, path in waiting.values()]
        return {message_id: session_id for message_id in adopted if message_id is not None}


def _merge_place(known: _Place, placement: Placement, source: Source) -> _Place:
    """The same message again in a session. Offsets of two files do not mix: the session's own file counts."""
    if known.source == source.path:
        return known._replace(placement=merge_placements(known.placement, placement))
    # A message in another session's file (a `progress` record, a subagent inside a log) keeps the place in its own.
    if source.session_id != placement.session_id:
        known_ids, more = known.placement.record_ids, placement.record_ids
        return known._replace(
            placement=msgspec.structs.replace(known.placement, record_ids=tuple(dict.fromkeys((*known_ids, *more))))
        )
    ids = tuple(dict.fromkeys((*placement.record_ids, *known.placement.record_ids)))
    return _Place(msgspec.structs.replace(placement, record_ids=ids), source.path)


def _membership(
    session_id: str, message_id: str, place: _Place, parent_id: str | None, placed: Placed | None, *, is_billed: bool
) -> Membership:
    placement = place.placement
    return Membership(
        session_id=session_id,
        message_id=message_id,
        position=placement.position,
        parent_id=parent_id,
        turn=placement.turn,
        step=placement.step,
        fate=placement.fate if placed is None else placed.fate,
        fate_cause=placement.fate_cause if placed is None else placed.cause,
        is_billed=is_billed,
        records=_provenance(place),
    )


def _provenance(place: _Place) -> tuple[Provenance, ...]:
    ranges = dict.fromkeys((offset, length) for offset, length, _ in place.placement.records if length)
    return tuple(Provenance(source=place.source, offset=offset, length=length) for offset, length in ranges)


def _with_record(event: HistoryEvent, path: str, record: tuple[int, int] | None) -> HistoryEvent:
    if event.records or record is None:
        return event
    return msgspec.structs.replace(event, records=(Provenance(source=path, offset=record[0], length=record[1]),))


def _orphan(change: ResultChange) -> ToolResultEvent:
    return ToolResultEvent(
        position=change.position,
        created_at=change.result.completed_at,
        tool_call_id=change.tool_call_id,
        result=change.result,
    )


def _event_order(event: HistoryEvent) -> tuple[int, float]:
    """Positions of a session with several files may be the same; where a time is not known it comes first."""
    return (event.position, -math.inf if event.created_at is None else event.created_at.timestamp())


def _event_id(event: HistoryEvent) -> str:
    if isinstance(event, ToolResultEvent):
        return f"{event.tool_call_id}:{event.result.id}"
    return getattr(event, "id", "")
