"""A topic and its readers: everybody gets every frame, nobody makes the list longer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from turnlog.server import live
from turnlog.server.live import LaggedError, Topic


def test_every_reader_gets_what_came_after_it_joined() -> None:
    async def run() -> None:
        topic = Topic(5)
        topic.publish(b"a", 6)
        early = topic.join()
        topic.publish(b"b", 7)
        late = topic.join()
        topic.publish(b"c", 8)
        assert (early.sequence, late.sequence) == (6, 7)
        assert (await early.read(1)).data == b"bc"
        assert (await late.read(1)).data == b"c"

    asyncio.run(run())


def test_a_reader_waits_for_another_thread() -> None:
    async def run() -> None:
        topic = Topic(0)
        reader = topic.join()
        threading.Timer(0.05, topic.publish, (b"a", 1)).start()
        assert (await reader.read(10)).data == b"a"
        assert await reader.read(0.01) == (b"", False)

    asyncio.run(run())


@pytest.mark.parametrize("limit", ["FRAME_LIMIT", "SIZE_LIMIT"])
def test_a_slow_reader_loses_its_place_and_goes_on_at_the_end(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(live, limit, 10)

    async def run() -> None:
        topic = Topic(0)
        slow, quick = topic.join(), topic.join()
        for number in range(1, 31):
            topic.publish(b"x", number)
            assert (await quick.read(1)).data == b"x"
        with pytest.raises(LaggedError):
            await slow.read(1)
        assert slow.sequence == 30
        topic.publish(b"y", 31)
        assert (await slow.read(1)).data == b"y"

    asyncio.run(run())


def test_the_end_is_reported_behind_the_last_frame() -> None:
    async def run() -> None:
        topic = Topic(0)
        reader = topic.join()
        topic.publish(b"a", 1)
        topic.end()
        assert await reader.read(1) == (b"a", True)
        assert await topic.join().read(1) == (b"", True)

    asyncio.run(run())


def test_a_reader_whose_loop_is_closed_is_forgotten() -> None:
    topic = Topic(0)

    async def run() -> None:
        topic.join()

    asyncio.run(run())
    assert topic.has_readers
    topic.publish(b"a", 1)
    assert not topic.has_readers
