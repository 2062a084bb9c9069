"""Streams in a SQLite file: what processes of one machine share, without a server."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from turnlog.chat.stream_stores import StoredFrames, StreamState

ResultT = TypeVar("ResultT")

_SCHEMA = """
create table if not exists streams (
    number integer primary key,
    stream_id text not null unique,
    chat_id text not null,
    version text not null,
    lease_until real not null,
    finished integer not null default 0
) strict;
create index if not exists streams_of_chat on streams (chat_id, number);
create table if not exists frames (
    stream integer not null references streams (number) on delete cascade,
    last integer not null,
    count integer not null,
    data blob not null,
    primary key (stream, last)
) strict;
create table if not exists stops (
    stream integer primary key references streams (number) on delete cascade
) strict;
"""


class SqliteStreamStore:
    """Streams in a SQLite file, for several processes on one machine; what was appended survives a killed server.

    Its methods never block the event loop: a thread of its own holds the connection.
    """

    def __init__(self, path: Path | str) -> None:
        """Open or create the file."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stream-store")
        self._connection = self._thread.submit(_connect, path).result()

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream, where none runs."""
        created = await self._write(
            "insert into streams (stream_id, chat_id, version, lease_until) select ?1, ?2, ?3, ?4"
            " where not exists (select 1 from streams where chat_id = ?2 and not finished)",
            (stream_id, chat_id, version, lease_until),
        )
        return created == 1

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Keep frames, renew the lease and say whether to stop, in one transaction."""

        def work(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.execute("begin immediate")
                connection.execute("update streams set lease_until = ? where stream_id = ?", (lease_until, stream_id))
                connection.executemany(
                    "insert into frames (stream, last, count, data)"
                    " select number, ?, ?, ? from streams where stream_id = ?",
                    [(piece.first + piece.number - 1, piece.number, piece.data, stream_id) for piece in frames],
                )
                query = "select 1 from stops where stream = (select number from streams where stream_id = ?)"
                return connection.execute(query, (stream_id,)).fetchone() is not None

        return await self._run(work)

    async def ask_to_stop(self, stream_id: str) -> None:
        """Let the owner know, in whichever process it is."""
        await self._write(
            "insert or ignore into stops (stream) select number from streams where stream_id = ?", (stream_id,)
        )

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        await self._write("update streams set finished = 1 where stream_id = ?", (stream_id,))

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of a stream that has lost its own."""
        changed = await self._write(
            "update streams set lease_until = ? where stream_id = ? and not finished and lease_until < ?",
            (lease_until, stream_id, now),
        )
        return changed == 1

    async def state(self, stream_id: str) -> StreamState | None:
        """What is known of a stream."""
        rows = await self._read("select version, lease_until, finished from streams where stream_id = ?", (stream_id,))
        return StreamState(rows[0][0], rows[0][1], bool(rows[0][2])) if rows else None

    async def read(self, stream_id: str, after: int, most_bytes: int) -> list[StoredFrames]:
        """Frames after a number."""

        def work(connection: sqlite3.Connection) -> list[StoredFrames]:
            found, size = list[StoredFrames](), 0
            rows = connection.execute(
                "select last, count, data from frames where last > ?"
                " and stream = (select number from streams where stream_id = ?) order by last",
                (after, stream_id),
            )
            for last, count, data in rows:
                if found and size + len(data) > most_bytes:
                    break
                found.append(StoredFrames(last - count + 1, count, data))
                size += len(data)
            rows.close()
            return found

        return await self._run(work)

    async def newest(self, chat_id: str) -> str | None:
        """The chat's newest stream, if it runs."""
        rows = await self._read(
            "select stream_id, finished from streams where chat_id = ? order by number desc limit 1", (chat_id,)
        )
        return rows[0][0] if rows and not rows[0][1] else None

    async def delete_finished(self, before: float) -> None:
        """Forget finished streams."""
        await self._write("delete from streams where finished and lease_until < ?", (before,))

    def close(self) -> None:
        """Close the file; nothing may be asked afterwards."""
        self._thread.submit(self._connection.close).result()
        self._thread.shutdown()

    async def _read(self, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        return await self._run(lambda connection: connection.execute(query, values).fetchall())

    async def _write(self, statement: str, values: tuple[object, ...]) -> int:
        return await self._run(lambda connection: connection.execute(statement, values).rowcount)

    async def _run(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._connection)


def _connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma foreign_keys = on")
    connection.executescript(_SCHEMA)
    return connection
