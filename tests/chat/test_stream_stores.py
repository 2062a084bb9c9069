"""What only streams in Redis have: a client that tries again, keys that expire."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from support.shared_streams import SharedStreams, each_shared_streams
from turnlog.chat import RedisStreamStore, StoredFrames


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def server(tmp_path: Path, runner: asyncio.Runner) -> Iterator[SharedStreams]:
    yield from each_shared_streams("redis", tmp_path, runner)


def test_what_a_client_says_twice_is_kept_once(server: SharedStreams, runner: asyncio.Runner) -> None:
    """A connection that breaks before the answer: the client cannot know what was kept, and more may have come."""

    async def run() -> None:
        store = server.open()
        assert await store.create("s", "chat", "7.0.173", 10.0)
        assert await store.create("s", "chat", "7.0.173", 10.0)
        first, more = StoredFrames(1, 2, b"aabb"), StoredFrames(3, 1, b"cc")
        await store.append("s", [first, more], 11.0)
        await store.append("s", [first, more], 11.0)
        assert await store.read("s", 0, 100) == [first, more]
        longer = StoredFrames(3, 3, b"ccddee")
        await store.append("s", [first, longer, StoredFrames(6, 1, b"ff")], 11.0)
        assert await store.read("s", 0, 100) == [first, longer, StoredFrames(6, 1, b"ff")]
        assert await store.read("s", 4, 5) == [longer]

    runner.run(run())


def test_every_key_expires_and_a_running_stream_puts_it_off(server: SharedStreams, runner: asyncio.Runner) -> None:
    async def run() -> None:
        async with Redis(unix_socket_path=server.place) as client:
            store = RedisStreamStore(client, prefix="mine:", expire_seconds=100)
            await store.create("s", "chat", "7.0.173", 10.0)
            keys = [f"mine:{name}" for name in ("stream:s", "chat:chat")]
            assert [90 < await client.ttl(key) <= 100 for key in keys] == [True, True]
            for key in keys:
                await client.expire(key, 5)
            await store.append("s", [StoredFrames(1, 1, b"a")], 11.0)
            assert [90 < await client.ttl(key) <= 100 for key in [*keys, "mine:frames:s"]] == [True] * 3
            await client.delete("mine:stream:s")
            assert await store.newest("chat") is None
            assert not await store.append("s", [StoredFrames(2, 1, b"b")], 12.0)
            assert await store.state("s") is None
            assert await store.create("next", "chat", "7.0.173", 10.0)

    runner.run(run())


def test_a_client_that_decodes_is_refused(server: SharedStreams) -> None:
    with pytest.raises(ValueError, match="bytes"):
        RedisStreamStore(Redis(unix_socket_path=server.place, decode_responses=True))
