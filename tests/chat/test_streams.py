"""One source, many readers: replay and then live, without a gap or a duplicate, also from another process."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from support.shared_streams import SHARED, SharedStreams, each_shared_streams
from turnlog.aisdk.chunks import TextDeltaChunk
from turnlog.aisdk.sse import DONE, KEEP_ALIVE, decode_chunks
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat import MemoryStreamStore, SqliteStreamStore, StoredFrames, Streams, StreamStore, streams
from turnlog.chat.stream_stores import StreamState
from turnlog.errors import NotFoundError
from turnlog.model.stream import RunFinish, StepStart, StreamEvent, TextDelta, TextStart, ToolInputStart

TESTS = Path(__file__).parent.parent


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """A loop that is still there when what was opened on it is closed."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path, runner: asyncio.Runner) -> Iterator[SharedStreams]:
    yield from each_shared_streams(request.param, tmp_path, runner)


@pytest.fixture(params=["memory", *SHARED])
def store(request: pytest.FixtureRequest, tmp_path: Path, runner: asyncio.Runner) -> Iterator[StreamStore]:
    if request.param == "memory":
        yield MemoryStreamStore()
    else:
        for shared in each_shared_streams(request.param, tmp_path, runner):
            yield shared.open()


async def telling(number: int, *, pause: float = 0.0, burst: int = 1) -> AsyncIterator[StreamEvent]:
    yield StepStart()
    yield TextStart(id="t")
    for count in range(number):
        if count % burst == 0:
            await asyncio.sleep(pause)
        yield TextDelta(id="t", delta=f"{count} ")
    yield RunFinish(stop_reason="stop")


async def waiting() -> AsyncIterator[StreamEvent]:
    yield StepStart()
    yield ToolInputStart(tool_call_id="c", tool_name="Bash")
    yield TextStart(id="t")
    yield TextDelta(id="t", delta="half")
    await asyncio.Event().wait()


async def read_all(frames: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in frames])


def told(data: bytes) -> str:
    return "".join([chunk.delta for chunk in decode_chunks(data) if isinstance(chunk, TextDeltaChunk)])


def expected(number: int) -> str:
    return "".join([f"{count} " for count in range(number)])


def frames_of(data: bytes) -> list[bytes]:
    return [frame for frame in data.split(b"\n\n") if frame]


def test_readers_at_any_time_and_number_get_the_same_stream(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        hub = Streams(store)
        stream_id = await hub.start("chat", telling(300, burst=7), ChunkWriter(7))
        early = asyncio.create_task(read_all(await hub.subscribe(stream_id)))
        late = list[asyncio.Task[bytes]]()
        for after in (0, 1, 17, 250):
            await asyncio.sleep(0.003)
            late.append(asyncio.create_task(read_all(await hub.subscribe(stream_id, after))))
        whole = frames_of(await early)
        assert told(b"\n\n".join([*whole, b""])) == expected(300)
        for after, reading in zip((0, 1, 17, 250), late, strict=True):
            assert frames_of(await reading) == whole[after:]
        await hub.finished(stream_id)
        assert frames_of(await read_all(await hub.subscribe(stream_id, 5))) == whole[5:]
        assert await hub.resume("chat") is None

    runner.run(run())


def test_nothing_to_resume_and_no_such_stream() -> None:
    """R-O22."""

    async def run() -> None:
        hub = Streams()
        assert await hub.resume("chat") is None
        with pytest.raises(NotFoundError):
            await hub.subscribe("no-such-stream")

    asyncio.run(run())


def test_the_newest_stream_of_a_chat_is_resumed(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        hub = Streams(store)
        first = await hub.start("chat", telling(1), ChunkWriter(7))
        await hub.finished(first)
        await hub.start("chat", waiting(), ChunkWriter(7, message_id="second"))
        await hub.start("other", waiting(), ChunkWriter(7, message_id="third"))
        resumed = await hub.resume("chat")
        assert resumed is not None
        async with aclosing(resumed) as reading:
            assert b'"messageId":"second"' in await anext(reading)
        await hub.close()

    runner.run(run())


def test_a_reader_that_leaves_does_not_end_the_run_and_stop_does(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        hub = Streams(store)
        stream_id = await hub.start("chat", waiting(), ChunkWriter(7))
        leaving = await hub.subscribe(stream_id)
        await anext(leaving)
        await leaving.aclose()
        staying = asyncio.create_task(read_all(await hub.subscribe(stream_id)))
        await asyncio.sleep(0.01)
        assert not staying.done()
        assert await hub.stop("chat")
        assert not await hub.stop("chat")
        kinds = [chunk.type for chunk in decode_chunks(await staying)]
        assert kinds[-6:-2] == ["text-end", "tool-input-available", "tool-output-error", "finish-step"]
        assert kinds[-2:] == ["message-metadata", "abort"]

    runner.run(run())


def test_a_stop_before_the_first_step_ends_the_stream_too() -> None:
    async def run() -> None:
        hub = Streams()
        stream_id = await hub.start("chat", waiting(), ChunkWriter(7))
        reading = await hub.subscribe(stream_id)
        assert await hub.stop("chat")
        assert [chunk.type for chunk in decode_chunks(await read_all(reading))] == ["start", "abort"]
        assert await hub.resume("chat") is None
        await hub.start("chat", waiting(), ChunkWriter(7))
        await hub.close()

    asyncio.run(run())


def test_slow_readers_cost_no_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(streams, "TAIL_BYTES", 16_384)
    monkeypatch.setattr(streams, "SAVE_SECONDS", 0.01)

    async def peak(readers: int) -> int:
        store = SqliteStreamStore(tmp_path / f"{readers}.db")
        hub = Streams(store)
        stream_id = await hub.start("chat", telling(30_000, pause=0.002, burst=100), ChunkWriter(7))
        slow = [await hub.subscribe(stream_id) for _ in range(readers)]
        tracemalloc.start()
        for reading in slow:
            await anext(reading)
        await hub.finished(stream_id)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert told(await read_all(slow[-1])).endswith(expected(30_000)[-100:])
        for reading in slow:
            await reading.aclose()
        store.close()
        return most

    one, many = asyncio.run(peak(1)), asyncio.run(peak(200))
    assert many - one < 1_500_000  # the stream itself has 1.6 MB
    assert one < 1_500_000


def test_another_process_follows_a_running_stream(shared: SharedStreams, runner: asyncio.Runner) -> None:
    async def run() -> None:
        owner, follower = Streams(shared.open()), Streams(shared.open())
        stream_id = await owner.start("chat", telling(40, pause=0.02), ChunkWriter(7))
        reading = await follower.resume("chat")
        assert reading is not None
        own, other = await asyncio.gather(read_all(await owner.subscribe(stream_id)), read_all(reading))
        assert frames_of(own) == frames_of(other)
        assert other.endswith(DONE)

    runner.run(run())


def test_another_process_stops_a_running_stream(shared: SharedStreams, runner: asyncio.Runner) -> None:
    async def run() -> None:
        owner, other = Streams(shared.open()), Streams(shared.open())
        stream_id = await owner.start("chat", waiting(), ChunkWriter(7))
        reading = asyncio.create_task(read_all(await owner.subscribe(stream_id)))
        assert await other.stop("chat")
        assert [chunk.type for chunk in decode_chunks(await reading)][-1] == "abort"
        assert not await other.stop("chat")

    runner.run(run())


KILLED_SERVER = """
import asyncio, os, signal, sys
sys.path.append(sys.argv[2])
from support.shared_streams import SharedStreams
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat import Streams, streams
from turnlog.model.stream import StepStart, TextDelta, TextStart, ToolInputStart

streams.LEASE_SECONDS = 0.3

async def waiting():
    yield StepStart()
    yield ToolInputStart(tool_call_id="c", tool_name="Bash")
    yield TextStart(id="t")
    yield TextDelta(id="t", delta="half")
    await asyncio.Event().wait()

async def run():
    print(await Streams(SharedStreams(sys.argv[1]).open()).start("chat", waiting(), ChunkWriter(7)), flush=True)
    await asyncio.sleep(0.9)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(run())
"""


def test_a_killed_server_leaves_a_valid_message(shared: SharedStreams, runner: asyncio.Runner) -> None:
    async def next_server(stream_id: str) -> tuple[bytes, bytes]:
        hub = Streams(shared.open())
        reading = await hub.resume("chat")
        assert reading is not None
        first = await read_all(reading)
        second = await read_all(await hub.subscribe(stream_id))
        assert await hub.resume("chat") is None
        return first, second

    server = subprocess.run(
        [sys.executable, "-c", KILLED_SERVER, shared.place, str(TESTS)], capture_output=True, text=True, check=False
    )
    assert server.returncode == -signal.SIGKILL, server.stderr
    stream_id = server.stdout.strip()
    first, second = runner.run(next_server(stream_id))
    assert first == second
    kinds = [chunk.type for chunk in decode_chunks(first)]
    assert kinds[-4:] == ["text-end", "tool-output-error", "finish-step", "finish"]
    assert told(first) == "half"


def test_readers_in_silence_are_sent_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SAVE_SECONDS", 0.01)

    async def run() -> None:
        hub = Streams(keep_alive=0.03)
        reading = await hub.subscribe(await hub.start("chat", waiting(), ChunkWriter(7)))
        assert b"half" in await anext(reading)
        assert await anext(reading) == KEEP_ALIVE
        await hub.close()

    asyncio.run(run())


def test_a_source_that_breaks_down_ends_the_stream() -> None:
    async def broken() -> AsyncIterator[StreamEvent]:
        yield TextStart(id="t")
        raise RuntimeError("secret")

    async def run() -> None:
        hub = Streams()
        data = await read_all(await hub.subscribe(await hub.start("chat", broken(), ChunkWriter(7))))
        assert [chunk.type for chunk in decode_chunks(data)] == ["start", "text-start", "text-end", "error", "finish"]
        assert b"secret" not in data

    asyncio.run(run())


def test_stores_read_from_the_row_that_holds_a_number(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        await store.create("s", "chat", "7.0.173", 10.0)
        rows = [StoredFrames(1, 3, b"a" * 30), StoredFrames(4, 1, b"b" * 10), StoredFrames(5, 2, b"c" * 20)]
        rows += [StoredFrames(7 + number, 1, b"\xff\x00") for number in range(9)]
        for row in rows:
            await store.append("s", [row], 11.0)
        assert await store.read("s", 0, 1_000) == rows
        assert await store.read("s", 2, 35) == rows[:1]
        assert await store.read("s", 3, 1) == rows[1:2]
        assert await store.read("s", 15, 1_000) == []
        assert await store.read("other", 0, 1_000) == []

    runner.run(run())


def test_a_chat_has_one_stream_at_a_time(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        assert await store.newest("chat") is None
        created = await asyncio.gather(*[store.create(name, "chat", "7.0.173", 10.0) for name in "abc"])
        (running,) = [name for name, mine in zip("abc", created, strict=True) if mine]
        assert await store.newest("chat") == running
        assert await store.create("other", "another chat", "6.0.0", 10.0)
        await store.finish(running)
        assert await store.newest("chat") is None
        assert await store.create("next", "chat", "7.0.173", 10.0)
        assert await store.newest("chat") == "next"
        assert await store.state(running) == StreamState("7.0.173", 10.0, finished=True, chat_id="chat")

    runner.run(run())


def test_streams_change_owners_at_the_end_of_their_lease(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        await store.create("s", "chat", "7.0.173", 10.0)
        assert not await store.append("s", [StoredFrames(1, 1, b"a")], 11.0)
        assert not await store.claim("s", 10.5, 20.0)
        assert await store.claim("s", 12.0, 20.25)
        assert await store.state("s") == StreamState("7.0.173", 20.25, finished=False, chat_id="chat")
        await store.ask_to_stop("s")
        assert await store.append("s", [], 20.5)
        await store.delete_finished(30.0)
        await store.finish("s")
        assert not await store.claim("s", 30.0, 40.0)
        await store.delete_finished(20.5)
        assert await store.state("s") is not None
        await store.delete_finished(20.75)
        assert await store.state("s") is None
        assert await store.read("s", 0, 1_000) == []

    runner.run(run())


def test_the_streams_of_a_deleted_chat_are_deleted(store: StreamStore, runner: asyncio.Runner) -> None:
    async def run() -> None:
        for stream_id, chat_id in (("old", "chat"), ("other", "other chat"), ("new", "chat")):
            assert await store.create(stream_id, chat_id, "7.0.173", 10.0)
            await store.append(stream_id, [StoredFrames(1, 1, b"a")], 11.0)
            if stream_id != "new":
                await store.finish(stream_id)
        await store.delete_chat("chat")
        for stream_id in ("old", "new"):
            assert await store.state(stream_id) is None
            assert await store.read(stream_id, 0, 1_000) == []
        assert await store.newest("chat") is None
        assert not await store.append("new", [StoredFrames(2, 1, b"b")], 12.0)
        assert await store.read("new", 0, 1_000) == []
        assert await store.read("other", 0, 1_000) == [StoredFrames(1, 1, b"a")]

    runner.run(run())


def test_a_file_of_streams_is_private_and_keeps_nothing_deleted(tmp_path: Path, runner: asyncio.Runner) -> None:
    path = tmp_path / "streams.db"

    async def run() -> None:
        store = SqliteStreamStore(path)
        await store.create("s", "chat", "7.0.173", 10.0)
        await store.append("s", [StoredFrames(1, 1, b"zebrasecret" * 1000)], 11.0)
        files = [path, *tmp_path.glob("streams.db-*")]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert any(b"zebrasecret" in file.read_bytes() for file in files)
        await store.delete_chat("chat")
        assert not any(b"zebrasecret" in file.read_bytes() for file in tmp_path.iterdir())
        store.close()

    runner.run(run())


def test_a_source_waits_for_a_store_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_UNSAVED_BYTES", 50_000)
    made = 0

    class Slow(MemoryStreamStore):
        async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
            await asyncio.sleep(0.2)
            return await super().append(stream_id, frames, lease_until)

    async def endless() -> AsyncIterator[StreamEvent]:
        nonlocal made
        yield StepStart()
        yield TextStart(id="t")
        while True:
            made += 1
            yield TextDelta(id="t", delta="word " * 20)
            await asyncio.sleep(0)

    async def run() -> None:
        hub = Streams(Slow())
        await hub.start("chat", endless(), ChunkWriter(7))
        await asyncio.sleep(0.2)
        before = made
        await asyncio.sleep(1.0)
        # Every try to save lets it go on for a while: 50 KB are some 350 deltas.
        assert 0 < before < 1000
        assert before < made < 10 * before
        await hub.close()

    asyncio.run(run())
