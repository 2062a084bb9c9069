"""The state of a fold of a Droid log, and the context in which one feed handles its records.

Each message names the one before it. Results are separate records in that chain, so the state remembers which
message recent records belong to.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, ResultChange
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LogContext, aware, clean_json, keep_newest, state_codec
from turnlog.agents.droid.records import DroidRecord
from turnlog.agents.droid.sources import session_id
from turnlog.agents.open_calls import OpenCall, abort_calls, message_of, open_call
from turnlog.model import HistoryEvent, Message, RecordEvent, RewindEvent, RunMetadataEvent, ToolCallPart, ToolResult

_RECENT_RECORDS = 512
"""How many records are remembered: those that a compaction may keep, and those to which the user may go back."""

_RECENT_CALLS = 64


class DroidNode(msgspec.Struct, array_like=True):
    """A record of the chain."""

    message: str | None
    """The newest message of the branch up to here."""
    is_own: bool
    """Whether the record is that message."""
    parent: str | None
    """The record before."""


class DroidState(msgspec.Struct):
    """What is remembered between two feeds."""

    session: str | None = None
    """External id of the session, if the path does not name it."""
    lines: int = 0
    last: str | None = None
    """The newest record of the chain."""
    leaf: str | None = None
    """The newest message of the active branch."""
    nodes: dict[str, DroidNode] = {}
    calls: dict[str, OpenCall] = {}
    """Calls without a result."""
    turn: int = 0
    step: int = 0
    title: str | None = None
    """What the log says that the session is called, until the first prompt is read."""
    is_titled: bool = False
    is_subagent: bool = False
    is_branched: bool = False
    copied_until: str | None = None
    """The last message that a fork copied from its parent, until it is read."""
    has_failed: bool = False
    """An error of the current turn has been read."""


encode_state, decode_state = state_codec(DroidState)


class DroidContext(LogContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, state: DroidState, external_id: str) -> None:
        super().__init__(session_id(external_id))
        self.state = state
        self.external_id = external_id
        self.record = DroidRecord()

    def begin(self, record: DroidRecord) -> None:
        """Make a record the current one."""
        self.record = record
        if record.timestamp is not None:
            record.timestamp = aware(record.timestamp)
        self.extend_times(record.timestamp)

    def end(self) -> None:
        """Leave the part that a fork copied, if the current record is the last one of it."""
        if self.record.id is not None and self.record.id == self.state.copied_until:
            self.state.copied_until = None

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.finish_branched(self.state.leaf, is_branched=self.state.is_branched)

    # -- ids

    @property
    def position_id(self) -> str:
        """An id for something that is of this file alone, made of its offset."""
        return f"{self.external_id}@{self.position}"

    @property
    def record_id(self) -> str:
        """The id of the record, which a fork's copy has too."""
        return self.record.id or self.position_id

    # -- the chain

    def _follow(self) -> tuple[str | None, str | None]:
        """The message that the current record follows; if it was forgotten, None and the id of its record."""
        state, before = self.state, self.record.parent_id
        # Results name the answer before them, and answers the results: nearly every record follows the newest one.
        if before is None or before == state.last:
            message, forgotten = state.leaf, None
        elif before in state.nodes:
            message, forgotten = state.nodes[before].message, None
        elif len(state.nodes) < _RECENT_RECORDS:
            # The record before was on a line that is damaged.
            message, forgotten = state.leaf, None
        else:
            message, forgotten = None, before
        if forgotten is not None or message != state.leaf:
            state.is_branched = True
            self._add_event(
                RewindEvent(id=f"{self.position_id}.rewind", created_at=self.record.timestamp, to_message_id=message)
            )
        return message, forgotten

    def _remember(self, message: str | None, *, is_own: bool) -> None:
        state = self.state
        node = DroidNode(message, is_own, self.record.parent_id or state.last)
        keep_newest(state.nodes, self.record_id, node, _RECENT_RECORDS)
        state.last, state.leaf = self.record_id, message

    def kept_messages(self, anchor: str | None) -> tuple[str, ...] | None:
        """The messages after the record `anchor`; None if that is not on the branch."""
        found: list[str] = []
        at = self.state.last
        for _ in range(_RECENT_RECORDS):
            if at is None or at == anchor:
                break
            node = self.state.nodes.get(at)
            if node is None:
                break
            if node.is_own and node.message is not None:
                found.append(node.message)
            at = node.parent
        return tuple(reversed(found)) if anchor is not None and at == anchor else None

    # -- messages and results

    def add_message(self, message: Message, *, step: int | None = None) -> None:
        """Add the message of the current record, and make it the newest one."""
        parent, forgotten = self._follow()
        self._place(message, parent, forgotten, step)
        self._remember(message.id, is_own=True)
        self.changes.counts.messages += 1

    def add_summary(self, message: Message) -> None:
        """Add the summary of a compaction. What comes next follows it."""
        self._place(message, self.state.leaf, None, None)
        self.state.leaf = message.id

    def _place(self, message: Message, parent: str | None, parent_record: str | None, step: int | None) -> None:
        placement = Placement(
            session_id=self.session_id,
            position=self.position,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            # A record that repeats the newest message must not make it its own parent.
            parent_id=None if parent == message.id else parent,
            parent_record=parent_record,
            turn=self.state.turn or None,
            step=step,
            # The parent is billed for what the fork copied.
            copied=self.state.copied_until is not None,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    def begin_turn(self) -> None:
        """Begin a turn."""
        self.changes.messages += abort_calls(self.state.calls, self.session_id, self.position)
        self.state.turn += 1
        self.state.step = 0
        self.state.has_failed = False

    def note_call(self, part: ToolCallPart, message_id: str) -> None:
        """Remember a call until its result is read."""
        call = open_call(part, message_id, is_copied=self.state.copied_until is not None)
        keep_newest(self.state.calls, part.tool_call_id, call, _RECENT_CALLS)

    def add_results(self, results: list[tuple[str, ToolResult]]) -> None:
        """Add the results of calls, which the current record has; what follows it follows the message before."""
        parent, _ = self._follow()
        for call_id, result in results:
            self.changes.results.append(
                ResultChange(
                    session_id=self.session_id,
                    tool_call_id=call_id,
                    result=result,
                    position=self.position,
                    record=(self.position, self.length),
                    record_ids=(self.record_id,),
                    message_id=message_of(self.state.calls, call_id),
                )
            )
        self.changes.counts.results += 1
        self._remember(parent, is_own=False)

    # -- events and links

    def add_event(self, event: HistoryEvent) -> None:
        """Add the event that the current record is."""
        self._add_event(event)
        self.changes.counts.events += 1

    def add_event_in_chain(self, event: HistoryEvent) -> None:
        """Add the event that the current record, one of the chain, is."""
        parent, _ = self._follow()
        self._add_event(event)
        self.changes.counts.events += 1
        self._remember(parent, is_own=False)

    def add_further_event(self, event: HistoryEvent) -> None:
        """Add another event of a record that is also something else."""
        self._add_event(event)

    def _add_event(self, event: HistoryEvent) -> None:
        placed = msgspec.structs.replace(event, position=self.position)
        record = (self.position, self.length)
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=placed, record=record, parent_id=self.state.leaf)
        )

    def add_run_metadata(self) -> None:
        """Add the record as a fact about the run."""
        self.add_event(
            RunMetadataEvent(
                id=self.position_id, kind=self.record.type, created_at=self.record.timestamp, data=self._small()
            )
        )

    def add_record(self, *, known: bool) -> None:
        """Add the record as a separate event, because it becomes nothing else."""
        event = RecordEvent(
            id=self.position_id,
            kind=self.record.type,
            known=known,
            created_at=self.record.timestamp,
            data=self._small(),
        )
        self.add_event(event)

    def _small(self) -> Raw | UnsetType:
        return Raw(clean_json(self.json)) if len(self.json) <= LARGEST_EVENT_RECORD else UNSET

    def link(self, link: Link) -> None:
        """Add a link to another session; one to itself is left out."""
        if link.parent_session_id != link.child_session_id:
            self.changes.links.append(link)
