"""The state of a fold of pi's logs, and the context in which one feed handles its records.

Records form a tree: each names its parent, and the last one in the file ends the active branch. What a record means is
decided in `fold` and `messages`.
"""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, ResultChange
from turnlog.agents.decoding import (
    LARGEST_EVENT_RECORD,
    LogContext,
    clean_json,
    fields_of,
    keep_newest,
    names_of,
    other_fields,
    state_codec,
)
from turnlog.agents.handoffs import Carried, read_mark
from turnlog.agents.open_calls import OpenCall, abort_calls, message_of, open_call
from turnlog.agents.pi.contents import time_of
from turnlog.agents.pi.records import PiMessage, PiRecord
from turnlog.agents.pi.sources import external_id, has_time, session_id
from turnlog.model import (
    Fate,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    RecordEvent,
    RelationshipKind,
    RewindEvent,
    RunMetadataEvent,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.session import title_from

RECENT_RECORDS = 512
"""Records whose place in the tree is kept. The store finds a parent further back by its record id; what a compaction
kept is about as long as 20,000 tokens, some tens of records."""

_RECENT_CALLS = 64

_ADDED_IDS = re.compile(rb',"id":"[^"]*","parentId":(?:"[^"]*"|null)(?:,"firstKeptEntryId":"[^"]*")?\}\Z')

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.SHELL, Origin.SUBAGENT_PROMPT})

_FIELDS = names_of(PiRecord)


class PiNode(msgspec.Struct, array_like=True):
    """A record's place in the tree."""

    message: str | None
    """The message that a child of the record follows: its own, or the nearest one above it; None above the first."""
    is_own: bool
    """The record is that message, and neither a result nor an event after it."""
    parent: str | None
    """Id of the parent record."""


class PiState(msgspec.Struct):
    """What is remembered between two feeds."""

    started: str | None = None
    """Time of the header."""
    parent: str | None = None
    """The session that the header names as the one it came out of."""
    depth: int = 0
    """`rlmDepth` of the header."""
    is_linked: bool = False
    lines: int = 0
    records: int = 0
    """Records so far. Those of version 1 have no id; a compaction names one by its number."""
    nodes: dict[str, PiNode] = {}
    calls: dict[str, OpenCall] = {}
    """Calls without a result."""
    last: str | None = None
    """The newest record of the tree."""
    leaf: str | None = None
    """Its message."""
    interrupted: str | None = None
    """The newest message during which the user stopped the agent."""
    turn: int = 0
    step: int = 0
    is_titled: bool = False
    is_branched: bool = False
    cost: float | None = None
    model: str | None = None
    """The model of the newest answer, or the one that was chosen after it."""


encode_state, decode_state = state_codec(PiState)


class PiContext(LogContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, state: PiState, source: Source) -> None:
        # The name of the file and not the header, which had another id up to 0.27: forks name the file of their parent.
        super().__init__(source.session_id or session_id(source.agent, external_id(PurePath(source.path))))
        self.state = state
        self.agent = source.agent
        self.is_subagent = source.kind is SourceKind.SUBAGENT
        self.external_id = self.session_id.partition(":")[2]
        self.record = PiRecord()
        self.carried: Carried | None = None
        """What turnlog wrote beside the current record, if it carried that over from a session of another agent."""

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.finish_branched(self.state.leaf, is_branched=self.state.is_branched)

    # -- facts about the session

    def begin(self, record: PiRecord) -> None:
        """Make a record the current one."""
        self.record = record
        self.carried = read_mark(record.turnlog)
        at = time_of(record.timestamp)
        if at is not None and self.carried is None:
            self.extend_times(at)
        elif at is None and record.timestamp is not None:
            self.report("is not a time", json_path="$.timestamp")

    @property
    def at(self) -> datetime | None:
        """The time of the current record."""
        return time_of(self.record.timestamp)

    @property
    def is_copy(self) -> bool:
        """Whether the current record was copied from the session's parent: it is older than the header of its file."""
        began, at = time_of(self.state.started), self.at
        return self.state.parent is not None and began is not None and at is not None and at < began

    def set_title(self, text: str) -> None:
        """Make the first prompt the session's title."""
        title = title_from(text)
        if title and not self.state.is_titled:
            self.session.titles["prompt"] = title
            self.session.titled_at = self.at
            self.state.is_titled = True

    def prompt_parts(self, parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], bool]:
        """The parts of a prompt, with what the program added to it apart, and whether somebody wrote any of it."""
        return parts, True

    def is_own_answer(self, message: PiMessage) -> bool:
        """Whether the program itself wrote an answer."""
        return False

    def add_cost(self, amount: float | None) -> None:
        """Add the cost of a call to the session's total, as the program adds it up: copied records cost nothing."""
        if amount and not self.is_copy:
            self.state.cost = (self.state.cost or 0.0) + amount
            self.session.reported_cost = self.state.cost

    def link(
        self, kind: RelationshipKind, parent: str, *, tool_call_id: str | None = None, inferred: bool = False
    ) -> None:
        """Add that this session came out of `parent`, an external id."""
        if session_id(self.agent, parent) != self.session_id:
            self.changes.links.append(
                Link(
                    kind=kind,
                    parent_session_id=session_id(self.agent, parent),
                    child_session_id=self.session_id,
                    tool_call_id=tool_call_id,
                    inferred=inferred,
                )
            )

    def link_child(self, name: str, tool_call_id: str) -> None:
        """Add that a call started the subagent whose log has this name, in the folder of this session's subagents."""
        child = session_id(self.agent, f"{self.external_id}.{name}")
        link = Link(
            kind="subagent", parent_session_id=self.session_id, child_session_id=child, tool_call_id=tool_call_id
        )
        self.changes.links.append(link)

    # -- ids and places

    @property
    def record_id(self) -> str:
        """The id of the current record in its file. In version 1 records have none and are named by their number."""
        return self.record.id or f"#{self.state.records}"

    @property
    def is_first_version(self) -> bool:
        """Whether the current record was written in version 1, where records have no id.

        pi writes such a file anew when it opens it, and adds ids at the end of each record. Every other record ends
        with something else.
        """
        return self.record.id is None or _ADDED_IDS.search(self.json) is not None

    @property
    def identity(self) -> str:
        """The id of what the current record becomes, the same in a fork's copy and after ids were added.

        A record's own id is unique only in its file, so its time is added. In version 1 content takes its place.
        """
        at, record = self.at, self.record
        if at is None:
            return f"{self.external_id}@{self.position}"
        name = record.id
        if has_time(self.external_id):
            # Programs that do not name sessions apart may number their records, too.
            name = f"{name}-{sha256(bytes(record.message) if isinstance(record.message, Raw) else b'').hexdigest()[:8]}"
        if self.is_first_version:
            # A fork of version 1 copies the content and the time of a record, and nothing else that could identify it.
            contents = [bytes(each) for each in (record.message, record.content) if isinstance(each, Raw)]
            content = b"|".join([record.type.encode(), *contents, (record.summary or "").encode(errors="replace")])
            name = sha256(content).hexdigest()[:16]
        return f"{name}-{round(at.timestamp() * 1000)}"

    def facts(self, **known: Any) -> dict[str, Any]:
        """Metadata under the agent's name: the facts that are known, and fields of the record that are not (R-C11)."""
        found = {name: value for name, value in known.items() if value is not None}
        found |= other_fields(fields_of(self.json), _FIELDS)
        return {self.agent: found} if found else {}

    def _follow(self) -> tuple[str | None, str | None]:
        """The message that the current record follows; if it was forgotten, None and the id of its record.

        A record that does not follow the newest message is the first one after the user went back.
        """
        node, forgotten = self._parent_node()
        message = None if node is None else node.message
        # No record says that the user went back: only the parent of the next record does.
        if forgotten is not None or message != self.state.leaf:
            self._add_rewind(message)
        return message, forgotten

    def _parent_node(self) -> tuple[PiNode | None, str | None]:
        """The node that the current record follows; if it was forgotten, the id of its record."""
        if self.record.id is None:
            return (self.state.nodes.get(self.state.last or ""), None)
        parent = self.record.parentId
        if parent is None:
            return None, None
        node = self.state.nodes.get(parent)
        if node is not None:
            return node, None
        # As long as nothing was dropped, an unknown parent cannot be an old record.
        if len(self.state.nodes) >= RECENT_RECORDS:
            return None, parent
        # The parent was on a line that is damaged: the record follows the newest message.
        return self.state.nodes.get(self.state.last or ""), None

    def _remember(self, message: str | None, *, is_own: bool) -> None:
        parent = self.state.last if self.record.id is None else self.record.parentId
        keep_newest(self.state.nodes, self.record_id, PiNode(message, is_own, parent), RECENT_RECORDS)
        self.state.last = self.record_id
        self.state.leaf = message

    # -- messages

    def add_message(self, message: Message, *, step: int | None = None) -> None:
        """Add the message of the current record, and make it the newest one."""
        parent, forgotten = self._follow()
        self._place(message, parent, forgotten, step)
        self._remember(message.id, is_own=True)

    def add_beside(self, message: Message) -> None:
        """Add a model call beside the conversation; nothing follows it."""
        self._place(message, None, None, None, fate=Fate.SIDECAR)

    def _place(
        self,
        message: Message,
        parent: str | None,
        parent_record: str | None,
        step: int | None,
        fate: Fate = Fate.ACTIVE,
    ) -> None:
        placement = Placement(
            session_id=self.session_id,
            position=self.position,
            records=((self.position, self.length, None),),
            # A call beside the conversation is named by no other record; the record's id belongs to what it was made
            # for.
            record_ids=() if fate is Fate.SIDECAR else (message.id, self.record_id),
            # A record that repeats the newest message must not make it its own parent.
            parent_id=None if parent == message.id else parent,
            parent_record=parent_record,
            turn=self.state.turn or None,
            step=step,
            fate=fate,
            copied=self.is_copy or self.carried is not None,
            handed_over=self.carried is not None,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    def _add_rewind(self, to: str | None) -> None:
        self.state.is_branched = True
        self.add_event(RewindEvent(id=f"{self.identity}.rewind", created_at=self.at, to_message_id=to))

    def begin_turn(self, origin: Origin) -> None:
        """Begin a turn, if a message of this origin begins one."""
        if origin in TURN_ORIGINS:
            self.changes.messages += abort_calls(self.state.calls, self.session_id, self.position)
            self.state.turn += 1
            self.state.step = 0

    def next_step(self) -> int:
        """The number of a new model call."""
        self.state.step += 1
        return self.state.step

    def kept_messages(self, first: str) -> tuple[str, ...] | None:
        """The messages from the record `first` to the current one; None if that record is not on the branch."""
        found: list[str] = []
        at = self.state.last if self.record.id is None else self.record.parentId
        for _ in range(RECENT_RECORDS):
            node = self.state.nodes.get(at or "")
            if node is None:
                return None
            if node.is_own and node.message is not None:
                found.append(node.message)
            if at == first:
                return tuple(reversed(found))
            at = node.parent
        return None

    # -- results, events and records

    def add_result(self, tool_call_id: str, result: ToolResult) -> None:
        """Add the result of a call; what follows the record follows the newest message before it."""
        parent, _ = self._follow()
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=tool_call_id,
                result=result,
                position=self.position,
                record=(self.position, self.length),
                record_ids=(self.record_id,),
                message_id=message_of(self.state.calls, tool_call_id),
            )
        )
        self.changes.counts.results += 1
        self._remember(parent, is_own=False)

    def add_interrupt(self, during: Literal["answer", "tool"]) -> None:
        """Add that the user stopped the agent during the newest message, once for all of its calls."""
        message = self.state.leaf
        # Each call that runs when the user presses Escape gets a result with the same words.
        if message is not None and message == self.state.interrupted:
            return
        self.state.interrupted = message
        identity = f"{self.identity}.interrupt"
        self.add_event(InterruptEvent(id=identity, created_at=self.at, during=during, message_id=message))

    def note_call(self, part: ToolCallPart, message_id: str) -> None:
        """Remember a call until its result comes."""
        call = open_call(part, message_id, is_copied=self.is_copy or self.carried is not None)
        keep_newest(self.state.calls, part.tool_call_id, call, _RECENT_CALLS)

    def add_event(self, event: HistoryEvent) -> None:
        """Add a further event of a record that is also something else."""
        self._add_event(event, None, None)

    def add_only_event(self, event: HistoryEvent) -> None:
        """Add the event that the current record is."""
        self.changes.counts.events += 1
        # A header and a slot for the title are not part of the tree.
        if self.record.type in ("session", "title"):
            self._add_event(event, None, None)
            return
        parent = self.add_node()
        self._add_event(event, self.record_id, parent)

    def move_leaf(self, record_id: str | None) -> None:
        """Make an earlier record the end of the active branch, as a record says."""
        node = self.state.nodes.get(record_id or "")
        message = None if node is None else node.message
        if message != self.state.leaf:
            self._add_rewind(message)
        self.state.last, self.state.leaf = record_id, message

    def add_node(self) -> str | None:
        """Add the current record to the tree without a message of its own; return the message that it follows."""
        parent, _ = self._follow()
        self._remember(parent, is_own=False)
        return parent

    def _add_event(self, event: HistoryEvent, record_id: str | None, parent: str | None) -> None:
        placed = msgspec.structs.replace(event, position=self.position)
        self.changes.events.append(
            EventChange(
                session_id=self.session_id,
                event=placed,
                record=(self.position, self.length),
                record_id=record_id,
                parent_id=parent,
            )
        )

    def add_run_metadata(self) -> None:
        """Add the record as a fact about the run."""
        self.add_only_event(
            RunMetadataEvent(
                id=self.identity, kind=self.record.type, created_at=self.at, data=Raw(clean_json(self.json))
            )
        )

    def add_record(self, *, known: bool, name: str | None = None) -> None:
        """Add the record as a separate event, because it becomes nothing else. `name` says more than its type."""
        kind = f"{self.record.type}/{name}" if name else self.record.type
        json = clean_json(self.json)
        small: Raw | UnsetType = Raw(json) if len(json) <= LARGEST_EVENT_RECORD else UNSET
        self.add_only_event(RecordEvent(id=self.identity, kind=kind, known=known, created_at=self.at, data=small))
