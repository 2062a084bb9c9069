"""What hooks told of a session, for all agents: lines of a spool -> changes of the model.

A line is `{"at": <Unix milliseconds>, "event": <what the agent gave the hook>}`. The agents' events are much alike: an
agent's module says which event says what (`Hooks`). Prompts, texts and calls become messages whose ids are made of the
event's own ids, everything else events of the history. Positions are times, behind all positions of logs, and the
store lets each piece give way when the session's own log has it (`turnlog.store.reconcile.hook_events`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import HOOKED_FROM, Source
from turnlog.agents.changes import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    SessionChange,
)
from turnlog.agents.decoding import clean_json
from turnlog.agents.hook_lines import HookEvent, HookLine, HookState
from turnlog.agents.jsonl import JsonLines, count_lines
from turnlog.agents.printed import kept_fields
from turnlog.model import (
    Message,
    Origin,
    Part,
    ResultStatus,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
)
from turnlog.model.merge import merge_messages
from turnlog.model.message import Role
from turnlog.model.tools import STATE_OF_STATUS, Approval, ToolState

TOLD_BY = "told_by"
"""In a session's metadata, with the value "hooks": its log has not been read yet."""

NAMELESS = "hook."
"""How the id of a call begins whose agent gives its hooks none."""

_STEPS = 16
"""Positions in a millisecond."""

_CALLS = 64

_ROLES: dict[Origin, Role] = {Origin.PROMPT: "user"}

_KEPT = (
    *("source", "reason", "message", "title", "notification_type", "trigger", "error", "is_interrupt"),
    *("tool_name", "tool_use_id", "agent_id", "agent_type", "model", "permission_mode", "stop_hook_active"),
)
"""Fields of an event that are kept where it becomes no message. What is long is in the log."""


class _Raw(msgspec.Struct):
    event: dict[str, Raw] = {}


class Hooks(NamedTuple):
    """What an agent's hooks say."""

    agent: str
    handlers: Mapping[str, Handler]
    """By name of the event; any other is a fact about the run."""
    kinds: Mapping[str, ToolKind]
    child: str = "{session}"
    """External id of a subagent's session, made of those of `session` and `agent`."""


_read_lines = JsonLines(HookLine, first_keys=("at", "event"), plausible=lambda line: line.event is not None).read


class HookFold:
    """Reads one spool. See `turnlog.agents.base.Fold`."""

    def __init__(self, hooks: Hooks, source: Source, state: bytes | None) -> None:
        self._hooks = hooks
        self._source = source
        self._state = msgspec.json.decode(state, type=HookState) if state is not None else HookState()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        told = Told(self._hooks, self._state)
        for line, json, position, length, number in _read_lines(data, offset, self._state.lines + 1, told.changes):
            told.enter(line, json, position, length, number)
        self._state.lines += count_lines(data)
        return told.finish()


class Told:
    """One feed: the event that is being read, and what all events have brought so far."""

    def __init__(self, hooks: Hooks, state: HookState) -> None:
        self.state = state
        self.changes = Changes()
        self.event = HookEvent()
        self.at = datetime.fromtimestamp(0, UTC)
        self._hooks = hooks
        self._milliseconds = 0.0
        self._json = b""
        self._record = (0, 0)
        self._messages: dict[str, MessageChange] = {}

    def enter(self, line: HookLine, json: bytes, offset: int, length: int, number: int) -> None:
        """Read a line. What an agent gave its hook may be anything; what is no object tells of no session."""
        if line.event is None:
            self.changes.counts.unreadable += 1
            # Of another shape it was told of already.
            if all(found.offset != offset for found in self.changes.diagnostics[-1:]):
                found = Diagnostic(offset=offset, length=length, line=number, reason="no event of a hook")
                self.changes.diagnostics.append(found)
            return
        self.event = line.event
        self._milliseconds = min(max(line.at, 0.0), 4e12)
        self.at = datetime.fromtimestamp(self._milliseconds / 1000, UTC)
        self._json, self._record = json, (offset, length)
        self._note_session(self.event.session_id or "")
        before = len(self._messages), len(self.changes.events)
        self._hooks.handlers.get(self.event.hook_event_name, Told.add_fact)(self)
        counts = self.changes.counts
        if len(self.changes.events) > before[1]:
            counts.events += 1
        else:
            counts.messages += 1

    def finish(self) -> Changes:
        """All that this feed brought."""
        self.changes.messages += self._messages.values()
        return self.changes

    @property
    def external_id(self) -> str:
        """Of the session, or of the subagent's that the event is of."""
        session, agent = self.event.session_id or "", self.event.agent_id
        return self._hooks.child.format(session=session, agent=agent) if agent else session

    @property
    def position(self) -> int:
        """Where the event stands in its session."""
        return HOOKED_FROM + int(self._milliseconds * _STEPS)

    def _session_id(self, external_id: str) -> str:
        return f"{self._hooks.agent}:{external_id.replace('/', '_')}"

    def _note_session(self, external_id: str) -> None:
        session_id = self._session_id(external_id)
        change = self.changes.sessions.setdefault(session_id, SessionChange(session_id=session_id))
        change.cwd = self.event.cwd or change.cwd
        change.project_path = change.project_path or self.event.cwd
        change.first_at = min(change.first_at or self.at, self.at)
        change.last_at = max(change.last_at or self.at, self.at)
        change.position = self.position
        change.metadata = {TOLD_BY: "hooks"}

    # -- messages

    def show_prompt(self, text: str, origin: Origin = Origin.PROMPT) -> None:
        """Somebody asked for this, or the agent's own harness did."""
        event = self.event
        name = event.prompt_id or event.turn_id or checksum(f"{event.timestamp or self._milliseconds}")
        part = TextPart(id=f"{self.external_id}:hook.prompt.{name}.0", text=text)
        self._show(f"prompt.{name}", part, origin=origin)

    def show_text(self, name: str, text: str, *, done: bool = True) -> None:
        """The model said this."""
        message = f"text.{name}"
        part = TextPart(id=f"{self.external_id}:hook.{message}.0", text=text, state="done" if done else "streaming")
        self._show(message, part)
        self.state.answered = text

    def show_call(
        self, call_id: str, result: ToolResult | None = None, *, state: ToolState = ToolState.INPUT_AVAILABLE
    ) -> None:
        """A tool is about to run, waits for leave to do so, or has ended."""
        event = self.event
        part = ToolCallPart(
            id=f"{self.external_id}:hook.call.{call_id}.0",
            tool_call_id=call_id,
            tool_name=event.tool_name or "",
            kind=self._hooks.kinds.get(event.tool_name or "", ToolKind.OTHER),
            input=UNSET if event.tool_input is UNSET else Raw(clean_json(bytes(event.tool_input))),
            state=STATE_OF_STATUS[result.status] if result is not None else state,
            approval=Approval(approved=None) if state is ToolState.APPROVAL_REQUESTED else None,
            started_at=self.at if result is None else None,
            results=() if result is None else (result,),
        )
        self._show(f"call.{call_id}", part, result_id=result.id if result is not None else None)

    def begin_call(self) -> str:
        """The id of a call that the event is the first to tell of."""
        calls, call_id = self.state.calls, self.event.tool_use_id
        if call_id is None:
            self.state.nameless += 1
            call_id = f"{NAMELESS}{self._call_checksum()}.{self.state.nameless}"
        calls.pop(self._call_checksum(), None)
        calls[self._call_checksum()] = call_id
        if len(calls) > _CALLS:
            del calls[next(iter(calls))]
        return call_id

    def call_id(self) -> str | None:
        """The id of the event's call, which may have been told before; None when it has none."""
        return self.event.tool_use_id or self.state.calls.get(self._call_checksum())

    def _call_checksum(self) -> str:
        given = b"" if self.event.tool_input is UNSET else bytes(self.event.tool_input)
        return checksum(f"{self.event.tool_name}:{given.decode(errors='replace')}")

    def end_call(self, status: ResultStatus, text: str) -> None:
        """The event's call has ended, and this is what it said."""
        call_id = self.call_id() or self.begin_call()
        result = ToolResult(
            id=f"{call_id}.result",
            status=status,
            content=(TextPart(text=text),) if text else (),
            error_text=text if status == "error" else None,
            completed_at=self.at,
            duration_ms=self.event.duration_ms,
        )
        self.show_call(call_id, result)

    def _show(self, name: str, part: Part, *, origin: Origin | None = None, result_id: str | None = None) -> None:
        message = Message(
            id=f"{self.external_id}:hook.{name}",
            role="assistant" if origin is None else _ROLES.get(origin, "developer"),
            parts=(part,),
            origin=origin,
            created_at=self.at,
            completed_at=self.at,
        )
        reference: RecordRef = (self._record[0], self._record[1], result_id)
        place = Placement(
            session_id=self._session_id(self.external_id),
            position=self.position,
            records=(reference,),
            record_ids=(message.id,),
        )
        known = self._messages.get(message.id)
        if known is not None:
            message = merge_messages(known.message, message)
            records = (*known.placement.records, *place.records)
            place = msgspec.structs.replace(known.placement, records=tuple(dict.fromkeys(records)))
        self._messages[message.id] = MessageChange(message=message, placement=place)
        if self.external_id != self.event.session_id:
            self._note_session(self.external_id)
            self._link_child()

    def _link_child(self) -> None:
        link = Link(
            kind="subagent",
            parent_session_id=self._session_id(self.event.session_id or ""),
            child_session_id=self._session_id(self.external_id),
        )
        if link not in self.changes.links:
            self.changes.links.append(link)

    # -- events

    def add_fact(self) -> None:
        """The event itself, in the session's history: `hook:<its name>`, of a notification with what it is about."""
        name = self.event.hook_event_name or "event"
        kind = f"hook:{name}/{self.event.notification_type}" if self.event.notification_type else f"hook:{name}"
        fields = msgspec.json.decode(clean_json(self._json), type=_Raw).event
        event = RunMetadataEvent(
            id=f"{self.event.session_id}@hook.{name}.{self.position}",
            position=self.position,
            created_at=self.at,
            kind=kind,
            data=kept_fields(fields, _KEPT),
        )
        session_id = self._session_id(self.event.session_id or "")
        self.changes.events.append(EventChange(session_id=session_id, event=event))


Handler = Callable[[Told], None]


def checksum(text: str) -> str:
    """A short name for what has none."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
