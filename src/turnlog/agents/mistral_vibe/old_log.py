"""The log and the metadata of a session before 2.26: one message a line, and one object beside it.

A resumed session is a new folder that repeats the messages with their ids. No message has a time, a model or tokens;
the metadata has those of the whole session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import ANSWERED_BY, Changes, EventChange, Link, ResultChange, SessionChange
from turnlog.agents.decoding import Count, LogContext, aware, branch_of, state_codec
from turnlog.agents.jsonl import count_lines
from turnlog.agents.mistral_vibe import NAME
from turnlog.agents.mistral_vibe.contents import TOOL_KINDS
from turnlog.agents.mistral_vibe.old_records import LINES, OldCall, OldFunction, OldMessage
from turnlog.agents.mistral_vibe.sources import session_id
from turnlog.agents.sidecars import SidecarFold
from turnlog.model import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    ResultStatus,
    SessionTotal,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    Usage,
)
from turnlog.model.session import title_from, title_given

_ERROR = re.compile(r"\A<tool_error>(?P<text>.*?)(?:</tool_error>)?\Z", re.DOTALL)
_EXIT_CODE = re.compile(r"^(?:Return code|returncode): (?P<code>\d{1,3})$", re.MULTILINE)
_CANCELLED = ("<user_cancellation>", "<vibe_stop_event>")
_REFUSED = "<tool_rejected>"


class OldState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    turn: int = 0
    step: int = 0
    leaf: str | None = None
    calls: dict[str, str] = {}
    """Calls without a result -> their message."""


encode_state, decode_state = state_codec(OldState)


class VibeLogFold:
    """Reads the messages of a session. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._state = decode_state(state) if state is not None else OldState()
        self._session_id = source.session_id or session_id("")
        self._is_subagent = source.kind is SourceKind.SUBAGENT

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = _Context(self._state, self._session_id, is_subagent=self._is_subagent)
        for message in LINES.read_into(context, data, offset, self._state.lines + 1):
            context.read(message)
        self._state.lines += count_lines(data)
        return context.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


class _Context(LogContext):
    """The context of one feed."""

    def __init__(self, state: OldState, session: str, *, is_subagent: bool) -> None:
        super().__init__(session)
        self._state = state
        self._is_subagent = is_subagent

    def read(self, message: OldMessage) -> None:
        if message.role == "tool" and message.tool_call_id:
            self._add_result(message, message.tool_call_id)
        elif message.role == "assistant":
            self._add_answer(message)
        elif message.role in ("user", "system"):
            self._add_input(message)
        else:
            self._add_unknown(message)

    @property
    def _external(self) -> str:
        return self.session_id.partition(":")[2]

    def _add(self, message: Message, *, step: int | None) -> None:
        self.add_to_branch(message, self._state.leaf, turn=self._state.turn or None, step=step)
        self._state.leaf = message.id

    def _add_input(self, message: OldMessage) -> None:
        identity = message.message_id or f"{self._external}@{self.position}"
        origin = Origin.HARNESS
        # The program gives the model words of its own as messages of the user, and marks them.
        if message.role == "user" and not message.injected:
            origin = Origin.SUBAGENT_PROMPT if self._is_subagent and not self._state.turn else Origin.PROMPT
            self._state.turn, self._state.step = self._state.turn + 1, 0
            title = title_from(message.content or "")
            if title and self._state.turn == 1:
                self.session.titles["prompt"] = title
        self._add(
            Message(
                id=identity,
                role="developer" if origin is Origin.HARNESS else "user",
                parts=tuple(_text_parts(message, identity)),
                origin=origin,
                metadata=_metadata_of(message),
            ),
            step=None,
        )

    def _add_answer(self, message: OldMessage) -> None:
        identity = message.message_id or f"{self._external}@{self.position}"
        parts: list[Part] = []
        if message.reasoning_content:
            parts.append(ReasoningPart(id=f"{identity}.0", text=message.reasoning_content))
        parts += _text_parts(message, identity, len(parts))
        for call in message.tool_calls or ():
            part = _call_part(call, f"{identity}.{len(parts)}")
            self._state.calls[part.tool_call_id] = identity
            parts.append(part)
        self._state.step += 1
        self._add(
            Message(id=identity, role="assistant", parts=tuple(parts), metadata=_metadata_of(message)),
            step=self._state.step,
        )

    def _add_result(self, message: OldMessage, call_id: str) -> None:
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=_result_of(message, call_id),
                position=self.position,
                record=(self.position, self.length),
                message_id=self._state.calls.pop(call_id, None),
            )
        )
        self.changes.counts.results += 1

    def _add_unknown(self, message: OldMessage) -> None:
        event = RecordEvent(
            id=f"{self._external}@{self.position}",
            position=self.position,
            kind=message.role,
            known=False,
            data=Raw(self.json),
        )
        record = (self.position, self.length)
        self.changes.events.append(EventChange(session_id=self.session_id, event=event, record=record))
        self.changes.counts.events += 1


def _metadata_of(message: OldMessage) -> dict[str, Any]:
    return {NAME: message.others} if message.others else {}


def _text_parts(message: OldMessage, identity: str, number: int = 0) -> Iterator[Part]:
    if message.content:
        yield TextPart(id=f"{identity}.{number}", text=message.content)


def _call_part(call: OldCall, part_id: str) -> ToolCallPart:
    function = call.function or OldFunction()
    name, text = function.name or "", function.arguments
    value: Any = UNSET
    if text is not None:
        data = text.encode(errors="replace")
        try:
            msgspec.json.decode(data)
            value, text = Raw(data), None
        except (msgspec.MsgspecError, RecursionError):
            pass
    return ToolCallPart(
        id=part_id,
        tool_call_id=call.id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=value,
        input_text=text,
    )


def _result_of(message: OldMessage, call_id: str) -> ToolResult:
    text, identity = message.content or "", f"{call_id}.result"
    error = _ERROR.match(text)
    code = _EXIT_CODE.search(text) if message.name == "bash" else None
    status: ResultStatus = "success" if error is None else "error"
    if text.startswith(_CANCELLED):
        status = "aborted"
    elif text.startswith(_REFUSED):
        status = "denied"
    return ToolResult(
        id=identity,
        status=status,
        content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
        error_text=None if status == "success" else error["text"] if error is not None else text,
        exit_code=None if code is None else int(code["code"]),
    )


# -- the metadata


class OldStats(msgspec.Struct):
    """What the program counted in a session. The prompt's tokens include cached ones, whose number is unknown."""

    session_prompt_tokens: Count | None = None
    session_completion_tokens: Count | None = None
    session_cost: float | None = None


class OldEnvironment(msgspec.Struct):
    """Where the program ran."""

    working_directory: str | None = None


class OldModel(msgspec.Struct):
    """A model in the settings."""

    name: str | None = None
    alias: str | None = None


class OldConfig(msgspec.Struct):
    """The settings that are read."""

    active_model: str | None = None
    models: list[OldModel] = []


class OldMetadata(msgspec.Struct):
    """The metadata of a session."""

    session_id: str | None = None
    parent_session_id: str | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    git_commit: str | None = None
    git_branch: str | None = None
    environment: OldEnvironment | None = None
    title: str | None = None
    title_source: str | None = None
    stats: OldStats | None = None
    config: OldConfig | None = None


class VibeMetadataFold(SidecarFold[OldMetadata]):
    """Reads the metadata of one session."""

    kind = OldMetadata
    salvages = True

    def add_facts(self, facts: OldMetadata, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        session = self._source.session_id or session_id("")
        folder = facts.environment.working_directory if facts.environment is not None else None
        stats, config = facts.stats or OldStats(), facts.config or OldConfig()
        # Settings name the active model by its alias.
        model = next((each.name for each in config.models if each.alias == config.active_model), config.active_model)
        change = SessionChange(
            session_id=session,
            cwd=folder,
            project_path=folder,
            git_branch=branch_of(facts.git_branch),
            git_commit=facts.git_commit,
            first_at=None if facts.start_time is None else aware(facts.start_time),
            last_at=None if facts.end_time is None else aware(facts.end_time),
            reported_cost=stats.session_cost or None,
            metadata={ANSWERED_BY: model} if model else {},
        )
        if stats.session_prompt_tokens or stats.session_completion_tokens:
            usage = Usage(
                input=stats.session_prompt_tokens, output=stats.session_completion_tokens, exactness="estimated"
            )
            change.totals["stats"] = SessionTotal(model=model, usage=usage)
        if facts.title:
            change.titles["custom" if facts.title_source == "manual" else "generated"] = title_given(facts.title)
        changes.sessions[session] = change
        # No record names a subagent's session: its folder is below the one of the session that started it, in `agents`.
        parts = self._source.path.split("/")
        if parts[-3:-2] == ["agents"]:
            changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=session_id(parts[-4].rpartition("_")[2]),
                    child_session_id=session,
                )
            )
