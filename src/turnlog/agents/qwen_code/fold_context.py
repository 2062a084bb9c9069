"""The state of a fold of a Qwen Code log, and the context in which one feed handles its records.

Records are a tree: each names the one before it, and a rewind goes on from an earlier one. Only messages are nodes of
the model's tree, so the state remembers which message recent records and all prompts follow.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement
from turnlog.agents.decoding import (
    LARGEST_EVENT_RECORD,
    LogContext,
    aware,
    branch_of,
    clean_json,
    keep_newest,
    state_codec,
)
from turnlog.agents.handoffs import Carried, continuation, handed_over_facts, read_mark
from turnlog.agents.open_calls import OpenCall
from turnlog.agents.qwen_code import NAME
from turnlog.agents.qwen_code.records import QwenRecord
from turnlog.agents.qwen_code.sources import session_id
from turnlog.model import Fate, HistoryEvent, Message, RecordEvent, RunMetadataEvent
from turnlog.model.session import title_from

_RECENT = 64
"""How many records are remembered. A record names the one before it, or one of those that few others followed."""

_MOST_DURATIONS = 32
"""Calls whose duration waits for their result; those of subagents, which have other logs, never get one here."""


class PendingAnswer(msgspec.Struct, array_like=True):
    """An answer of a subagent, whose calls may follow in a separate record."""

    message: str
    record: str
    parts: int
    position: int


class QwenState(msgspec.Struct):
    """What is remembered between two feeds."""

    session: str | None = None
    """External id of the session, if the path does not name it."""
    lines: int = 0
    leaf: str | None = None
    """Id of the newest message of the active branch."""
    last_record: str | None = None
    recent: dict[str, str | None] = {}
    """Id of a record -> id of the message that a record after it follows."""
    prompts: dict[str, str | None] = {}
    """The same for the records in front of prompts, to which a rewind may go back."""
    calls: dict[str, OpenCall] = {}
    """Calls without a result."""
    durations: dict[str, int] = {}
    """Call -> milliseconds, until its result is read."""
    pending_answer: PendingAnswer | None = None
    interrupted: str | None = None
    """The message whose calls the user stopped last."""
    forked_from: list[str] = []
    turn: int = 0
    step: int = 0
    branched: bool = False
    titled: bool = False
    linked: bool = False


encode_state, decode_state = state_codec(QwenState)


class QwenContext(LogContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, state: QwenState, external_id: str, *, is_subagent: bool) -> None:
        """Begin before the first record.

        Args:
            state: What the feeds before have left.
            external_id: Qwen Code's id of the session; of a subagent, that of its parent, `.` and its own.
            is_subagent: Whether the log is a subagent's.
        """
        super().__init__(session_id(external_id))
        self.state = state
        self.external_id = external_id
        self.is_subagent = is_subagent
        self.parent: str | None = None
        """The message that the current record follows."""
        self.carried: Carried | None = None
        """What turnlog wrote beside the current record, if it carried that over from a session of another agent."""
        self.unknown_parent: str | None = None
        """The record that the current one follows, if it is not remembered."""

    def begin(self, record: QwenRecord) -> None:
        """Take over what every record says about its session, and find what it follows."""
        change, at = self.session, record.timestamp
        self.carried = None if record.turnlog is None else read_mark(record.turnlog)
        if at is not None:
            record.timestamp = aware(at)
            self.extend_times(self.carried.at if self.carried else record.timestamp)
        if self.carried is not None:
            self._note_handoff(self.carried)
        # Every record repeats these. A session that is resumed has another version, branch or folder from then on.
        change.agent_version = record.version or change.agent_version
        change.git_branch = branch_of(record.git_branch) or change.git_branch
        if record.cwd:
            change.cwd = record.cwd
            change.project_path = change.project_path or record.cwd
        self._link_fork(record)
        self._link_parent(record)
        self._follow(record)

    def end(self, record: QwenRecord) -> None:
        """Remember which message the next records follow."""
        state = self.state
        if record.uuid is not None:
            state.last_record = record.uuid
            keep_newest(state.recent, record.uuid, state.leaf, _RECENT)

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.finish_branched(self.state.leaf, is_branched=self.state.branched)

    def set_title(self, text: str) -> None:
        """Make the first prompt the session's title."""
        title = title_from(text)
        if title and not self.state.titled:
            self.session.titles["prompt"] = title
            self.state.titled = True

    # -- links

    def copied_from(self, record: QwenRecord) -> str | None:
        """External id of the session that a record was copied from; None if it is this session's own."""
        original = record.forked_from.session_id if record.forked_from is not None else None
        return original if original and original != self.external_id else None

    def _note_handoff(self, carried: Carried) -> None:
        """Link the session that this one continues, once."""
        if carried.session not in self.state.forked_from:
            self.state.forked_from.append(carried.session)
            self.changes.links.append(continuation(carried, self.session_id))
            self.session.metadata |= handed_over_facts(carried)

    def _link_fork(self, record: QwenRecord) -> None:
        original = self.copied_from(record)
        if original is not None and original not in self.state.forked_from:
            self.state.forked_from.append(original)
            self.changes.links.append(
                Link(kind="fork", parent_session_id=session_id(original), child_session_id=self.session_id)
            )

    def _link_parent(self, record: QwenRecord) -> None:
        if not self.is_subagent or self.state.linked or record.session_id is None:
            return
        self.state.linked = True
        # Of nested subagents all name the outermost session: only the facts next to the log know the parent.
        link = Link(
            kind="subagent",
            parent_session_id=session_id(record.session_id),
            child_session_id=self.session_id,
            inferred=True,
        )
        self.changes.links.append(link)

    # -- the tree

    def _follow(self, record: QwenRecord) -> None:
        state, before = self.state, record.parent_uuid
        self.unknown_parent = None
        if before == state.last_record:
            self.parent = state.leaf
        elif before is None:
            self.parent = None
        # A rewind goes back to the record in front of a prompt, which may be hundreds of records ago. Only those are
        # kept besides the newest ones.
        elif before in state.recent or before in state.prompts:
            self.parent = state.recent.get(before) or state.prompts.get(before)
        else:
            self.parent, self.unknown_parent = None, before
        # No record needs to announce a rewind: 0.24.4 re-roots `parentUuid` and writes on.
        if self.parent != state.leaf:
            state.branched = True
            state.leaf = self.parent

    def note_prompt(self, record: QwenRecord) -> None:
        """Remember what precedes a prompt."""
        if record.parent_uuid is not None and self.unknown_parent is None:
            self.state.prompts[record.parent_uuid] = self.parent

    # -- messages

    def add_message(self, record: QwenRecord, message: Message, *, step: int | None = None) -> None:
        """Add the message of this line; the next records follow it."""
        self._add(message, record, self.position, self.parent, step=step, record_ids=(record.uuid or message.id,))
        self.state.leaf = message.id

    def add_piece(self, record: QwenRecord, message: Message, position: int) -> None:
        """Add another piece of an answer whose message began at `position`."""
        self._add(message, record, position, None, step=self.state.step, record_ids=(record.uuid or message.id,))

    def add_side_call(self, record: QwenRecord, message: Message) -> None:
        """Add the answer to a call outside of the conversation; nothing follows it."""
        self._add(message, record, self.position, self.parent, record_ids=(), fate=Fate.SIDECAR)

    def _add(
        self,
        message: Message,
        record: QwenRecord,
        position: int,
        parent: str | None,
        *,
        record_ids: tuple[str, ...],
        step: int | None = None,
        fate: Fate = Fate.ACTIVE,
    ) -> None:
        placement = Placement(
            session_id=self.session_id,
            position=position,
            records=((self.position, self.length, None),),
            record_ids=record_ids,
            parent_id=parent,
            parent_record=self.unknown_parent,
            turn=self.state.turn or None,
            step=step,
            fate=fate,
            copied=self.carried is not None or self.copied_from(record) is not None,
            handed_over=self.carried is not None,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    # -- events

    def event_id(self, record: QwenRecord) -> str:
        """The id of the record's event: its own, else one made of its offset."""
        return record.uuid or f"{self.external_id}@{self.position}"

    def add_event(self, record: QwenRecord, event: HistoryEvent) -> None:
        """Add an event at the position of its record."""
        placed = msgspec.structs.replace(event, position=self.position)
        change = EventChange(
            session_id=self.session_id,
            event=placed,
            record=(self.position, self.length),
            record_id=record.uuid,
            parent_id=self.parent,
        )
        self.changes.events.append(change)
        self.changes.counts.events += 1

    def add_run_metadata(self, record: QwenRecord) -> None:
        """Add the record as a fact about the run."""
        event = RunMetadataEvent(
            id=self.event_id(record), kind=record.kind, created_at=record.timestamp, data=self._small()
        )
        self.add_event(record, event)

    def add_record(self, record: QwenRecord, *, known: bool) -> None:
        """Add the record as a separate event, because it becomes nothing else."""
        event = RecordEvent(
            id=self.event_id(record), kind=record.kind, known=known, created_at=record.timestamp, data=self._small()
        )
        self.add_event(record, event)

    def _small(self) -> Raw | UnsetType:
        return Raw(clean_json(self.json)) if len(self.json) <= LARGEST_EVENT_RECORD else UNSET

    def note_duration(self, call_id: str, milliseconds: float) -> None:
        """Remember how long a call took."""
        keep_newest(self.state.durations, call_id, round(milliseconds), _MOST_DURATIONS)


def metadata_of(record: QwenRecord, facts: dict[str, object]) -> dict[str, object]:
    """The agent's own facts about a message, with the record's fields that are not known (R-C11)."""
    found = facts | (record.others or {})
    return {NAME: found} if found else {}
