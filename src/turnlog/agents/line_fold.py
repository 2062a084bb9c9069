"""The fold of a log that grows line by line and belongs to one file: what such folds of all agents have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import LineContext
from turnlog.agents.jsonl import JsonLines, count_lines


class LineState(Protocol):
    """What a fold remembers between two feeds: besides the agent's own facts, how many lines it has read."""

    lines: int


StateT = TypeVar("StateT", bound=LineState)
ContextT = TypeVar("ContextT", bound=LineContext)
RecordT = TypeVar("RecordT", bound=msgspec.Struct)


class LineFold(ABC, Generic[StateT, ContextT, RecordT]):
    """Reads the records of a log one after the other. See `turnlog.agents.base.Fold`."""

    def __init__(
        self, source: Source, state: StateT, encode: Callable[[StateT], bytes], lines: JsonLines[RecordT]
    ) -> None:
        """Begin where `state` left off.

        Args:
            source: The log.
            state: What the feeds before have left, or a new state.
            encode: The encoder of the state (`state_codec`).
            lines: Reads the records out of lines.
        """
        self._source = source
        self._state = state
        self._encode = encode
        self._lines = lines

    @abstractmethod
    def begin(self, data: bytes, offset: int) -> ContextT:
        """The context of a feed of `data`, which begins at the byte `offset` of the log."""

    @abstractmethod
    def read(self, context: ContextT, record: RecordT) -> None:
        """Read a record, whose place and JSON the context has."""

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = self.begin(data, offset)
        for record in self._lines.read_into(context, data, offset, self._state.lines + 1):
            self.read(context, record)
        # Damaged and blank lines count too: diagnostics and some records name a line by its number in the file.
        self._state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return self._encode(self._state)
