"""An agent behind a chat: how its command is started, how what it prints is read, and where a chat continues."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

from turnlog.agents import agent as agent_named
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.aisdk.parts import UIMessage
from turnlog.chat.conversion import RECORD_KEY, SESSION_KEY
from turnlog.chat.message_differ import Events, MessageDiffer
from turnlog.chat.runtime import RunRequest
from turnlog.model import ErrorEvent, Message, ReasoningPart, TextPart
from turnlog.model.lenient_json import parse_json
from turnlog.model.stream import StreamEvent

_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
"""A safe id: nothing that the agent's command could take for an option."""


class SessionPoint(NamedTuple):
    """Where a chat continues."""

    session: str
    """The agent's own id of the session."""
    record: str | None = None
    """The record to go back to; None for the session's end."""


class AgentStream(Protocol):
    """One run of an agent: what it prints becomes events, and the page's approvals become its input."""

    @property
    def is_asking(self) -> bool:
        """Whether it has requested permission. It may still be in the middle of a response."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether it has requested permission, and prints nothing until it has an answer."""
        ...

    @property
    def prints_log(self) -> bool:
        """Whether its output can be imported as the session's log if there is no other."""
        ...

    def to_write(self) -> bytes:
        """What to write to the agent next, first of all the prompt. Called before and after each line."""
        ...

    def feed(self, line: bytes) -> list[StreamEvent]:
        """The events of a line. `RunFinish` and `StreamError` end the run."""
        ...

    def pause(self) -> list[StreamEvent]:
        """The events before the run pauses: its step ends."""
        ...

    def answer(self, message: UIMessage) -> None:
        """Answer the agent's permission requests by the approvals in the page's message."""
        ...

    def interrupt(self) -> bytes | None:
        """What to write to the agent to stop it; None if only a signal stops it."""
        ...


class AgentCommand(Protocol):
    """How an agent is started for a chat."""

    @property
    def agent(self) -> str:
        """The agent's name, as in `turnlog.agents`."""
        ...

    @property
    def model(self) -> str | None:
        """The model to use; None for the agent's own choice."""
        ...

    @property
    def system_prompt(self) -> str | None:
        """Text that is added to the agent's system prompt."""
        ...

    @property
    def cwd(self) -> Path | None:
        """The folder in which it works; None for the server's."""
        ...

    @property
    def environment(self) -> Mapping[str, str] | None:
        """Its whole environment; None for the server's."""
        ...

    @property
    def keeps_input(self) -> bool:
        """Whether it reads its input while it works."""
        ...

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments, to continue a session or to begin one."""
        ...

    def open_stream(self, metadata: dict[str, Any], request: RunRequest, point: SessionPoint | None) -> AgentStream:
        """The stream of one run; `metadata` goes into `RunStart`, with the session's id."""
        ...


def record_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line that an agent printed; None for anything else, such as a warning of its libraries."""
    try:
        value: Any = parse_json(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def point_of(request: RunRequest, agent: str) -> SessionPoint | None:
    """Where the chat's last answer is in a session of the agent; None if it has none."""
    for message in reversed(request.messages):
        metadata: Any = message.metadata
        if message.role == "assistant" and isinstance(metadata, dict):
            facts = cast("dict[str, Any]", metadata)
            owner, _, session = str(facts.get(SESSION_KEY, "")).partition(":")
            if owner == agent:
                record = str(facts.get(RECORD_KEY, ""))
                found = SessionPoint(session, record if _ID.fullmatch(record) else None)
                return found if _ID.fullmatch(session) else None
    return None


class OutputReader:
    """Stream events from the lines that an agent prints: its own fold reads them, and new things become events.

    Of subagents only what comes back to the main session is sent.
    """

    def __init__(self, agent: str) -> None:
        """Read the stream of this agent from its beginning."""
        source = Source(agent=agent, path="-", root="", kind=SourceKind.STREAM)
        self._fold = agent_named(agent).fold(source)
        self._offset = 0
        self.differ = MessageDiffer(_is_streaming)
        self.session_id: str | None = None
        """Id of the main session."""
        self.error: str | None = None
        """The last error outside of any call."""

    def feed(self, line: bytes) -> Events:
        """The events of one line, given without its newline."""
        data = line + b"\n"
        changes = self._fold.feed(data, self._offset)
        self._offset += len(data)
        return self._events_of(changes)

    def _events_of(self, changes: Changes) -> Events:
        if self.session_id is None:
            self.session_id = next(iter(changes.sessions), None)
        found: Events = []
        for change in changes.messages:
            if change.placement.session_id == self.session_id and change.message.role == "assistant":
                found += self.differ.diff(change.message)
        for late in changes.results:
            if late.session_id == self.session_id:
                found += self.differ.diff_result(late.tool_call_id, late.result)
        for event in changes.events:
            if isinstance(event.event, ErrorEvent):
                self.error = event.event.error_text
        return found


def _is_streaming(message: Message, index: int) -> bool:
    part = message.parts[index]
    return isinstance(part, TextPart | ReasoningPart) and part.state == "streaming"
