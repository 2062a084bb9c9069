"""Streams in Redis or Valkey, for processes on several machines (`pip install turnlog[redis]`).

A stream is a hash and a Redis stream, whose entries are called by the number of their last frame, so that reading from
a number on is one range. What must happen at once is a script. Nothing is trimmed while a stream runs, for a page that
comes back reads it from its beginning; what bounds memory is that every key expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from turnlog.chat.stream_stores import StoredFrames, StreamState

if TYPE_CHECKING:
    from redis.asyncio import Redis

_ENTRIES: Final = 4
"""So many entries are read at once; each may be as large as the whole answer."""

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

# A client tries again when a connection breaks: what comes twice, perhaps with more behind it, is kept once.
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


class RedisStreamStore:
    """Streams in a Redis or Valkey server; what was appended survives a killed web server."""

    def __init__(self, client: Redis, *, prefix: str = "{turnlog}:", expire_seconds: int = 86_400) -> None:
        """Keep streams through a client, which stays the caller's to close.

        Args:
            client: An asyncio client that gives bytes (`decode_responses` is not set).
            prefix: What every key begins with; the part in braces holds them together in a cluster.
            expire_seconds: How long after its last news a stream is forgotten that nobody has ended.

        Raises:
            ValueError: The client decodes what it reads.
        """
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

    async def create(self, stream_id: str, chat_id: str, version: str, lease_until: float) -> bool:
        """Begin a stream, where none runs."""
        return await self._run(self._create, stream_id, stream_id, chat_id, version, lease_until, self._expire)

    async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
        """Keep frames, renew the lease, and say whether to stop."""
        rows = [value for row in frames for value in (row.first, row.first + row.number - 1, row.data)]
        return await self._run(self._append, stream_id, lease_until, self._expire, *rows)

    async def ask_to_stop(self, stream_id: str) -> None:
        """Let the owner know, wherever it is."""
        await self._run(self._set, stream_id, "stop", 1)

    async def finish(self, stream_id: str) -> None:
        """Nothing will follow."""
        await self._run(self._set, stream_id, "finished", 1, stream_id)

    async def claim(self, stream_id: str, now: float, lease_until: float) -> bool:
        """Become the owner of a stream that has lost its own."""
        return await self._run(self._claim, stream_id, now, lease_until)

    async def state(self, stream_id: str) -> StreamState | None:
        """What is known of a stream."""
        found = await self._client.hmget(self._stream(stream_id), ["version", "lease", "finished"])
        version, lease, finished = cast("list[bytes | None]", found)
        if version is None or lease is None:
            return None
        return StreamState(version.decode(), float(lease), finished == b"1")

    async def read(self, stream_id: str, after: int, most_bytes: int) -> list[StoredFrames]:
        """Frames after a number."""
        found, size, start = list[StoredFrames](), 0, after + 1
        while entries := await self._client.xrange(self._frames(stream_id), f"{start}-0", count=_ENTRIES):
            for id, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", entries):
                last, data = int(id.partition(b"-")[0]), fields[b"data"]
                if found and size + len(data) > most_bytes:
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

    def _stream(self, stream_id: str) -> str:
        return f"{self._prefix}stream:{stream_id}"

    def _frames(self, stream_id: str) -> str:
        return f"{self._prefix}frames:{stream_id}"

    async def _run(self, script: Any, stream_id: str, *values: str | bytes | float) -> bool:
        keys = [self._stream(stream_id), self._frames(stream_id), f"{self._prefix}finished"]
        return bool(await script(keys=keys, args=[self._prefix, *values]))
