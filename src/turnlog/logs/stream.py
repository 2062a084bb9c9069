"""Messages out of a log while it is being written: from a pipe, a socket, a file that grows."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

from turnlog.agents import HEAD_SIZE, MORE_SIZE, agents, most_certain
from turnlog.agents import agent as agent_named
from turnlog.agents.base import Fold, Source
from turnlog.arguments import checked
from turnlog.errors import FormatError
from turnlog.logs.merger import SourceMerger
from turnlog.model import Message

_NAMELESS = Path("-")


@checked
async def parse_log_stream(stream: AsyncIterable[bytes | str], agent: str | None = None) -> AsyncIterator[Message]:
    """Yield messages as their lines arrive (R-S32).

    A message whose later lines or results come later is yielded again, with the same id and all that is known: the
    last one of an id is the whole. Together they are what `parse_log_file` gives for the same bytes, and the messages
    of subagents in the same log, which `read_session` has as `children`.

    Args:
        stream: The log's bytes or text in pieces of any size; a line may be split over them. The last line is read
            also without a newline, once the stream has ended.
        agent: The name of the agent that writes it; by default recognised by its first lines.

    Raises:
        FormatError: It is no agent's log.
        TurnlogError: No agent has that name.
    """
    lines = _Lines(agent)
    async for piece in stream:
        for message in lines.add(piece if isinstance(piece, bytes) else piece.encode(errors="surrogatepass")):
            yield message
    for message in lines.close():
        yield message


class _Lines:
    """What has arrived: whole lines go to the fold, the rest waits."""

    def __init__(self, agent: str | None) -> None:
        self._source = None if agent is None else Source(agent=agent_named(agent).name, path="-", root="")
        self._fold: Fold | None = None
        self._merger = SourceMerger()
        self._pending = bytearray()
        self._offset = 0
        self._looked_at = 0

    def add(self, piece: bytes) -> list[Message]:
        """Take a piece; give the messages that it completes or changes."""
        # The pending bytes contain no newline, except while no agent has been recognised to read them.
        newline = piece.rfind(b"\n")
        begin = len(self._pending)
        self._pending += piece
        if newline < 0 and self._fold is not None:
            return []
        end = begin + newline + 1 if newline >= 0 else self._pending.rfind(b"\n") + 1
        return self._feed(end) if end and self._is_known(end) and self._grows else []

    @property
    def _grows(self) -> bool:
        """Whether the stream may be read line by line: JSON over many lines is read once it is all there."""
        return self._source is not None and self._source.appendable

    def close(self) -> list[Message]:
        """The stream has ended: the last line may lack its newline."""
        end = len(self._pending)
        return self._feed(end) if end and self._is_known(end, last=True) else []

    def _feed(self, end: int) -> list[Message]:
        data = bytes(self._pending[:end])
        del self._pending[:end]
        assert self._source is not None
        if self._fold is None:
            self._fold = agent_named(self._source.agent).fold(self._source)
        changed = self._merger.add(self._source, self._fold.feed(data, self._offset))
        self._offset += end
        return [
            message
            for session_id in dict.fromkeys(changed.values())
            for message in self._merger.messages(
                session_id, [message_id for message_id, owner in changed.items() if owner == session_id]
            )
        ]

    def _is_known(self, end: int, *, last: bool = False) -> bool:
        """Whether the writer of the stream is known, perhaps from its first lines."""
        if self._source is not None:
            return True
        # Twice as much each time, so that repeated detection costs no more than a single one.
        if end < 2 * self._looked_at and not last:
            return False
        self._looked_at = end
        head = bytes(self._pending[: self._pending.find(b"\n", HEAD_SIZE + MORE_SIZE, end) + 1 or end])
        found = (candidate.detect(_NAMELESS, head) for candidate in agents())
        detection = most_certain(detection for detection in found if detection.source is not None)
        self._source = None if detection is None else detection.source
        if self._source is None and (last or end >= HEAD_SIZE + MORE_SIZE):
            raise FormatError("the stream is no agent's log")
        return self._source is not None
