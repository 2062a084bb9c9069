"""The context in which one feed of a Copilot CLI log handles its records.

It knows the place in the file and whose record it is, and collects messages, results and events. What a record means is
decided in `messages`, `tools` and `fold`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    ResultChange,
    SessionChange,
)
from turnlog.agents.copilot_cli.records import CopilotRecord
from turnlog.agents.copilot_cli.sources import session_id
from turnlog.agents.copilot_cli.state import MAIN, CopilotConversation, CopilotPendingCall, CopilotState
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LineContext, aware, clean_json
from turnlog.model import (
    HistoryEvent,
    Message,
    Origin,
    RecordEvent,
    RelationshipKind,
    RunMetadataEvent,
    SessionTotal,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.message import UNCALLED_ORIGINS
from turnlog.model.session import title_from
from turnlog.model.usage import merge_total

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins that begin a turn."""


class CopilotContext(LineContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, state: CopilotState, external_id: str) -> None:
        super().__init__(Changes())
        self.state = state
        self.external_id = external_id
        self.record = CopilotRecord()
        self.agent = MAIN
        """Whose record it is: the key of a conversation."""
        self.data_json = b"{}"
        """The JSON of the record's data."""

    # -- where the record belongs

    @property
    def session_id(self) -> str:
        """The session of the record."""
        return self.session_of(self.agent)

    def session_of(self, agent: str) -> str:
        """The session of a conversation. A subagent's id is only known within its session."""
        return session_id(self.external_id if agent == MAIN else f"{self.external_id}.{agent}")

    @property
    def conversation(self) -> CopilotConversation:
        """The conversation of the record."""
        found = self.state.conversations.get(self.agent)
        if found is None:
            found = self.state.conversations[self.agent] = CopilotConversation()
        return found

    @property
    def created_at(self) -> datetime | None:
        """The time of the record in UTC."""
        return None if self.record.timestamp is None else aware(self.record.timestamp)

    @property
    def is_copied(self) -> bool:
        """Whether the record is older than its session: a fork begins with its parent's records."""
        at, began = self.created_at, self.state.started_at
        return at is not None and began is not None and at < began

    @property
    def session(self) -> SessionChange:
        """What this feed has found out about the session of the record."""
        known = self.changes.sessions.get(self.session_id)
        if known is None:
            known = self.changes.sessions[self.session_id] = SessionChange(session_id=self.session_id)
            # Only the session's own records name these: a subagent runs in the same folder and process.
            if self.agent != MAIN:
                known.project_path = known.cwd = self.state.cwd
                known.git_branch, known.agent_version = self.state.branch, self.state.version
        known.position = self.position
        return known

    def update_times(self) -> None:
        """Extend the session's first and last time by that of the record."""
        change, at = self.session, self.created_at
        # Copied records are from before the session began.
        if at is not None and not self.is_copied:
            change.first_at = at if change.first_at is None else min(change.first_at, at)
            change.last_at = at if change.last_at is None else max(change.last_at, at)

    def set_title(self, text: str) -> None:
        """Make the first prompt of the conversation its title."""
        title, conversation = title_from(text), self.conversation
        if title and not conversation.titled:
            self.session.titles["prompt"] = title
            conversation.titled = True

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        change = self.changes.sessions.get(self.session_of(MAIN))
        main = self.state.conversations.get(MAIN)
        if change is not None and main is not None and self.state.branched:
            change.has_branches = True
            change.active_leaf = main.leaf or ""
        return self.changes

    # -- ids

    def position_id(self) -> str:
        """An id for something that is of this file alone, made of its offset."""
        return f"{self.external_id}@{self.position}"

    def record_id(self) -> str:
        """The id of the record, which a fork's copy has too."""
        return self.record.id or self.position_id()

    # -- messages

    def add_message(self, message: Message, *, refs: tuple[RecordRef, ...] = ()) -> None:
        """Add the message of this record, which follows the newest one of its conversation."""
        conversation = self.conversation
        if message.origin in TURN_ORIGINS:
            conversation.turn += 1
            conversation.step = 0
        # The summary of a compaction and an answer of the program are no steps of the turn.
        is_step = message.role == "assistant" and message.origin not in UNCALLED_ORIGINS
        conversation.step += is_step
        self._place(
            message,
            self.position,
            refs,
            parent=conversation.leaf,
            turn=conversation.turn or None,
            step=conversation.step if is_step else None,
        )
        conversation.leaf = message.id
        if self.state.compacting is not None and self.agent == MAIN:
            self.state.compacting.append(message.id)
        self.changes.counts.messages += 1

    def add_beside(self, message: Message, *, refs: tuple[RecordRef, ...] = ()) -> None:
        """Add a message of a record that counts as an event: the summary of a compaction, or a call without answer."""
        self.add_message(message, refs=refs)
        self.changes.counts.messages -= 1

    def add_total(self, name: str, total: SessionTotal) -> None:
        """Add tokens of the session, which belong to no answer that a record has. `name` is unique in the session."""
        before = self.session.totals.get(name)
        # A new dict, since a change that was handed out must not change any more.
        self.session.totals = {**self.session.totals, name: total if before is None else merge_total(before, total)}

    def extend_answer(self, message: Message, refs: tuple[RecordRef, ...]) -> None:
        """Add another chunk of the newest answer."""
        self._place(message, self.conversation.answer_position, refs)
        self.changes.counts.messages += 1

    def extend_message(self, message: Message, position: int, agent: str) -> None:
        """Add what this record says about a message of an earlier one."""
        self._place(message, position, (), agent=agent)

    def extend_call(self, call: CopilotPendingCall, part: ToolCallPart) -> None:
        """Add what this record says about a call of an earlier one."""
        self.extend_message(Message(id=call.message, role="assistant", parts=(part,)), call.position, call.agent)

    def _place(
        self,
        message: Message,
        position: int,
        refs: tuple[RecordRef, ...],
        *,
        parent: str | None = None,
        turn: int | None = None,
        step: int | None = None,
        agent: str | None = None,
    ) -> None:
        placement = Placement(
            session_id=self.session_of(self.agent if agent is None else agent),
            position=position,
            records=(*refs, (self.position, self.length, None)),
            record_ids=(message.id,),
            # A record that repeats the newest message must not make it its own parent.
            parent_id=None if parent == message.id else parent,
            turn=turn,
            step=step,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    def add_result(self, call_id: str, result: ToolResult) -> None:
        """Add the result of a call, which this record has."""
        call = self.state.calls.pop(call_id, None)
        self.changes.results.append(
            ResultChange(
                # The result of a subagent's call may be written by the session itself, after the subagent was stopped.
                session_id=self.session_id if call is None else self.session_of(call.agent),
                tool_call_id=call_id,
                result=result,
                position=self.position,
                record=(self.position, self.length),
                message_id=None if call is None else call.message,
            )
        )
        self.changes.counts.results += 1

    # -- events and links

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event at the position of its record."""
        placed = msgspec.structs.replace(event, position=self.position)
        record = (self.position, self.length)
        self.changes.events.append(EventChange(session_id=self.session_id, event=placed, record=record))
        self.changes.counts.events += 1

    def add_run_metadata(self) -> None:
        """Add the record as a fact about the run."""
        kind, json = self.record.type, Raw(clean_json(self.json))
        self.add_event(RunMetadataEvent(id=self.position_id(), kind=kind, created_at=self.created_at, data=json))

    def add_record(self, *, known: bool) -> None:
        """Add the record as a separate event, because it becomes nothing else."""
        json = clean_json(self.json)
        small: Raw | UnsetType = Raw(json) if json and len(json) <= LARGEST_EVENT_RECORD else UNSET
        self.add_event(
            RecordEvent(
                id=self.position_id(), kind=self.record.type, known=known, created_at=self.created_at, data=small
            )
        )

    def link(
        self, kind: RelationshipKind, *, parent: str, child: str, call: str | None = None, message: str | None = None
    ) -> None:
        """Add that the session `child` came out of `parent`."""
        if parent != child:
            self.changes.links.append(
                Link(kind=kind, parent_session_id=parent, child_session_id=child, tool_call_id=call, message_id=message)
            )
