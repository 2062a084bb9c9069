"""One reading of a log under way: the line, the sessions it belongs to, the chain of records, and what came of it.

The readers of the several kinds of records (`assistant`, `user`, `harness`, `facts`) share it and keep nothing of
their own. What outlives a feed is `State`; the rest begins anew with each.
"""

from __future__ import annotations

from datetime import UTC

import msgspec

from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, SessionChange
from turnlog.agents.claude_code.drafts import CallDraft, MessageDraft
from turnlog.agents.claude_code.records import Record
from turnlog.agents.claude_code.sources import session_id
from turnlog.agents.claude_code.state import (
    RECENT_RECORDS,
    ROOT,
    Early,
    OpenMessage,
    State,
    Thread,
    message_in,
    unresolved,
)
from turnlog.agents.reading import LineReading, aware
from turnlog.model import CompactionEvent, Fate, HistoryEvent, Origin

SAID = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins of what a person (or, to a subagent, the parent) said, which begins a turn. All others are the harness's."""


class Session:
    """A session that this file holds records of, and what this feed learned about it."""

    __slots__ = ("change", "id", "pointer", "tail", "thread")

    def __init__(self, session_id: str, thread: Thread) -> None:
        self.id = session_id
        self.thread = thread
        self.change = SessionChange(session_id=session_id)
        self.tail: str | None = None
        """A record of the newest message."""
        self.pointer: str | None = None
        """The record that the agent names as the active leaf, when that is an older one."""

    @property
    def fate(self) -> Fate:
        """The fate that its messages begin with."""
        return Fate.SIDECAR if self.thread.warm_up else Fate.ACTIVE

    def end_at(self, record_id: str) -> None:
        """A record of the newest message was added: the conversation ends there now."""
        self.tail = record_id
        self.pointer = None


class Reading(LineReading):
    """See the module."""

    def __init__(self, external_id: str, state: State, *, is_subagent: bool) -> None:
        super().__init__(Changes())
        self.state = state
        self.external_id = external_id
        self.root = external_id.partition(".")[0]
        """External id of the session that the person sees: a subagent's ancestor."""
        self.is_subagent = is_subagent
        self.order: list[MessageDraft | MessageChange] = []
        self.drafts: dict[str, MessageDraft] = {}
        self.calls: dict[str, CallDraft] = {}
        self.main = Session(session_id(external_id), state.thread)
        self._children: dict[str, Session] = {}

    def finish(self) -> Changes:
        """All that this feed brought."""
        changes = self.changes
        changes.messages = [item if isinstance(item, MessageChange) else item.change() for item in self.order]
        for session in (self.main, *self._children.values()):
            change = session.change
            change.active_leaf = session.tail if session.pointer is None else session.pointer
            if change != SessionChange(session_id=session.id):
                changes.sessions[session.id] = change
        return changes

    # Sessions

    def session_of(self, record: Record) -> Session:
        """The session that a record belongs to: the file's own, or a sidechain inside it. Takes note of both."""
        session = self.main if self.is_subagent or not record.is_sidechain else self._sidechain_of(record)
        self._note(record, session)
        return session

    def child(self, agent_id: str) -> Session:
        """The session of a subagent."""
        return self._child(session_id(f"{self.root}.{agent_id}"))

    def _child(self, child_id: str) -> Session:
        session = self._children.get(child_id)
        if session is None:
            session = self._children[child_id] = Session(child_id, self.state.child(child_id))
        return session

    def _sidechain_of(self, record: Record) -> Session:
        """Up to 1.0.x sidechains have no agent id: each is named after its root record."""
        sidechains, parent = self.state.sidechains, record.parent_uuid
        if record.agent_id is not None:
            session = self.child(record.agent_id)
        elif isinstance(parent, str) and parent in sidechains:
            session = self._child(sidechains[parent])
        else:
            session = self.child(record.uuid or str(self.position))
        if record.uuid is not None:
            self.state.remember_sidechain(record.uuid, session.id)
        return session

    def _note(self, record: Record, session: Session) -> None:
        """Take what a record says about its session."""
        change = session.change
        change.position = self.position
        moment = record.timestamp
        if moment is not None:
            if moment.tzinfo is not UTC:
                record.timestamp = moment = aware(moment)
            if change.first_at is None or moment < change.first_at:
                change.first_at = moment
            if change.last_at is None or moment > change.last_at:
                change.last_at = moment
        if record.version is not None:
            change.agent_version = record.version
        if record.git_branch:
            change.git_branch = record.git_branch
        if record.cwd:
            change.cwd = record.cwd
            known = change.project_at
            if change.project_path is None or (moment is not None and (known is None or moment < known)):
                change.project_path, change.project_at = record.cwd, moment
        if record.forked_from is not None or record.request_session_id is not None:
            self._link_fork(record)
        if self.is_subagent and not self.state.linked:
            self.state.linked = True
            self.link_subagent(session_id(self.root), self.main.id, inferred=True)

    def _link_fork(self, record: Record) -> None:
        """A record that another session made first: this one is a fork of it."""
        origin = self.origin_of(record)
        if origin is not None and origin not in self.state.origins:
            self.state.origins.append(origin)
            link = Link(kind="fork", parent_session_id=session_id(origin), child_session_id=self.main.id)
            self.changes.links.append(link)

    def origin_of(self, record: Record) -> str | None:
        """External id of the session that made a record first; None when that is this one."""
        origin = record.forked_from.session_id if record.forked_from else record.request_session_id
        origin = origin or record.session_id
        return None if origin == self.root else origin

    def link_subagent(
        self,
        parent: str,
        child: str,
        call_id: str | None = None,
        message_id: str | None = None,
        *,
        inferred: bool = False,
    ) -> None:
        """Say that `child` was started by `parent`, with which call if that is known."""
        self.changes.links.append(
            Link(
                kind="subagent",
                parent_session_id=parent,
                child_session_id=child,
                tool_call_id=call_id,
                message_id=message_id,
                inferred=inferred,
            )
        )

    # The chain

    def is_known(self, record: Record) -> bool:
        """Whether the record was read already; such a one is counted and needs no more."""
        if record.uuid is None or record.uuid not in self.state.nodes:
            return False
        self.changes.counts.duplicates += 1
        return True

    def parent_node(self, record: Record, session: Session) -> str:
        """The message that a record hangs under, through results and events.

        Records without ids follow the one before them, and so does an answer that names no parent. Only a prompt
        goes back further than is remembered; any other parent that is not known was lost with a damaged line.
        """
        parent, nodes = record.parent_uuid, self.state.nodes
        if isinstance(parent, str) and record.uuid is not None:
            node = nodes.get(parent)
            if node is not None:
                return node
            if record.type == "user" and len(nodes) >= RECENT_RECORDS:
                return unresolved(parent)
        elif parent is None and record.uuid is not None and record.type != "assistant":
            return ROOT
        return session.thread.leaf or ROOT

    def attach(self, record: Record, session: Session) -> tuple[str, bool]:
        """The parent of a new message, and whether a branch begins with it.

        What the harness injects hangs beside results as often as behind them; it never makes a branch.
        """
        thread = session.thread
        node = self.parent_node(record, session)
        if thread.leaf is None or node == thread.leaf:
            return node, False
        if node == thread.anchor:
            return thread.leaf, False
        thread.branched = session.change.relink = True
        return node, True

    def reopen(self, message_id: str, place: OpenMessage, session: Session) -> MessageDraft:
        """The draft of a message that may have been told in an earlier feed."""
        draft = self.drafts.get(message_id)
        if draft is None:
            draft = self.drafts[message_id] = MessageDraft(message_id, session.id, place, session.fate)
            self.order.append(draft)
        return draft

    def advance(self, record: Record, session: Session, message_id: str, origin: Origin | None) -> None:
        """A message was added: it is the newest of its session."""
        thread = session.thread
        if self.state.compaction is not None:
            self.close_compaction(message_id if origin is Origin.COMPACTION else None)
        thread.leaf = message_id
        if origin is None or origin in SAID:
            thread.anchor = message_id
        if origin is None:
            thread.said_at = None
        if record.uuid is not None:
            self.state.remember_record(record.uuid, message_id)
            session.end_at(record.uuid)

    def close_compaction(self, summary_id: str | None) -> None:
        """Tell the compaction that waited for its summary; without one when another message came first."""
        pending = self.state.compaction
        if pending is None:
            return
        self.state.compaction = None
        event = msgspec.json.decode(pending.event, type=CompactionEvent)
        self.changes.events.append(
            EventChange(
                session_id=pending.session_id,
                event=msgspec.structs.replace(event, summary_message_id=summary_id),
                record=(pending.position, pending.length),
                record_id=pending.record_id,
                parent_id=pending.parent_id,
            )
        )
        session = self.main if pending.session_id == self.main.id else self._child(pending.session_id)
        session.change.relink = True

    # Events and diagnostics

    def own_id(self) -> str:
        """An id for what has none in the log: made of its place."""
        return f"{self.main.id}@{self.position}"

    def add_event(self, event: HistoryEvent, record: Record, session: Session) -> EventChange:
        """Put an event where its record stands."""
        node = self.parent_node(record, session) if record.uuid is not None else ROOT
        change = EventChange(
            session_id=session.id,
            event=event,
            record=(self.position, self.length),
            record_id=record.uuid,
            parent_id=message_in(node),
        )
        self.changes.events.append(change)
        if record.uuid is not None:
            self.state.remember_record(record.uuid, node)
        return change

    def event_beside(self, event: HistoryEvent, session: Session) -> EventChange:
        """An event that the line tells beside what it is itself."""
        return EventChange(session_id=session.id, event=event, record=(self.position, self.length))


_ROOM = 64
"""Fewer bytes than any line has."""


def note_early(reading: Reading, record: Record, session: Session) -> None:
    """Take note of an answer that begins the log and hangs under a record which is not there yet."""
    parent, thread = record.parent_uuid, session.thread
    if thread.leaf is None and isinstance(parent, str) and record.timestamp is not None:
        thread.early = Early(reading.position, record.timestamp, parent)


def is_late(record: Record, session: Session) -> bool:
    """Whether a record belongs before the answers that the log begins with."""
    early = session.thread.early
    return (
        early is not None and record.uuid is not None and record.timestamp is not None and record.timestamp < early.at
    )


def late_position(session: Session) -> int:
    """The next place before those answers."""
    early = session.thread.early
    assert early is not None
    early.late += 1
    return max(early.position - _ROOM, 0) + min(early.late, _ROOM) - 1


def settle_late(reading: Reading, record: Record, session: Session, node: str) -> None:
    """When a record came that those answers hang under: now it is known whose turn they are of."""
    thread = session.thread
    if thread.early is None or record.uuid != thread.early.awaited:
        return
    thread.early = None
    for message_id, place in reading.state.messages.items():
        if place.turn is None:
            place.turn = thread.turn or None
            place.parent = place.parent if place.parent != ROOT else node
            reading.reopen(message_id, place, session)
