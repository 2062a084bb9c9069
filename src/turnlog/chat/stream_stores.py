"""Where the bytes of running streams are kept, so that a reader can come later, or to another process.

A stream is a row of frames, numbered from 1: one event of server-sent events each. Its owner renews a lease while it
runs; a stream whose lease has run out lost its server. Finished streams are kept for a while only: histories are kept
elsewhere. What several processes share is in `sqlite_streams` and `redis_streams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class StoredFrames(NamedTuple):
    """Frames that follow each other."""

    first: int
    """Sequence number of the first."""
    number: int
    """How many they are."""
    data: bytes


class StreamState(NamedTuple):
    """What is known of a stream beside its frames."""

    version: str
    """The release of AI SDK that it was written for."""
    lease_until: float
    """Seconds since the epoch until which its owner promised to be alive."""
    finished: bool


class StreamStore(Protocol):
    """What `Streams` needs; times are seconds since the epoch."""

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream, the chat's newest; False where the chat has one that has not finished."""
        ...

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Keep frames, all of them at once and for good, and renew the lease; none renew it only.

        Say whether somebody asked for a stop.
        """
        ...

    async def ask_to_stop(self, stream_id: str) -> None:
        """Let the owner of a stream know that it should end."""
        ...

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        ...

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of an unfinished stream whose lease has run out; False where somebody else is."""
        ...

    async def state(self, stream_id: str) -> StreamState | None:
        """What is known of a stream; None where there is none."""
        ...

    async def read(self, stream_id: str, after: int, most_bytes: int) -> list[StoredFrames]:
        """Frames from the one that holds number `after + 1` on, at least one row where there is any."""
        ...

    async def newest(self, chat_id: str) -> str | None:
        """The chat's newest stream, if it has not finished."""
        ...

    async def delete_finished(self, before: float) -> None:
        """Forget the streams that have finished, and whose lease ended before."""
        ...


class _MemoryStream:
    def __init__(self, chat_id: str, state: StreamState) -> None:
        self.chat_id = chat_id
        self.state = state
        self.frames: list[StoredFrames] = []
        self.to_stop = False


class MemoryStreamStore:
    """Streams of one process, gone with it."""

    def __init__(self) -> None:
        """Start empty."""
        self._streams: dict[str, _MemoryStream] = {}

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream, where none runs."""
        if await self.newest(chat_id) is not None:
            return False
        self._streams[stream_id] = _MemoryStream(chat_id, StreamState(version, lease_until, finished=False))
        return True

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Keep frames, renew the lease, and say whether to stop."""
        stream = self._streams[stream_id]
        stream.frames += frames
        stream.state = stream.state._replace(lease_until=lease_until)
        return stream.to_stop

    async def ask_to_stop(self, stream_id: str) -> None:
        """Let the owner know."""
        self._streams[stream_id].to_stop = True

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        stream = self._streams[stream_id]
        stream.state = stream.state._replace(finished=True)

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of a stream that has lost its own."""
        stream = self._streams[stream_id]
        if stream.state.finished or stream.state.lease_until >= now:
            return False
        stream.state = stream.state._replace(lease_until=lease_until)
        return True

    async def state(self, stream_id: str) -> StreamState | None:
        """What is known of a stream."""
        stream = self._streams.get(stream_id)
        return None if stream is None else stream.state

    async def read(self, stream_id: str, after: int, most_bytes: int) -> list[StoredFrames]:
        """Frames after a number."""
        stream = self._streams.get(stream_id)
        found, size = list[StoredFrames](), 0
        for frames in [] if stream is None else stream.frames[_position(stream.frames, after) :]:
            if found and size + len(frames.data) > most_bytes:
                break
            found.append(frames)
            size += len(frames.data)
        return found

    async def newest(self, chat_id: str) -> str | None:
        """The chat's newest stream, if it runs."""
        own = [stream_id for stream_id, stream in self._streams.items() if stream.chat_id == chat_id]
        return own[-1] if own and not self._streams[own[-1]].state.finished else None

    async def delete_finished(self, before: float) -> None:
        """Forget finished streams."""
        for stream_id, stream in list(self._streams.items()):
            if stream.state.finished and stream.state.lease_until < before:
                del self._streams[stream_id]


def _position(frames: list[StoredFrames], after: int) -> int:
    low, high = 0, len(frames)
    while low < high:
        middle = (low + high) // 2
        if frames[middle].first + frames[middle].number - 1 <= after:
            low = middle + 1
        else:
            high = middle
    return low
