"""The message that a run is making, for who keeps it: whole and valid at any time, whatever the client is told.

It is made for the newest AI SDK, which can say the most. An older client's stream is another writer's work.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk.chunks import UIMessageChunk
from turnlog.aisdk.parts import (
    DynamicToolUIPart,
    ReasoningUIPart,
    TextUIPart,
    ToolUIPart,
    UIMessage,
    UIMessagePart,
)
from turnlog.aisdk.reader import UIMessageReader
from turnlog.aisdk.writer import ChunkWriter
from turnlog.aisdk.writer_tools import ABORTED, ABORTED_METADATA
from turnlog.model.stream import StreamEvent


class Making:
    """Takes the events of one run; `message` is what they came to."""

    def __init__(
        self, message_id: str, continued: UIMessage | None = None, *, tools: Literal["dynamic", "named"] = "dynamic"
    ) -> None:
        """Begin a message, or go on with one."""
        self._writer = ChunkWriter(7, message_id=message_id, continued=continued, tools=tools)
        self._reader = UIMessageReader(continued, version=7)
        self.begun = False
        """Whether there is anything to keep."""

    def add(self, event: StreamEvent) -> None:
        """Take an event."""
        self._read(self._writer.write(event))

    def end(self) -> None:
        """The run has ended."""
        self._read(self._writer.close())

    def fail(self) -> None:
        """The run broke down."""
        self._read(self._writer.fail())

    def abort(self) -> None:
        """The run was stopped."""
        self._read(self._writer.abort())

    @property
    def message(self) -> UIMessage:
        """The message; while the run goes on, as if it had been killed now."""
        message = self._reader.message
        return message if self._writer.closed else settle(message)

    def _read(self, chunks: list[UIMessageChunk]) -> None:
        for chunk in chunks:
            self.begun = True
            self._reader.feed(chunk)


def settle(message: UIMessage) -> UIMessage:
    """The message as it would be if nothing followed: valid, with nothing in it that still runs."""
    return replace(message, parts=tuple(_settled(part) for part in message.parts))


def _settled(part: UIMessagePart) -> UIMessagePart:
    if isinstance(part, TextUIPart | ReasoningUIPart):
        return replace(part, state="done") if part.state == "streaming" else part
    if isinstance(part, ToolUIPart | DynamicToolUIPart) and part.state in _RUNNING:
        return _stopped(part)
    return part


_RUNNING = ("input-streaming", "input-available", "approval-responded")


def _stopped(part: ToolUIPart | DynamicToolUIPart) -> UIMessagePart:
    if part.approval is not UNSET and part.approval.approved is False:
        return replace(part, state="output-denied")
    # The text of an input is only wanted where there is no input.
    raw_input = part.raw_input if part.input is UNSET else UNSET
    return replace(
        part,
        state="output-error",
        raw_input=raw_input,
        input_encoding=UNSET,
        error_text=ABORTED,
        result_provider_metadata=ABORTED_METADATA,
    )
