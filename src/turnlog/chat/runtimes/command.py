"""What an agent behind a chat is: how its command is started, how its stream is read, and where a chat goes on."""

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
from turnlog.model.stream import StreamEvent

_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
"""An id of the agent's own: nothing that its command could take for an option."""


class SessionPoint(NamedTuple):
    """Where a chat goes on."""

    session: str
    """The agent's own id of the session."""
    record: str | None = None
    """The record to go back to; None for the session's end."""


class AgentStream(Protocol):
    """One run of an agent, from what it prints to events, and back."""

    @property
    def is_asking(self) -> bool:
        """It has asked for permission. It may still be in the middle of an answer."""
        ...

    @property
    def is_waiting(self) -> bool:
        """It has asked, and will tell nothing before it has an answer."""
        ...

    @property
    def prints_log(self) -> bool:
        """Whether what it prints can be read as its session's log, where there is no other."""
        ...

    def to_write(self) -> bytes:
        """What the agent is to read next: first of all what it is asked. Asked for before and behind every line."""
        ...

    def feed(self, line: bytes) -> list[StreamEvent]:
        """What a line tells. `RunFinish` and `StreamError` are the end."""
        ...

    def pause(self) -> list[StreamEvent]:
        """What is to be told before the run pauses: its step has ended."""
        ...

    def answer(self, message: UIMessage) -> None:
        """Take the page's answers to what the agent asked."""
        ...

    def interrupt(self) -> bytes | None:
        """What the agent is to read so that it stops; None where only a signal makes it."""
        ...


class AgentCommand(Protocol):
    """How an agent is started for a chat. Everything it depends on is said here."""

    @property
    def agent(self) -> str:
        """The agent's name, as of its logs."""
        ...

    @property
    def model(self) -> str | None:
        """The model that is asked for; the agent's own choice without one."""
        ...

    @property
    def system_prompt(self) -> str | None:
        """What is added to the agent's system prompt."""
        ...

    @property
    def cwd(self) -> Path | None:
        """Where it works; where the server does, without one."""
        ...

    @property
    def environment(self) -> Mapping[str, str] | None:
        """All of its environment; that of the server without one."""
        ...

    @property
    def keeps_input(self) -> bool:
        """Whether it reads on while it works."""
        ...

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments, to go on with a session or to begin one."""
        ...

    def open_stream(self, metadata: dict[str, Any], request: RunRequest, point: SessionPoint | None) -> AgentStream:
        """A reader of one run; the metadata goes into `RunStart`, with the session's id."""
        ...


def point_of(request: RunRequest, agent: str) -> SessionPoint | None:
    """Where the chat's last answer stands in a session of the agent; None where there is none."""
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
