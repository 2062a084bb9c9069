"""The fold of one conversation: a line for each event, and one for each version of its state.

Calls that the model made in one answer are an event each; they have the id of the answer in common. The state has the
tokens of each answer by that id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import (
    ANSWERED_BY,
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    ResultChange,
    SessionChange,
)
from turnlog.agents.decoding import LogContext, list_of, object_of, state_codec, text_of
from turnlog.agents.file_rows import FileRow
from turnlog.agents.jsonl import UNREADABLE, JsonLines, count_lines
from turnlog.agents.openhands import NAME, STATE
from turnlog.agents.openhands.contents import (
    Json,
    call_part,
    content_parts,
    result_of,
    thought_parts,
    time_of,
    usage_of,
)
from turnlog.agents.openhands.sources import event_number, session_id
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    RecordEvent,
    RunMetadataEvent,
    SessionTotal,
    TextPart,
    ToolCallPart,
    ToolKind,
    Usage,
)
from turnlog.model.parts import STATE_OF_STATUS
from turnlog.model.session import title_from

_LINES = JsonLines(FileRow, first_keys=("path",), plausible=lambda row: bool(row.path))

_SPREAD = 1024
"""Positions of one event."""


class OpenHandsCall(msgspec.Struct):
    """A call without a result."""

    message: str
    part: str
    name: str
    kind: ToolKind
    position: int
    turn: int
    step: int


class OpenHandsState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    turn: int = 0
    step: int = 0
    leaf: str | None = None
    answer: str | None = None
    """The newest answer, which further events may continue."""
    messages: dict[str, str] = {}
    """Event -> its message."""
    calls: dict[str, OpenHandsCall] = {}
    """Calls without a result."""
    places: dict[str, tuple[int, int, int]] = {}
    """Answer without tokens yet -> its position, turn and step."""
    used: dict[str, Usage] = {}
    """Tokens of answers that were not read yet."""
    counted: list[str] = []
    """Answers that have their tokens."""
    models: dict[str, str] = {}
    """Answer that was not read yet -> its model."""
    is_branched: bool = False


encode_state, decode_state = state_codec(OpenHandsState)


class OpenHandsFold:
    """Reads one conversation. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._state = decode_state(state) if state is not None else OpenHandsState()
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = _Context(self._state, self._session_id)
        for row in _LINES.read_into(context, data, offset, self._state.lines + 1):
            context.read(row)
        self._state.lines += count_lines(data)
        if context.is_subagent:
            _link_to_parent(context)
        return context.finish_branched(self._state.leaf, is_branched=self._state.is_branched)

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


def _link_to_parent(context: _Context) -> None:
    # No event names the call that started it: the store finds it by its prompt.
    parent = context.session_id.rpartition(".")[0]
    context.changes.links.append(Link(kind="subagent", parent_session_id=parent, child_session_id=context.session_id))
    # The parent counts the tokens of its subagents as far as they do not count them.
    context.changes.sessions[parent] = SessionChange(session_id=parent)


class _Context(LogContext):
    """The context of one feed, and the event that it reads."""

    def __init__(self, state: OpenHandsState, session: str) -> None:
        super().__init__(session)
        self.state = state
        self.event: Json = {}
        self.event_id = ""
        self.place = 0
        self.at: Any = None

    def read(self, row: FileRow) -> None:
        """Read a file: an event, or the state of the conversation."""
        number = event_number(row.path)
        if row.is_gone or (number is None and row.path != STATE):
            # What the agent keeps beside them, for the archive.
            self.changes.counts.events += int(bool(row.path))
            self.changes.counts.unreadable += int(not row.path)
            if not row.path:
                self.report("the line is no file of a conversation")
            return
        try:
            document = object_of(msgspec.json.decode(row.content()))
        except (*UNREADABLE, ValueError):
            document = {}
        if not document:
            self.report("the file is no JSON object")
            self.changes.counts.unreadable += 1
        elif number is None:
            read_state(self, document)
            self.changes.counts.events += 1
        else:
            self._read_event(document, number, row.modified)

    def _read_event(self, event: Json, number: int, modified: float | None) -> None:
        self.event, self.place = event, (number + 1) * _SPREAD
        self.event_id = text_of(event.get("id")) or f"{self.session_id.partition(':')[2]}@{number}"
        self.at = time_of(event.get("timestamp"), modified)
        self.extend_times(self.at)
        kind = text_of(event.get("kind")) or ""
        reader = READERS.get(kind)
        if reader is not None:
            reader(self)
            return
        data = Raw(msgspec.json.encode(event))
        self.add_event(RecordEvent(id=self.event_id, kind=kind, known=False, created_at=self.at, data=data))

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event at its place."""
        placed = msgspec.structs.replace(event, position=self.place)
        record = (self.position, self.length)
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=placed, record=record, parent_id=self.state.leaf)
        )
        self.changes.counts.events += 1

    def add_message(self, message: Message, *, step: int | None, block: int | None = None) -> None:
        """Add a message, or further parts of it."""
        state = self.state
        placement = Placement(
            session_id=self.session_id,
            position=self.place,
            records=((self.position, self.length, block),),
            record_ids=(self.event_id,),
            parent_id=state.leaf if state.leaf != message.id else None,
            turn=state.turn or None,
            step=step,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1
        state.messages[self.event_id] = message.id
        state.leaf = message.id

    @property
    def answer_id(self) -> str:
        """The id of the answer that the event belongs to. Ids of a provider are unique only in their conversation."""
        response = text_of(self.event.get("llm_response_id"))
        return self.answer_to(response) if response else self.event_id

    def answer_to(self, response: str) -> str:
        """The id of the answer with this response. A conversation and its subagents have responses of their own."""
        return f"{self.session_id.partition(':')[2].partition('.')[0]}.{response}"

    @property
    def is_subagent(self) -> bool:
        """Whether this is the conversation of a subagent."""
        return "." in self.session_id.partition(":")[2]


# -- messages


def _read_message(context: _Context) -> None:
    message = object_of(context.event.get("llm_message"))
    if message.get("role") == "assistant" or context.event.get("source") == "agent":
        _add_answer(context, message, message.get("content"))
        return
    is_prompt = context.event.get("source") == "user"
    parts = [
        *content_parts(message.get("content"), context.event_id),
        *content_parts(context.event.get("extended_content"), f"{context.event_id}.extended"),
    ]
    if is_prompt:
        context.state.turn, context.state.step = context.state.turn + 1, 0
        title = title_from("\n".join(part.text for part in parts if isinstance(part, TextPart)))
        if title and context.state.turn == 1:
            context.session.titles["prompt"] = title
    context.add_message(
        Message(
            id=context.event_id,
            role="user" if is_prompt else "developer",
            parts=tuple(parts),
            origin=(Origin.SUBAGENT_PROMPT if context.is_subagent else Origin.PROMPT) if is_prompt else Origin.HARNESS,
            created_at=context.at,
        ),
        step=None,
    )


def _read_action(context: _Context) -> None:
    _add_answer(context, context.event, context.event.get("thought"), has_call=True)


def _add_answer(context: _Context, holder: Json, content: object, *, has_call: bool = False) -> None:
    """Add an answer, or the next of its calls."""
    state, identity = context.state, context.answer_id
    # Each call of an answer is an event of its own; all of them name the same `llm_response_id`.
    is_first = state.answer != identity
    if is_first:
        state.answer, state.step = identity, state.step + 1
    # Not counted: an event that is read before others of its answer would count itself as the first.
    first = context.place
    parts: list[Part] = thought_parts(holder, identity, first)
    parts += content_parts(content, identity, first + len(parts))
    if has_call:
        call = call_part(context.event, f"{identity}.{first + len(parts)}", context.at)
        parts.append(call)
        state.calls[call.tool_call_id] = OpenHandsCall(
            identity, call.id or "", call.tool_name, call.kind, context.place, state.turn, state.step
        )
    # Tokens are in the file of the state, which may have been read before the answer, or comes after it.
    usage, model = state.used.pop(identity, None), state.models.pop(identity, None)
    if usage is None and identity not in state.counted and identity not in state.places:
        state.places[identity] = (context.place, state.turn, state.step)
    risk = text_of(context.event.get("security_risk"))
    context.add_message(
        Message(
            id=identity,
            role="assistant",
            parts=tuple(parts),
            created_at=context.at,
            response_id=text_of(context.event.get("llm_response_id")),
            model=model,
            usage=usage,
            metadata={NAME: {"security_risk": risk}} if risk and risk != "UNKNOWN" else {},
        ),
        step=state.step,
        block=None if is_first else first,
    )


def _read_result(context: _Context) -> None:
    call_id = text_of(context.event.get("tool_call_id")) or ""
    result = result_of(context.event, call_id, context.at)
    context.changes.counts.results += 1
    called = context.state.calls.pop(call_id, None)
    if called is None:
        # No event has the call of a tool that is unknown.
        context.changes.results.append(
            ResultChange(
                session_id=context.session_id,
                tool_call_id=call_id,
                result=result,
                position=context.place,
                record=(context.position, context.length),
                record_ids=(context.event_id,),
            )
        )
        return
    part = ToolCallPart(
        id=called.part,
        tool_call_id=call_id,
        tool_name=called.name,
        kind=called.kind,
        state=STATE_OF_STATUS[result.status],
        results=(result,),
    )
    placement = Placement(
        session_id=context.session_id,
        position=called.position,
        records=((context.place, 0, result.id),),
        record_ids=(context.event_id,),
        turn=called.turn or None,
        step=called.step,
    )
    message = Message(id=called.message, role="assistant", parts=(part,))
    context.changes.messages.append(MessageChange(message=message, placement=placement))


# -- events


def _read_condensation(context: _Context) -> None:
    """The model forgets events; a summary may take their place."""
    forgotten = {str(each) for each in list_of(context.event.get("forgotten_event_ids"))}
    kept = dict.fromkeys(message for event, message in context.state.messages.items() if event not in forgotten)
    text = text_of(context.event.get("summary"))
    summary = Message(
        id=f"{context.event_id}-summary",
        role="developer",
        parts=(TextPart(id=f"{context.event_id}-summary.0", text=text),) if text else (),
        origin=Origin.COMPACTION,
        created_at=context.at,
    )
    context.state.is_branched = True
    context.add_event(
        CompactionEvent(
            id=context.event_id,
            created_at=context.at,
            kept_message_ids=tuple(kept),
            replacement=(summary,) if text else (),
        )
    )


def _read_error(context: _Context) -> None:
    event = context.event
    text = text_of(event.get("detail")) or text_of(event.get("code")) or ""
    context.add_event(
        ErrorEvent(id=context.event_id, created_at=context.at, error_text=text, kind=text_of(event.get("code")))
    )


def _read_pause(context: _Context) -> None:
    context.add_event(InterruptEvent(id=context.event_id, created_at=context.at))


def _read_facts(context: _Context) -> None:
    event = RunMetadataEvent(
        id=context.event_id,
        kind=text_of(context.event.get("kind")) or "",
        created_at=context.at,
        data=Raw(msgspec.json.encode(context.event)),
    )
    context.add_event(event)


READERS: dict[str, Callable[[_Context], None]] = {
    "MessageEvent": _read_message,
    "ActionEvent": _read_action,
    "ObservationEvent": _read_result,
    "AgentErrorEvent": _read_result,
    "UserRejectObservation": _read_result,
    "Condensation": _read_condensation,
    "ConversationErrorEvent": _read_error,
    "PauseEvent": _read_pause,
    "InterruptEvent": _read_pause,
    "SystemPromptEvent": _read_facts,
    "CondensationRequest": _read_facts,
    "CondensationSummaryEvent": _read_facts,
    "ConversationStateUpdateEvent": _read_facts,
    "HookExecutionEvent": _read_facts,
    "LLMCompletionLogEvent": _read_facts,
    "TokenEvent": _read_facts,
}
"""Kind of an event -> its reader."""


# -- the state of the conversation


def read_state(context: _Context, facts: Json) -> None:
    """Read the facts about the conversation, and the tokens of its answers."""
    change = context.session
    folder = text_of(object_of(facts.get("workspace")).get("working_dir"))
    if folder:
        change.cwd = change.project_path = folder
    status = text_of(facts.get("execution_status"))
    if status:
        change.metadata = {NAME: {"execution_status": status}}
    model = text_of(object_of(object_of(facts.get("agent")).get("llm")).get("model"))
    if model:
        # An answer that was stopped has no tokens, and so no model of its own.
        change.metadata[ANSWERED_BY] = model
    metrics = object_of(object_of(facts.get("stats")).get("usage_to_metrics"))
    costs = [object_of(each).get("accumulated_cost") for each in metrics.values()]
    cost = sum(each for each in costs if isinstance(each, int | float))
    # 0 is also what it counts for models whose prices it does not know.
    change.reported_cost = cost if 0 < cost < 1e9 else None
    for task, metric in metrics.items():
        _read_metric(context, task, object_of(metric))


_OF_SUBAGENTS = ("task:", "delegate:")
"""How the uses begin that are those of a subagent."""


def _read_metric(context: _Context, task: str, metric: Json) -> None:
    beside: list[Usage] = []
    for counted in map(object_of, list_of(metric.get("token_usages"))):
        usage, response = usage_of(counted), text_of(counted.get("response_id"))
        if usage is None or response is None:
            continue
        model = text_of(counted.get("model"))
        if task == "agent":
            _add_usage(context, context.answer_to(response), usage, model)
        elif task.startswith(_OF_SUBAGENTS):
            # Its own conversation has these tokens too, if it is there.
            total = SessionTotal(model=model, usage=usage, calls=1, task=task, answer=context.answer_to(response))
            context.session.totals[f"{task}:{response}"] = total
        else:
            beside.append(usage)
    if beside:
        total = Usage(
            input=sum(each.input or 0 for each in beside),
            cache_read=sum(each.cache_read or 0 for each in beside),
            output=sum(each.output or 0 for each in beside),
            reasoning=sum(each.reasoning or 0 for each in beside) or None,
        )
        model = text_of(metric.get("model_name"))
        context.session.totals[task] = SessionTotal(model=model, usage=total, calls=len(beside), task=task)


def _add_usage(context: _Context, answer: str, usage: Usage, model: str | None) -> None:
    state = context.state
    if answer in state.counted:
        return
    state.counted.append(answer)
    place = state.places.pop(answer, None)
    if place is None:
        # The state may be written before the event.
        state.used[answer] = usage
        if model:
            state.models[answer] = model
        return
    position, turn, step = place
    placement = Placement(session_id=context.session_id, position=position, turn=turn or None, step=step)
    message = Message(id=answer, role="assistant", usage=usage, model=model)
    context.changes.messages.append(MessageChange(message=message, placement=placement))
