"""Where the bytes of running streams are stored, so that a reader can come later, or to another process.

A stream is a series of frames, numbered from 1: one server-sent event each. Its owner renews a lease while it runs; a
stream whose lease has expired has lost its server. Finished streams are stored for a while only, since histories are
kept elsewhere. One process needs memory only, the processes of one machine share a SQLite file, and those of several
machines a Redis or Valkey server (`pip install 'turnlog[redis]'`).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar, cast

from turnlog.arguments import checked
from turnlog.chat.numbers import check_numbers
from turnlog.errors import StoreError
from turnlog.platforms.files import BINARY
from turnlog.store.write_lock import use_write_ahead_log

if TYPE_CHECKING:
    from redis.asyncio import Redis


class StoredFrames(NamedTuple):
    """Consecutive frames of a stream."""

    first: int
    """Sequence number of the first."""
    number: int
    """How many there are."""
    data: bytes

    @property
    def last(self) -> int:
        """Sequence number of the last."""
        return self.first + self.number - 1


def index_of_frame(rows: Sequence[StoredFrames], number: int) -> int:
    """The index of the first row that holds this frame or later ones; the number of rows if none does."""
    return bisect_left(rows, number, key=lambda row: row.last)


class StreamState(NamedTuple):
    """The state of a stream."""

    version: str
    """The AI SDK release for which it is written."""
    lease_until: float
    """When the owner's lease ends, in seconds since the epoch."""
    finished: bool
    chat_id: str


class StreamStore(Protocol):
    """What `Streams` needs; times are seconds since the epoch."""

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream, the chat's newest; False if the chat has one that has not finished."""
        ...

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Store frames durably, all or none, and renew the lease; without frames, only renew it.

        Returns whether somebody asked for a stop.
        """
        ...

    async def ask_to_stop(self, stream_id: str) -> None:
        """Ask the owner of a stream to end it."""
        ...

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        ...

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of an unfinished stream whose lease has expired; False if somebody else is."""
        ...

    async def state(self, stream_id: str) -> StreamState | None:
        """The state of a stream; None for an unknown one."""
        ...

    async def read(self, stream_id: str, after: int, max_bytes: int) -> list[StoredFrames]:
        """Rows from the one with frame `after + 1` on: about `max_bytes` at most, but one if there is any."""
        ...

    async def newest(self, chat_id: str) -> str | None:
        """The chat's newest stream, if it has not finished."""
        ...

    async def delete_finished(self, before: float) -> None:
        """Delete the finished streams whose lease ended before a time."""
        ...

    async def delete_chat(self, chat_id: str) -> None:
        """Delete all streams of a chat; the owner of one that runs stores nothing more."""
        ...


class _MemoryStream:
    def __init__(self, chat_id: str, state: StreamState) -> None:
        self.chat_id = chat_id
        self.state = state
        self.frames: list[StoredFrames] = []
        self.to_stop = False


class MemoryStreamStore:
    """Streams of one process, lost when it ends."""

    def __init__(self) -> None:
        """Start empty."""
        self._streams: dict[str, _MemoryStream] = {}

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream if none runs."""
        if await self.newest(chat_id) is not None:
            return False
        self._streams[stream_id] = _MemoryStream(
            chat_id, StreamState(version, lease_until, finished=False, chat_id=chat_id)
        )
        return True

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Store frames and renew the lease; whether to stop."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return False
        stream.frames += frames
        stream.state = stream.state._replace(lease_until=lease_until)
        return stream.to_stop

    async def ask_to_stop(self, stream_id: str) -> None:
        """Let the owner know."""
        if stream_id in self._streams:
            self._streams[stream_id].to_stop = True

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        if (stream := self._streams.get(stream_id)) is not None:
            stream.state = stream.state._replace(finished=True)

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of a stream that has lost its own."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.state.finished or stream.state.lease_until >= now:
            return False
        stream.state = stream.state._replace(lease_until=lease_until)
        return True

    async def state(self, stream_id: str) -> StreamState | None:
        """The state of a stream."""
        stream = self._streams.get(stream_id)
        return None if stream is None else stream.state

    async def read(self, stream_id: str, after: int, max_bytes: int) -> list[StoredFrames]:
        """Frames after a number."""
        stream = self._streams.get(stream_id)
        found, size = list[StoredFrames](), 0
        for frames in [] if stream is None else stream.frames[index_of_frame(stream.frames, after + 1) :]:
            if found and size + len(frames.data) > max_bytes:
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

    async def delete_chat(self, chat_id: str) -> None:
        """Delete all streams of a chat."""
        for stream_id, stream in list(self._streams.items()):
            if stream.chat_id == chat_id:
                del self._streams[stream_id]


ResultT = TypeVar("ResultT")

_BUSY_SECONDS = 10.0

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
    """Streams in a SQLite file, for several processes on one machine; appended frames survive a killed server.

    Its methods never block the event loop: a thread of its own holds the connection.
    """

    @checked
    def __init__(self, path: Path | str) -> None:
        """Open or create the file.

        Raises:
            StoreError: Its folder does not exist, or it is no file that can be opened.
        """
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stream-store")
        self._connection = self._thread.submit(_connect, path).result()

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream if none runs."""
        created = await self._write(
            "insert into streams (stream_id, chat_id, version, lease_until) select ?1, ?2, ?3, ?4"
            " where not exists (select 1 from streams where chat_id = ?2 and not finished)",
            (stream_id, chat_id, version, lease_until),
        )
        return created == 1

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Store frames and renew the lease, in one transaction; whether to stop."""

        def work(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.execute("begin immediate")
                connection.execute("update streams set lease_until = ? where stream_id = ?", (lease_until, stream_id))
                connection.executemany(
                    "insert into frames (stream, last, count, data)"
                    " select number, ?, ?, ? from streams where stream_id = ?",
                    [(row.last, row.number, row.data, stream_id) for row in frames],
                )
                query = "select 1 from stops where stream = (select number from streams where stream_id = ?)"
                return connection.execute(query, (stream_id,)).fetchone() is not None

        return await self._run(work)

    async def ask_to_stop(self, stream_id: str) -> None:
        """Ask the owner to stop, in whichever process it is."""
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
        """The state of a stream."""
        query = "select version, lease_until, finished, chat_id from streams where stream_id = ?"
        rows = await self._read(query, (stream_id,))
        return StreamState(rows[0][0], rows[0][1], bool(rows[0][2]), rows[0][3]) if rows else None

    async def read(self, stream_id: str, after: int, max_bytes: int) -> list[StoredFrames]:
        """Frames after a number."""

        def work(connection: sqlite3.Connection) -> list[StoredFrames]:
            found, size = list[StoredFrames](), 0
            rows = connection.execute(
                "select last, count, data from frames where last > ?"
                " and stream = (select number from streams where stream_id = ?) order by last",
                (after, stream_id),
            )
            for last, count, data in rows:
                if found and size + len(data) > max_bytes:
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

    async def delete_chat(self, chat_id: str) -> None:
        """Delete all streams of a chat, also from the bytes of the file and of its log."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("delete from streams where chat_id = ?", (chat_id,))
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()

        await self._run(work)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._thread.submit(self._connection.close).result()
        self._thread.shutdown()

    async def _read(self, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        return await self._run(lambda connection: connection.execute(query, values).fetchall())

    async def _write(self, statement: str, values: tuple[object, ...]) -> int:
        return await self._run(lambda connection: connection.execute(statement, values).rowcount)

    async def _run(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._connection)


def _connect(path: Path | str) -> sqlite3.Connection:
    folder = Path(path).absolute().parent
    if str(path) != ":memory:" and not folder.is_dir():
        raise StoreError(f"streams cannot be kept in {path}: there is no folder {folder}, make it first")
    try:
        if str(path) != ":memory:":
            # For the user alone, as chats are; SQLite gives its log the same mode.
            os.close(os.open(path, os.O_RDWR | BINARY | os.O_CREAT, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False)
        use_write_ahead_log(connection, _BUSY_SECONDS)
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma foreign_keys = on")
        # A deleted answer is overwritten.
        connection.execute("pragma secure_delete = on")
        connection.executescript(_SCHEMA)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"streams cannot be kept in {path}: {error}") from error
    return connection


_FEWEST_ENTRIES: Final = 4
_MOST_ENTRIES: Final = 256
"""How many entries are read at once: few at first, as each may be as large as the whole answer, and twice as many each
time, as most have one word."""

# KEYS are the stream's hash, its entries and the finished streams (of the last script: these only), ARGV[1] is what all
# keys begin with.

_CREATE: Final = """
local newest = ARGV[1] .. 'chat:' .. ARGV[3]
local id = redis.call('GET', newest)
if id == ARGV[2] then return 1 end
if id and redis.call('HGET', ARGV[1] .. 'stream:' .. id, 'finished') == '0' then return 0 end
redis.call('HSET', KEYS[1], 'chat', ARGV[3], 'version', ARGV[4], 'lease', ARGV[5], 'finished', 0)
redis.call('EXPIRE', KEYS[1], ARGV[6])
redis.call('SET', newest, ARGV[2], 'EX', ARGV[6])
return 1
"""

# A client retries when a connection breaks: frames that come twice, perhaps with more after them, are stored once.
_APPEND: Final = """
local chat = redis.call('HGET', KEYS[1], 'chat')
if not chat then return 0 end
for index = 4, #ARGV, 3 do
    local first, last, top = tonumber(ARGV[index]), tonumber(ARGV[index + 1]), 0
    for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)) do
        top = tonumber(string.match(entry[1], '^%d+'))
    end
    if last > top then
        for _, entry in ipairs(redis.call('XRANGE', KEYS[2], first .. '-0', '+')) do
            redis.call('XDEL', KEYS[2], entry[1])
        end
        redis.call('XADD', KEYS[2], last .. '-0', 'count', last - first + 1, 'data', ARGV[index + 2])
    end
end
redis.call('HSET', KEYS[1], 'lease', ARGV[2])
for _, key in ipairs({KEYS[1], KEYS[2], ARGV[1] .. 'chat:' .. chat}) do redis.call('EXPIRE', key, ARGV[3]) end
return redis.call('HEXISTS', KEYS[1], 'stop')
"""

_SET_ON_EXISTING: Final = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if ARGV[2] == 'finished' then redis.call('ZADD', KEYS[3], redis.call('HGET', KEYS[1], 'lease'), ARGV[4]) end
return 1
"""

_CLAIM: Final = """
local lease, finished = unpack(redis.call('HMGET', KEYS[1], 'lease', 'finished'))
if finished ~= '0' or tonumber(lease) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'lease', ARGV[3])
return 1
"""

_FORGET: Final = """
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[2])) do
    redis.call('DEL', ARGV[1] .. 'stream:' .. id, ARGV[1] .. 'frames:' .. id)
    redis.call('ZREM', KEYS[1], id)
end
"""

_DELETE_CHAT: Final = """
local newest = ARGV[1] .. 'chat:' .. ARGV[2]
local ids = redis.call('ZRANGE', KEYS[1], 0, -1)
local last = redis.call('GET', newest)
if last then table.insert(ids, last) end
for _, id in ipairs(ids) do
    if redis.call('HGET', ARGV[1] .. 'stream:' .. id, 'chat') == ARGV[2] then
        redis.call('DEL', ARGV[1] .. 'stream:' .. id, ARGV[1] .. 'frames:' .. id)
        redis.call('ZREM', KEYS[1], id)
    end
end
redis.call('DEL', newest)
"""


class RedisStreamStore:
    """Streams in a Redis or Valkey server; appended frames survive a killed web server.

    A stream is a hash and a Redis stream, whose entries have the number of their last frame for an id, so that reading
    from a number on is one range. What must be atomic is a script. Nothing is trimmed while a stream runs, since a page
    that comes back reads it from its beginning; memory is bounded because every key expires.
    """

    @checked
    def __init__(self, client: Redis, *, prefix: str = "{turnlog}:", expire_seconds: int = 86_400) -> None:
        """Keep streams through a client, which the caller closes.

        Args:
            client: An asyncio client that gives bytes (`decode_responses` is not set).
            prefix: What every key begins with; the part in braces holds them together in a cluster.
            expire_seconds: How long after its last change an unfinished stream is deleted.

        Raises:
            ValueError: The client decodes what it reads, or `expire_seconds` is below 1.
        """
        check_numbers("RedisStreamStore", expire_seconds=expire_seconds)
        if client.get_encoder().decode_responses:
            raise ValueError("a client of streams must give bytes: leave decode_responses out")
        self._client = client
        self._prefix = prefix
        self._expire = expire_seconds
        self._create = client.register_script(_CREATE)
        self._append = client.register_script(_APPEND)
        self._set = client.register_script(_SET_ON_EXISTING)
        self._claim = client.register_script(_CLAIM)
        self._forget = client.register_script(_FORGET)
        self._delete_chat = client.register_script(_DELETE_CHAT)

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream if none runs."""
        return await self._run(self._create, stream_id, stream_id, chat_id, version, lease_until, self._expire)

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Store frames and renew the lease; whether to stop."""
        rows = [value for row in frames for value in (row.first, row.last, row.data)]
        return await self._run(self._append, stream_id, lease_until, self._expire, *rows)

    async def ask_to_stop(self, stream_id: str) -> None:
        """Ask the owner to stop, wherever it is."""
        await self._run(self._set, stream_id, "stop", 1)

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        await self._run(self._set, stream_id, "finished", 1, stream_id)

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of a stream that has lost its own."""
        return await self._run(self._claim, stream_id, now, lease_until)

    async def state(self, stream_id: str) -> StreamState | None:
        """The state of a stream."""
        found = await self._client.hmget(self._stream(stream_id), ["version", "lease", "finished", "chat"])
        version, lease, finished, chat_id = cast("list[bytes | None]", found)
        if version is None or lease is None or chat_id is None:
            return None
        return StreamState(version.decode(), float(lease), finished == b"1", chat_id.decode())

    async def read(self, stream_id: str, after: int, max_bytes: int) -> list[StoredFrames]:
        """Frames after a number."""
        found, size, start, count = list[StoredFrames](), 0, after + 1, _FEWEST_ENTRIES
        while entries := await self._client.xrange(self._frames(stream_id), f"{start}-0", count=count):
            count = min(2 * count, _MOST_ENTRIES)
            for id, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", entries):
                last, data = int(id.partition(b"-")[0]), fields[b"data"]
                if found and size + len(data) > max_bytes:
                    return found
                found.append(StoredFrames(last - int(fields[b"count"]) + 1, int(fields[b"count"]), data))
                size, start = size + len(data), last + 1
        return found

    async def newest(self, chat_id: str) -> str | None:
        """The chat's newest stream, if it runs."""
        newest = cast("bytes | None", await self._client.get(f"{self._prefix}chat:{chat_id}"))
        state = None if newest is None else await self.state(newest.decode())
        return None if newest is None or state is None or state.finished else newest.decode()

    async def delete_finished(self, before: float) -> None:
        """Forget finished streams; a chat's pointer to its last one expires."""
        await self._forget(keys=[f"{self._prefix}finished"], args=[self._prefix, before])

    async def delete_chat(self, chat_id: str) -> None:
        """Delete all streams of a chat."""
        await self._delete_chat(keys=[f"{self._prefix}finished"], args=[self._prefix, chat_id])

    def _stream(self, stream_id: str) -> str:
        return f"{self._prefix}stream:{stream_id}"

    def _frames(self, stream_id: str) -> str:
        return f"{self._prefix}frames:{stream_id}"

    async def _run(self, script: Any, stream_id: str, *values: str | bytes | float) -> bool:
        keys = [self._stream(stream_id), self._frames(stream_id), f"{self._prefix}finished"]
        return bool(await script(keys=keys, args=[self._prefix, *values]))
