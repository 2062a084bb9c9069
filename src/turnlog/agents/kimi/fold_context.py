"""The state of a fold of a log of Kimi Code or Kimi CLI, and the context in which one feed handles its records."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, ResultChange
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LogContext, clean_json, state_codec
from turnlog.agents.kimi import KIMI_CODE
from turnlog.agents.kimi.records import KimiTokenUsage
from turnlog.agents.kimi.sources import session_id
from turnlog.agents.open_calls import OpenCall
from turnlog.model import Fate, HistoryEvent, Message, RecordEvent, RunMetadataEvent, ToolResult
from turnlog.model.session import title_from

MOST_PROMPTS = 256
"""How many prompts an undo can take back."""

_MOST_TOLD = 256
"""Of how many steps of a turn the calls are remembered until its end."""


class Step(msgspec.Struct):
    """The newest model call, whose pieces are separate records."""

    message: str
    position: int
    number: int
    parts: int = 0
    model: bool = False
    """Its model is known."""
    usage: KimiTokenUsage | None = None
    counted: bool = False
    """A `usage.record` was found to be of this call."""


class ToldCall(msgspec.Struct, array_like=True):
    """A call as its step tells it."""

    number: int
    """Of its part."""
    tool: str
    is_empty: bool
    """Its input is an empty object, as it also is where the model's arguments are no JSON."""


class ToldStep(msgspec.Struct, array_like=True):
    """A step with calls."""

    message: str
    position: int
    number: int
    calls: dict[str, ToldCall]


class KimiState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    leaf: str | None = None
    """Id of the newest message of the active branch."""
    instructions: str | None = None
    """The message with the instructions for the model."""
    prompts: list[tuple[str, str | None]] = []
    """The newest prompts since the context was cleared, each with the message before it."""
    undoable: int = 0
    """How many of them were asked since the newest compaction: an undo goes back no further."""
    turn: int = 0
    steps: int = 0
    step: Step | None = None
    counted: tuple[float, KimiTokenUsage] | None = None
    """Time and tokens of the newest `usage.record`, which has no id."""
    calls: dict[str, OpenCall] = {}
    """Calls without a result."""
    told: list[ToldStep] = []
    """The newest steps whose second copy, which has their calls as the model wrote them, is still to come."""
    requests: dict[str, str] = {}
    """Requests of Kimi CLI for a permission -> their calls."""
    decisions: dict[str, str] = {}
    """Calls about which the user was asked -> the decision."""
    subagents: list[str] = []
    """Subagents of Kimi CLI that were linked."""
    alias: str | None = None
    """The user's name for the model."""
    purpose: str | None = None
    """What the newest request was for."""
    asked: str | None = None
    """The model of that request."""
    cancelled: bool = False
    """The user has stopped the turn."""
    branched: bool = False
    titled: bool = False


encode_state, decode_state = state_codec(KimiState)


class KimiContext(LogContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, state: KimiState, external_id: str, *, agent: str, is_subagent: bool) -> None:
        """Begin before the first record.

        Args:
            state: What the feeds before have left.
            external_id: The program's id of the session; of a subagent, that of its session, `.` and its own name.
            agent: The program.
            is_subagent: Whether the log is a subagent's.
        """
        super().__init__(session_id(external_id, agent))
        self.state = state
        self.external_id = external_id
        self.is_subagent = is_subagent
        self.agent = agent
        self.at: datetime | None = None
        """The time of the record."""

    @property
    def is_migrated(self) -> bool:
        """Whether the session was copied from Kimi CLI to Kimi Code."""
        return self.agent == KIMI_CODE and self.external_id.startswith("ses_")

    def add_result(self, call_id: str, result: ToolResult, message_id: str | None) -> None:
        """Add the result of a call and count it; `message_id` is the call's message, where a feed before had it."""
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=result,
                position=self.position,
                record=(self.position, self.length),
                message_id=message_id,
            )
        )
        self.changes.counts.results += 1

    def begin(self, at: datetime | None) -> None:
        """Take over the time of a record."""
        self.at = at
        # The records of a migrated session have the time of the migration, and its messages have none.
        self.extend_times(at)

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.finish_branched(self.state.leaf, is_branched=self.state.branched)

    def set_folder(self, folder: str | None) -> None:
        """Take over the folder in which the agent works."""
        if folder:
            change = self.session
            change.cwd = folder
            change.project_path = change.project_path or folder

    def set_title(self, text: str) -> None:
        """Make the first prompt the session's title."""
        title = title_from(text)
        if title and not self.state.titled:
            self.session.titles["prompt"] = title
            self.state.titled = True

    def link_subagent(self, name: str, call_id: str | None) -> None:
        """Say that an agent of this session was started by a call of this log."""
        session = self.external_id.partition(".")[0]
        child = session_id(f"{session}.{name}", self.agent)
        if child != self.session_id:
            self.changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=self.session_id,
                    child_session_id=child,
                    tool_call_id=call_id or None,
                )
            )

    # -- ids

    def record_id(self) -> str:
        """The id of what has none of its own: a fork copies the bytes of a record, so it is made of them."""
        if self.at is None:
            return f"{self.external_id}@{self.position}"
        # A copy of the log may have other line ends.
        return f"{round(self.at.timestamp() * 1000)}-{crc32(self.json.rstrip()):08x}"

    # -- messages

    def add_message(self, message: Message, *, step: int | None = None) -> None:
        """Add the message of this record; the next ones follow it."""
        self._add(message, self.position, self.state.leaf, step=step)
        self.state.leaf = message.id

    def tell_call(self, step: Step, call_id: str, call: ToldCall) -> None:
        """Remember a call of the newest step."""
        told = self.state.told
        if not told or told[-1].message != step.message:
            del told[: 1 - _MOST_TOLD]
            told.append(ToldStep(step.message, step.position, step.number, {}))
        told[-1].calls[call_id] = call

    def take_told(self, call_ids: Collection[str]) -> ToldStep | None:
        """The first remembered step with one of these calls. It is forgotten, and so are those before it."""
        told = self.state.told
        for index, step in enumerate(told):
            if not step.calls.keys().isdisjoint(call_ids):
                del told[: index + 1]
                return step
        return None

    def add_piece(self, step: Step | ToldStep, **fields: Any) -> None:
        """Add what this record says of a model call whose message began earlier."""
        message = Message(id=step.message, role="assistant", **fields)
        self._add(message, step.position, None, step=step.number)

    def add_side_call(self, message: Message) -> None:
        """Add a model call outside of the conversation; nothing follows it."""
        self._add(message, self.position, self.state.leaf, fate=Fate.SIDECAR)

    def _add(
        self,
        message: Message,
        position: int,
        parent: str | None,
        *,
        step: int | None = None,
        fate: Fate = Fate.ACTIVE,
    ) -> None:
        placement = Placement(
            session_id=self.session_id,
            position=position,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            parent_id=parent if parent != message.id else None,
            turn=self.state.turn or None,
            step=step,
            fate=fate,
            copied=self.is_migrated and self.at is None,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1

    # -- events

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event at the position of this record."""
        change = EventChange(
            session_id=self.session_id,
            event=msgspec.structs.replace(event, position=self.position),
            record=(self.position, self.length),
            parent_id=self.state.leaf,
        )
        self.changes.events.append(change)
        self.changes.counts.events += 1

    def add_run_metadata(self, kind: str) -> None:
        """Add the record as a fact about the run."""
        self.add_event(RunMetadataEvent(id=self.record_id(), kind=kind, created_at=self.at, data=self._small()))

    def add_record(self, kind: str, *, known: bool) -> None:
        """Add the record as a separate event, because it becomes nothing else."""
        self.add_event(RecordEvent(id=self.record_id(), kind=kind, known=known, created_at=self.at, data=self._small()))

    def _small(self) -> Raw | UnsetType:
        return Raw(clean_json(self.json)) if len(self.json) <= LARGEST_EVENT_RECORD else UNSET

    def metadata_of(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The agent's own facts about a message or a result; empty if there are none."""
        known = {name: value for name, value in facts.items() if value is not None}
        return {self.agent: known} if known else {}
