"""The fold of hook events: lines of a spool -> changes of the model, for all agents.

A line is `{"at": <Unix milliseconds>, "event": <what the agent gave the hook>}`, with `"task"` between them where
`TURNLOG_TASK` names one. The agents' events are much alike: an agent's `HookFormat` says which handler reads which
event, and the `read_` functions at the end are the handlers that agents share. Prompts, texts and calls become messages
whose ids are made of the event's own ids; everything else becomes an event of the session. Positions are times, beyond
all positions of logs, and the session's own log supersedes each piece (`turnlog.store.reconcile.lesser_sources`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import HOOKED_FROM, KNOWN_FROM, Source
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
from turnlog.agents.decoding import clean_json, salvage
from turnlog.agents.jsonl import UNREADABLE, JsonLines, count_lines
from turnlog.agents.printed_stream import kept_fields
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
from turnlog.model.parts import STATE_OF_STATUS, Approval, ToolState

UNNAMED_CALL = "hook."
"""Prefix of the ids that calls without one in their events get here."""

_STEPS = 16
"""Positions in a millisecond."""

_CALLS_KEPT = 64
_TEXTS_KEPT = 8
"""How many of the latest calls and texts a spool's state remembers."""

_ROLES: dict[Origin, Role] = {Origin.PROMPT: "user"}

_KEPT = (
    *("source", "reason", "message", "title", "notification_type", "trigger", "error", "is_interrupt"),
    *("tool_name", "tool_use_id", "agent_id", "agent_type", "model", "permission_mode", "stop_hook_active"),
)
"""Fields of an event that are kept where it becomes no message. Long ones are in the log."""


class _Raw(msgspec.Struct):
    event: dict[str, Raw] = {}


class HookEvent(msgspec.Struct):
    """The input of a hook, as far as it is read: the fields of all agents, of which each has some."""

    session_id: str | None = None
    hook_event_name: str = ""
    cwd: str | None = None
    workspace_roots: list[str] = []
    """The folders of an editor's window: the session belongs to the first, wherever a call runs."""
    model: str | None = None
    agent_id: str | None = None
    parent_agent_id: str | UnsetType | None = UNSET
    """Of agents that give the main agent an `agent_id` too: None for it."""
    prompt_id: str | None = None
    turn_id: str | None = None
    timestamp: str | None = None
    prompt: str | list[dict[str, Any]] | None = None
    """The text of a prompt, or its parts: `prompt_text` has the text of both."""
    message_id: str | None = None
    index: int = 0
    delta: str | None = None
    final: bool = False
    displayed_text: str | None = None
    is_final: bool = False
    last_assistant_message: str | None = None
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_call_id: str | None = None
    """The id that the log has, where an agent makes another one for hooks."""
    tool_input: Raw | UnsetType = UNSET
    tool_response: Raw | UnsetType = UNSET
    tool_result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    is_interrupt: bool = False
    failure_type: str | None = None
    duration_ms: float | None = None
    notification_type: str | None = None

    @property
    def prompt_text(self) -> str:
        """The text of the prompt; "" if there is none."""
        if isinstance(self.prompt, list):
            return "\n".join(text for part in self.prompt if isinstance(text := part.get("text"), str))
        return self.prompt or ""


class HookLine(msgspec.Struct):
    """A line of a spool."""

    at: float = 0.0
    event: HookEvent | None = None
    task: str | None = None


class HookState(msgspec.Struct):
    """What a fold remembers between two feeds."""

    lines: int = 0
    texts: dict[str, dict[int, str]] = {}
    """Message -> index -> delta of its text, of the latest messages: hooks that run in parallel may arrive out of
    order, and twice."""
    answered: str = ""
    """The last text that was read: the event of a stop often repeats it."""
    calls: dict[str, str] = {}
    """Checksum of a call's tool and input -> its id, of the latest calls: some events of a call have no id."""
    nameless: int = 0
    """Calls without an id that have begun."""


class HookFormat(NamedTuple):
    """How an agent's hook events are read."""

    agent: str
    handlers: Mapping[str, Handler]
    """Event -> its handler; any other event becomes a fact about the run."""
    kinds: Mapping[str, ToolKind]
    child: str = "{session}"
    """Form of the external id of a subagent's session, with the ids of `session` and `agent`."""
    names: Mapping[str, str] = {}
    """Field of an event -> that of `HookEvent` which it is, for agents that call it otherwise. `outer.inner` is a field
    of an object in a field."""
    events: Mapping[str, str] = {}
    """Name of an event -> the one in `handlers` and `base.HOOK_MARKERS`, for agents that call it otherwise."""
    child_facts: bool = False
    """A fact that a subagent reports is about its own session, and not about the one that started it."""


_read_lines = JsonLines(HookLine, first_keys=("at", "event"), plausible=lambda line: line.event is not None).read


class HookFold:
    """Reads one spool. See `turnlog.agents.base.Fold`."""

    def __init__(self, hooks: HookFormat, source: Source, state: bytes | None) -> None:
        self._hooks = hooks
        self._source = source
        self._state = msgspec.json.decode(state, type=HookState) if state is not None else HookState()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        reading = HookReading(self._hooks, self._state)
        for line, json, position, length, number in _read_lines(data, offset, self._state.lines + 1, reading.changes):
            reading.enter(line, json, position, length, number)
        self._state.lines += count_lines(data)
        return reading.finish()


class HookReading:
    """One feed: the current event, and the changes of the events so far."""

    def __init__(self, hooks: HookFormat, state: HookState) -> None:
        self.state = state
        self.changes = Changes()
        self.event = HookEvent()
        self.at = datetime.fromtimestamp(0, UTC)
        self._hooks = hooks
        self._milliseconds = 0.0
        self._json = b""
        self._record = (0, 0)
        self._task: str | None = None
        self._messages: dict[str, MessageChange] = {}

    def enter(self, line: HookLine, json: bytes, offset: int, length: int, number: int) -> None:
        """Read a line. Its event may be anything; what is no object belongs to no session."""
        if line.event is None:
            self.changes.counts.unreadable += 1
            # One of another shape has its diagnostic already, from `JsonLines`.
            if all(found.offset != offset for found in self.changes.diagnostics[-1:]):
                found = Diagnostic(offset=offset, length=length, line=number, reason="no event of a hook")
                self.changes.diagnostics.append(found)
            return
        self.event, self._json = self._event_of(line.event, json)
        # Any program may append to a spool. The time is limited, so that positions stay exact as JSON numbers.
        self._milliseconds = min(max(line.at, 0.0), 4e12)
        self.at = datetime.fromtimestamp(self._milliseconds / 1000, UTC)
        self._record = (offset, length)
        self._task = line.task
        self._note_session(self.event.session_id or "")
        before = len(self._messages), len(self.changes.events)
        self._hooks.handlers.get(self.event.hook_event_name, HookReading.add_fact)(self)
        counts = self.changes.counts
        if len(self.changes.events) > before[1]:
            counts.events += 1
        else:
            counts.messages += 1

    def _event_of(self, event: HookEvent, json: bytes) -> tuple[HookEvent, bytes]:
        """The event of a line with the names that it has here, and the line with these names."""
        names, events = self._hooks.names, self._hooks.events
        if not names:
            return event, json
        fields = msgspec.json.decode(clean_json(json), type=_Raw).event
        line = msgspec.json.encode({"event": _renamed(fields, names)})
        # A field of another shape is left out, as it was when the line was decoded.
        read = salvage(line, HookLine, "$", []).event or event
        name = events.get(read.hook_event_name, read.hook_event_name)
        return msgspec.structs.replace(read, hook_event_name=name), line

    def finish(self) -> Changes:
        """All changes of this feed."""
        self.changes.messages += self._messages.values()
        return self.changes

    @property
    def external_id(self) -> str:
        """The agent's own id of the session, or of the subagent's session, that the event belongs to."""
        session, agent = self.event.session_id or "", self.event.agent_id
        is_main = agent is None or self.event.parent_agent_id is None
        return session if is_main else self._hooks.child.format(session=session, agent=agent)

    @property
    def position(self) -> int:
        """The position of the event in its session, made of its time."""
        return HOOKED_FROM + int(self._milliseconds * _STEPS)

    def _session_id(self, external_id: str) -> str:
        return f"{self._hooks.agent}:{external_id.replace('/', '_')}"

    def _note_session(self, external_id: str) -> None:
        session_id = self._session_id(external_id)
        change = self.changes.sessions.setdefault(session_id, SessionChange(session_id=session_id))
        folder = next(iter(self.event.workspace_roots), self.event.cwd)
        change.cwd = folder or change.cwd
        change.project_path = change.project_path or folder
        change.first_at = min(change.first_at or self.at, self.at)
        change.last_at = max(change.last_at or self.at, self.at)
        change.position = self.position
        change.task = self._task or change.task
        # Holds until the session's own log is read.
        change.metadata = {KNOWN_FROM: "hooks"}

    # -- messages

    def show_prompt(self, text: str, origin: Origin = Origin.PROMPT) -> None:
        """Add the prompt of a person, or text that the agent's harness sent as one."""
        event = self.event
        # Agents without ids of prompts (Gemini CLI) send a timestamp, which a repeated event has too.
        name = event.prompt_id or event.turn_id or checksum(f"{event.timestamp or self._milliseconds}")
        part = TextPart(id=f"{self.external_id}:hook.prompt.{name}.0", text=text)
        self._show(f"prompt.{name}", part, origin=origin)

    def show_text(self, name: str, text: str, *, done: bool = True) -> None:
        """Add the text of an answer, as far as it has come."""
        message = f"text.{name}"
        part = TextPart(id=f"{self.external_id}:hook.{message}.0", text=text, state="done" if done else "streaming")
        self._show(message, part)
        self.state.answered = text

    def show_call(
        self, call_id: str, result: ToolResult | None = None, *, state: ToolState = ToolState.INPUT_AVAILABLE
    ) -> None:
        """Add the event's call: about to run, waiting for a permission, or with its result."""
        event = self.event
        part = ToolCallPart(
            id=f"{self.external_id}:hook.call.{call_id}.0",
            tool_call_id=call_id,
            tool_name=event.tool_name or "",
            kind=self._hooks.kinds.get(event.tool_name or "", ToolKind.OTHER),
            input=UNSET if event.tool_input is UNSET else Raw(clean_json(bytes(event.tool_input))),
            state=STATE_OF_STATUS[result.status] if result is not None else state,
            approval=Approval(approved=None) if state is ToolState.APPROVAL_REQUESTED else None,
            # Only the event before a call knows its start; merging keeps it when the event with the result comes.
            started_at=self.at if result is None else None,
            results=() if result is None else (result,),
        )
        self._show(f"call.{call_id}", part, result_id=result.id if result is not None else None)

    def begin_call(self) -> str:
        """Remember the event's call as a new one; return its id, which is made up where the event has none."""
        calls, call_id = self.state.calls, self.event.tool_call_id or self.event.tool_use_id
        if call_id is None:
            self.state.nameless += 1
            call_id = f"{UNNAMED_CALL}{self._call_checksum()}.{self.state.nameless}"
        # The same call made again must become the newest, or it would be the next to be dropped.
        calls.pop(self._call_checksum(), None)
        calls[self._call_checksum()] = call_id
        if len(calls) > _CALLS_KEPT:
            del calls[next(iter(calls))]
        return call_id

    def call_id(self) -> str | None:
        """The id of the event's call, its own or that of an earlier event with the same input; None if unknown."""
        own = self.event.tool_call_id or self.event.tool_use_id
        return own or self.state.calls.get(self._call_checksum())

    def _call_checksum(self) -> str:
        given = b"" if self.event.tool_input is UNSET else bytes(self.event.tool_input)
        return checksum(f"{self.event.tool_name}:{given.decode(errors='replace')}")

    def end_call(self, status: ResultStatus, text: str) -> None:
        """Add the event's call with this result."""
        # The event before the call may have been lost; its result alone is worth a call.
        call_id = self.call_id() or self.begin_call()
        result = ToolResult(
            id=f"{call_id}.result",
            status=status,
            content=(TextPart(text=text),) if text else (),
            error_text=text if status == "error" else None,
            completed_at=self.at,
            duration_ms=None if self.event.duration_ms is None else round(self.event.duration_ms),
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
            self._link_child()

    def _link_child(self) -> None:
        self._note_session(self.external_id)
        link = Link(
            kind="subagent",
            parent_session_id=self._session_id(self.event.session_id or ""),
            child_session_id=self._session_id(self.external_id),
        )
        if link not in self.changes.links:
            self.changes.links.append(link)

    # -- events

    def add_fact(self) -> None:
        """Add the event itself to the session, as `hook:<name>`, or `hook:<name>/<type>` of a notification."""
        name = self.event.hook_event_name or "event"
        kind = f"hook:{name}/{self.event.notification_type}" if self.event.notification_type else f"hook:{name}"
        fields = msgspec.json.decode(clean_json(self._json), type=_Raw).event
        external_id = self.external_id if self._hooks.child_facts else self.event.session_id or ""
        event = RunMetadataEvent(
            id=f"{external_id}@hook.{name}.{self.position}",
            position=self.position,
            created_at=self.at,
            kind=kind,
            data=kept_fields(fields, _KEPT),
        )
        self.changes.events.append(EventChange(session_id=self._session_id(external_id), event=event))
        if external_id != (self.event.session_id or ""):
            self._link_child()


Handler = Callable[[HookReading], None]


def _renamed(fields: Mapping[str, Raw], names: Mapping[str, str]) -> dict[str, Raw]:
    """The fields of an event under the names that they have in `HookEvent`."""
    found = {names.get(field, field): value for field, value in fields.items()}
    for path, name in names.items():
        outer, _, inner = path.partition(".")
        value = _fields_of(fields[outer]).get(inner) if inner and outer in fields else None
        if value is not None:
            found[name] = value
    return found


def _fields_of(value: Raw) -> dict[str, Raw]:
    """The fields of a value; none if it is no object."""
    try:
        return msgspec.json.decode(value, type=dict[str, Raw])
    except UNREADABLE:
        return {}


def checksum(text: str) -> str:
    """16 hexadecimal digits for a text, used in ids of what has none."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_prompt(reading: HookReading) -> None:
    """A prompt was sent."""
    if reading.event.prompt_text:
        reading.show_prompt(reading.event.prompt_text)
    else:
        reading.add_fact()


def read_text_delta(reading: HookReading) -> None:
    """A delta of an answer's text. The message is emitted again with all of its deltas so far."""
    event = reading.event
    if event.message_id is None or event.delta is None:
        reading.add_fact()
        return
    texts = reading.state.texts
    pieces = texts.setdefault(event.message_id, {})
    pieces[event.index] = event.delta
    if len(texts) > _TEXTS_KEPT:
        del texts[next(iter(texts))]
    # Hooks run in parallel: deltas may arrive out of order.
    whole = "".join(pieces[index] for index in sorted(pieces))
    reading.show_text(event.message_id, whole, done=event.final)


def read_call(reading: HookReading) -> None:
    """A tool is about to run."""
    reading.show_call(reading.begin_call())


def read_result(reading: HookReading) -> None:
    """A tool has run."""
    reading.end_call("success", output_text(reading.event.tool_response))


def read_failure(reading: HookReading) -> None:
    """A tool has failed, or was stopped."""
    reading.end_call("aborted" if reading.event.is_interrupt else "error", output_text(reading.event.error))


def read_permission_request(reading: HookReading) -> None:
    """A call waits for a permission."""
    reading.add_fact()
    call_id = reading.call_id()
    if call_id is not None:
        reading.show_call(call_id, state=ToolState.APPROVAL_REQUESTED)


def read_stop(reading: HookReading) -> None:
    """The agent has stopped. Its last text is read where no earlier event had it."""
    answer = reading.event.last_assistant_message
    if answer and answer.strip() != reading.state.answered.strip():
        reading.show_text(reading.event.turn_id or reading.event.prompt_id or checksum(answer), answer)
    reading.add_fact()


_TEXTS = ("stdout", "stderr", "output", "content", "text", "llmContent", "text_result_for_llm", "error", "message")
"""Fields that hold the readable text of an output that is an object."""


def output_text(output: Raw | UnsetType) -> str:
    """The readable text of a tool's output: itself or that of its fields, else its JSON."""
    if output is UNSET:
        return ""
    try:
        value = msgspec.json.decode(clean_json(bytes(output)))
    except msgspec.MsgspecError:
        return bytes(output).decode(errors="replace")
    return _text_of(value) or bytes(output).decode(errors="replace")


def _text_of(value: Any) -> str:
    match value:
        case str():
            return value
        case dict():
            fields = cast("dict[str, Any]", value)
            found = [_text_of(fields.get(name)) for name in _TEXTS]
        case list():
            found = [_text_of(item) for item in cast("list[Any]", value)]
        case _:
            return ""
    return "\n".join(text for text in found if text)
