"""Merging two readings of one thing (places of messages, facts of sessions, links), and computing fates.

These are pure functions over what folds return, without a database. The store's writers apply them to rows and
`turnlog.logs` to values in memory, so a log has the same history in both. Each merge is associative and commutative:
neither the split of the bytes nor the order of the sources changes the result. `turnlog.model.merge` merges messages
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, cast

import msgspec

from turnlog.agents.changes import (
    EventChange,
    Link,
    Placement,
    RecordRef,
    ResultChange,
    SessionChange,
)
from turnlog.model import CompactionEvent, Fate, Message, Relationship, SessionTotal, ToolCallPart
from turnlog.model.merge import add_results
from turnlog.model.session import TitleSource
from turnlog.model.tree import Compaction, Node, Placed, default_leaf, place
from turnlog.model.usage import merge_total

_FATES_OF_RECORDS = (Fate.ACTIVE, Fate.SUPERSEDED, Fate.RETRACTED, Fate.SIDECAR)
"""Fates that a record can state, weakest first; all others follow from the tree (`place_messages`)."""

Pick = Callable[[Any, Any], Any]
"""Chooses between two values of one fact."""


def merge_placements(one: Placement, other: Placement) -> Placement:
    """Merge two readings of a message's place: the first record decides parent, turn and step.

    The stronger of two fates wins, because the record that retracts a message comes after the message's own.
    """
    first, second = sorted((one, other), key=_place_in_file)
    fated = max(one, other, key=lambda placement: (_strength(placement.fate), placement.fate_cause or ""))
    # Two readings at one position come from one record, and one fold may not have known the parent.
    has_parent = first if first.parent_id or first.parent_record or first.position < second.position else second
    return Placement(
        session_id=first.session_id,
        position=first.position,
        records=merge_records(one.records, other.records),
        record_ids=tuple(dict.fromkeys((*first.record_ids, *second.record_ids))),
        parent_id=has_parent.parent_id,
        parent_record=has_parent.parent_record,
        turn=second.turn if first.turn is None else first.turn,
        step=second.step if first.step is None else first.step,
        fate=fated.fate,
        fate_cause=fated.fate_cause,
        copied=one.copied or other.copied,
        handed_over=one.handed_over or other.handed_over,
    )


def with_later_turn(placement: Placement, *readings: Placement) -> Placement:
    """The place with the largest turn of these readings, and the largest step in it."""
    turn, step = max(((each.turn, each.step) for each in readings), key=lambda pair: [number or 0 for number in pair])
    return msgspec.structs.replace(placement, turn=turn, step=step)


def merge_records(one: Iterable[RecordRef], other: Iterable[RecordRef]) -> tuple[RecordRef, ...]:
    """The distinct records of both, in file order."""
    # The same record may be read twice, and in any order.
    return tuple(sorted({*one, *other}, key=_record_order))


def add_late_result(message: Message, change: ResultChange) -> Message:
    """The message with a result that came after its call, and with the facts of the call in the result's record."""
    return add_late_results(message, (change,))


def add_late_results(message: Message, changes: Iterable[ResultChange]) -> Message:
    """The message as `add_late_result` makes it with each of these; a call may have many thousand."""
    added: dict[str, list[ResultChange]] = {}
    for change in changes:
        added.setdefault(change.tool_call_id, []).append(change)
    parts = tuple(
        _with_results(part, added[part.tool_call_id])
        if isinstance(part, ToolCallPart) and part.tool_call_id in added
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def merge_session_changes(one: SessionChange, other: SessionChange, *, is_rewritten: bool = False) -> SessionChange:
    """Merge two changes of a session: the latest value, the earliest project and the outermost times win.

    `position` decides which one is later. If the positions are equal, the JSON of the changes decides, so that the
    order of merging does not matter. Only where `other` `is_rewritten`, from a file that had another content before,
    it is the later one then, and gives the titles: files that are read whole give all that they say the position 0.
    """
    changes = one, other
    if not is_rewritten or one.position != other.position:
        changes = sorted(changes, key=lambda change: (change.position, msgspec.json.encode(change)))
    earlier, later = changes
    latest: dict[str, Any] = {
        name: getattr(earlier if getattr(later, name) is None else later, name) for name in _LATEST_WINS
    }
    project = _project(earlier, later)
    titles, titled_at = _merge_titles(earlier, later)
    if is_rewritten and other.position == 0:
        # A name beside a log has position 0, before the log's records, also when it was changed last.
        titles |= {source: title for source, title in other.titles.items() if source != "prompt"}
    return SessionChange(
        session_id=later.session_id,
        position=later.position,
        project_path=project.project_path,
        project_at=project.project_at,
        titles=titles,
        titled_at=titled_at,
        first_at=min((at for at in (one.first_at, other.first_at) if at), default=None),
        last_at=max((at for at in (one.last_at, other.last_at) if at), default=None),
        totals=_merge_totals(earlier, later),
        has_branches=one.has_branches or other.has_branches,
        metadata=merge_json(earlier.metadata, later.metadata, lambda before, after: after),
        **latest,
    )


def _project(earlier: SessionChange, later: SessionChange) -> SessionChange:
    """The change that decides the project: the earlier time, a time before none, otherwise the earlier change.

    Claude Code 2.1.330 can be given one session id in two folders and then writes a file in each.
    """
    if earlier.project_path is None or later.project_path is None:
        return later if earlier.project_path is None else earlier
    if earlier.project_at is None or later.project_at is None:
        return earlier if later.project_at is None else later
    return min(earlier, later, key=lambda change: (change.project_at, change.project_path))


def _merge_titles(earlier: SessionChange, later: SessionChange) -> tuple[dict[TitleSource, str], datetime | None]:
    """The later titles, but the earlier of two prompts with known times, and the time of the prompt."""
    # Each file of a session has its own first prompt, and offsets of two files do not compare: the time decides.
    titles: dict[TitleSource, str] = {**earlier.titles, **later.titles}
    timed = [(at, change.titles["prompt"]) for change in (earlier, later) if (at := change.titled_at) is not None]
    if not timed:
        return titles, None
    titled_at, titles["prompt"] = min(timed)
    return titles, titled_at


def _merge_totals(earlier: SessionChange, later: SessionChange) -> dict[str, SessionTotal]:
    """The totals of both, in the order of their ids. See `merge_total` for two readings of one."""
    is_ordered = earlier.position != later.position
    both = [(name, earlier.totals.get(name), later.totals.get(name)) for name in {*earlier.totals, *later.totals}]
    merged = {
        name: one or other if one is None or other is None else merge_total(one, other, is_ordered=is_ordered)
        for name, one, other in sorted(both)
    }
    return {name: total for name, total in merged.items() if total is not None}


_LATEST_WINS = ("cwd", "git_branch", "git_commit", "agent_version", "reported_cost", "active_leaf", "task")


def merge_links(one: Link, other: Link) -> Link:
    """Merge what both sides say about a relationship. It is inferred only if neither side has a record of it."""
    return msgspec.structs.replace(
        one,
        tool_call_id=_smaller(one.tool_call_id, other.tool_call_id),
        message_id=_smaller(one.message_id, other.message_id),
        inferred=one.inferred and other.inferred,
        metadata=merge_json(one.metadata, other.metadata, _smaller_json),
    )


def merge_json(one: dict[str, Any], other: dict[str, Any], pick: Pick) -> dict[str, Any]:
    """Merge two JSON objects, nested ones included; `pick` chooses between different values."""
    merged = {**one, **other}
    for name in one.keys() & other.keys():
        mine, theirs = one[name], other[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            merged[name] = merge_json(cast("dict[str, Any]", mine), cast("dict[str, Any]", theirs), pick)
        elif mine != theirs:
            merged[name] = pick(mine, theirs)
    return dict(sorted(merged.items()))


def relationship_of(link: Link) -> Relationship:
    """The relationship that a link gives the child session."""
    return Relationship(
        kind=link.kind,
        parent_session_id=link.parent_session_id,
        parent_tool_call_id=link.tool_call_id,
        parent_message_id=link.message_id,
        inferred=link.inferred,
    )


def messages_of_records(placements: Mapping[str, Placement], events: Iterable[EventChange]) -> dict[str, str]:
    """Record id -> id of the message that the record belongs to, or that its event follows."""
    found = {change.record_id: change.parent_id for change in events if change.record_id and change.parent_id}
    for message_id, placement in placements.items():
        found.update(dict.fromkeys(placement.record_ids, message_id))
    return found


def place_messages(
    placements: Mapping[str, Placement],
    events: Iterable[EventChange],
    message_of: Mapping[str, str],
    active_leaf: str | None,
) -> dict[str, Placed]:
    """The fate of each message of a session, by message id, computed from all its placements and events.

    Args:
        placements: Merged placement of each message, by message id.
        events: The session's events, of which compactions matter.
        message_of: The result of `messages_of_records` for both.
        active_leaf: `SessionChange.active_leaf`: a record id, "" for the beginning of the session, None if no record
            names one.
    """
    parents = parents_of(placements, message_of)
    nodes = [
        Node(
            id=message_id,
            parent=parents[message_id],
            position=placement.position,
            sidecar=placement.fate is Fate.SIDECAR,
        )
        for message_id, placement in placements.items()
    ]
    compactions = [
        Compaction(
            id=event.id,
            position=event.position,
            kept=frozenset(event.kept_message_ids),
            summary=event.summary_message_id,
        )
        for event in (change.event for change in events)
        if isinstance(event, CompactionEvent)
    ]
    leaf = default_leaf(nodes) if active_leaf is None else message_of.get(active_leaf)
    # The record at the end of the active branch may have been on a damaged line.
    if active_leaf and leaf is None:
        leaf = default_leaf(nodes)
    from_records = {
        message_id: Placed(fate=placement.fate, cause=placement.fate_cause)
        for message_id, placement in placements.items()
        if placement.fate in (Fate.SUPERSEDED, Fate.RETRACTED)
    }
    return {**place(nodes, leaf, compactions), **from_records}


def parents_of(placements: Mapping[str, Placement], message_of: Mapping[str, str]) -> dict[str, str | None]:
    """Message id -> id of its parent, looked up by record if the fold no longer knew the message.

    An unknown record was on a damaged line: then the parent is the message before it in the session.
    """
    parents: dict[str, str | None] = {}
    before = None
    for message_id, placement in sorted(placements.items(), key=lambda item: (item[1].position, item[0])):
        record = placement.parent_record
        parents[message_id] = placement.parent_id if record is None else message_of.get(record, before)
        # Sidecar messages are not part of the conversation, so none follows them.
        if placement.fate is not Fate.SIDECAR:
            before = message_id
    return parents


def fate_of_records(fate: Fate) -> Fate:
    """The fate that records alone state, given the final one: `ACTIVE` if that followed from the tree."""
    return fate if fate in _FATES_OF_RECORDS else Fate.ACTIVE


def cause_of_records(fate: Fate, cause: str | None) -> str | None:
    """The cause of a fate that a record states; None for a fate that followed from the tree."""
    return cause if fate is not Fate.ACTIVE and fate in _FATES_OF_RECORDS else None


def _with_results(part: ToolCallPart, changes: Sequence[ResultChange]) -> ToolCallPart:
    part = add_results(part, [change.result for change in changes])
    approvals = [change.approval for change in changes if change.approval is not None]
    return msgspec.structs.replace(part, approval=approvals[-1]) if approvals else part


def _place_in_file(placement: Placement) -> tuple[int, bool, str, str]:
    return (
        placement.position,
        placement.parent_id is None,
        placement.parent_id or "",
        placement.parent_record or "",
    )


def _record_order(record: RecordRef) -> tuple[int, int, float, str]:
    position, length, brought = record
    if isinstance(brought, str):
        return (position, length, inf, brought)
    return (position, length, -1 if brought is None else brought, "")


def _strength(fate: Fate) -> int:
    return _FATES_OF_RECORDS.index(fate_of_records(fate))


def _smaller(one: str | None, other: str | None) -> str | None:
    # Neither of two values is newer, so any choice will do that does not depend on the order of reading.
    return min((value for value in (one, other) if value is not None), default=None)


def _smaller_json(one: Any, other: Any) -> Any:
    return min(one, other, key=msgspec.json.encode)
