"""Folding new logs in other processes (`sync.fold_process`): the writer's side, and what they send each other.

Each process folds the sources that it is given, in their order: it compresses their bytes for the archive and prepares
their messages for writing. The process that writes the store takes the sources in its own order, whichever process
folded them, so the store ends as if it had folded them itself. What a process cannot read, the writer reads itself.

Only sources that no pass has read are folded here, since the others continue from what the store knows of them.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Self

import msgspec

from turnlog.agents import agent as registered_agent
from turnlog.agents.base import Agent, Source
from turnlog.agents.changes import Changes
from turnlog.store.archive import ArchiveFrame
from turnlog.store.sources import Fingerprint, SourceState
from turnlog.store.writing.prepared import PreparedMessage

_MOST_AHEAD = 24 << 20
"""Bytes of logs that one process may have been given and the writer has not taken yet."""

_LENGTH = 8
"""Bytes of the number before each message, which says how long the message is."""


class FoldingFailed(Exception):
    """A process could not fold a source, or has ended. The writer reads the source itself."""


class FoldRequest(msgspec.Struct, frozen=True):
    """A source to fold."""

    source: Source
    key: int
    """Its key in the store, which stored bodies refer to."""


class FoldedFeed(msgspec.Struct):
    """One feed of a source, ready to be written."""

    packed_changes: bytes
    """See `pack_changes`."""
    packed_messages: bytes
    """See `pack_messages`."""
    frames: list[ArchiveFrame]
    size: int
    """Bytes read for it."""

    @property
    def changes(self) -> Changes:
        """What it changes, without messages."""
        return _unpack_changes(self.packed_changes)

    @property
    def messages(self) -> list[PreparedMessage]:
        """Its messages."""
        return _unpack_messages(self.packed_messages)


class FoldedEnd(msgspec.Struct):
    """What is known of a source that was read to its end."""

    fingerprint: Fingerprint
    """Before it was read."""
    mode: int
    state: SourceState
    frames: list[ArchiveFrame]
    torn_line: int | None
    """Number of the line that is not complete yet; None if there is none."""


class FoldedSource:
    """The writer's side of a source: its feeds, then its end. Take everything, or call `skip`."""

    def __init__(self, process: _Process, key: int, size: int) -> None:
        self.key = key
        """Its key in the store."""
        self.size = size
        """Bytes, when it was found."""
        self.end: FoldedEnd | None = None
        """Set once all feeds were taken."""
        self._process = process

    def feeds(self) -> Iterator[FoldedFeed]:
        """Its feeds in order. Raises FoldingFailed, before or after any of them."""
        while self.end is None:
            found = self._process.receive()
            if isinstance(found, FoldedFeed):
                yield found
                continue
            self._process.outstanding -= self.size
            self._process = _ENDED
            if not isinstance(found, FoldedEnd):
                raise FoldingFailed(str(found))
            self.end = found

    def skip(self) -> None:
        """Take what is left of it."""
        with suppress(FoldingFailed):
            for _ in self.feeds():
                pass


class _Process:
    """One process, and how much it was given that the writer has not taken."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "turnlog.sync.fold_process"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.outstanding = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def give(self, task: FoldRequest, size: int) -> FoldedSource:
        self.outstanding += size
        assert self._process.stdin is not None
        # It may have been killed: then `receive` fails, too.
        with suppress(OSError):
            send(self._process.stdin, pack(task))
        return FoldedSource(self, task.key, size)

    def receive(self) -> FoldedFeed | FoldedEnd | str:
        """The next message of the process, or why there is none."""
        assert self._process.stdout is not None
        try:
            return receive(self._process.stdout)
        except EOFError:
            return "the process has ended"

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.wait()


class _Ended(_Process):
    """In place of the process of a source that was taken whole."""

    def __init__(self) -> None:
        self.outstanding = 0

    def receive(self) -> str:
        return "the source was read"


_ENDED = _Ended()


class FoldingTask(NamedTuple):
    """A source that waits to be folded."""

    task: FoldRequest
    size: int


class FoldingProcesses:
    """The processes of one pass, which fold its new sources ahead of the writer."""

    def __init__(self, count: int, sources: Sequence[FoldingTask]) -> None:
        """Start `count` processes. The writer takes the sources in this order, but may leave some out."""
        self._processes = [_Process() for _ in range(count)]
        self._waiting = deque(sources)
        self._folded: dict[str, FoldedSource] = {}
        self._give_more()

    def __enter__(self) -> Self:
        """The processes themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop them."""
        for process in self._processes:
            process.stop()

    @property
    def pids(self) -> list[int]:
        """Process ids."""
        return [process.pid for process in self._processes]

    def take(self, path: str) -> FoldedSource | None:
        """The source at this path; None if no process folds it. Those before it must have been taken."""
        self._give_more()
        return self._folded.pop(path, None)

    def _give_more(self) -> None:
        while self._waiting:
            # The writer takes sources in order, so the process with the least to do gets the next one.
            process = min(self._processes, key=lambda each: each.outstanding)
            if process.outstanding >= _MOST_AHEAD:
                return
            task, size = self._waiting.popleft()
            self._folded[task.source.path] = process.give(task, size)


def is_foldable(agent: Agent) -> bool:
    """Whether another process has the same agent: a registered one, not one that only this process knows."""
    try:
        return type(registered_agent(agent.name)) is type(agent)
    except Exception:  # Whatever is wrong with it shows when the writer reads its sources.
        return False


def pack_changes(changes: Changes) -> bytes:
    """The bytes of changes without messages.

    They are JSON: values that are read from JSON are written as JSON in the same form, without fields that have their
    default. Only a lone surrogate has no JSON.
    """
    try:
        return _encode(changes)
    except UnicodeEncodeError:
        return pickle.dumps(changes, pickle.HIGHEST_PROTOCOL)


def _unpack_changes(packed: bytes) -> Changes:
    # JSON of a struct begins with a brace, a pickle of this protocol with 0x80.
    return _decode(packed) if packed.startswith(b"{") else pickle.loads(packed)


def pack_messages(messages: list[PreparedMessage]) -> bytes:
    """The bytes of messages.

    Most are MessagePack, which takes two fifths of the time of a pickle. It has no lone surrogate, no large number, and
    no view of bytes, as large contents are.
    """
    if not any(message.blobs for message in messages):
        with suppress(UnicodeEncodeError, OverflowError):
            return _MESSAGE_PACK + _encode_messages(messages)
    return pickle.dumps(messages, pickle.HIGHEST_PROTOCOL)


def _unpack_messages(packed: bytes) -> list[PreparedMessage]:
    if packed.startswith(_MESSAGE_PACK):
        return [*_decode_messages(memoryview(packed)[len(_MESSAGE_PACK) :])]
    return pickle.loads(packed)


_MESSAGE_PACK: Final = b"m"
"""A pickle of this protocol begins with 0x80."""


class _PlainMessage(PreparedMessage):
    """A message without blobs."""

    blobs: list[Any]  # msgspec decodes no union of text and bytes


_encode_messages = msgspec.msgpack.Encoder().encode
_decode_messages = msgspec.msgpack.Decoder(list[_PlainMessage]).decode
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Changes).decode


def send(pipe: IO[bytes], data: bytes) -> None:
    """Send a message, which was packed."""
    pipe.write(len(data).to_bytes(_LENGTH, "big"))
    pipe.write(data)
    pipe.flush()


def pack(message: FoldRequest | FoldedFeed | FoldedEnd | str) -> bytes:
    """The bytes of a message; text says why a source cannot be folded."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def receive(pipe: IO[bytes]) -> Any:
    """The next message. Raises EOFError if there is none."""
    size = int.from_bytes(_read(pipe, _LENGTH), "big")
    return pickle.loads(_read(pipe, size))


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data
