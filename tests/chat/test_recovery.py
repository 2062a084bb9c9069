"""A server that is killed has shown nothing that is lost: all of it is stored once its stream is ended."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

import pytest

from support.chat_script import ASKING, GOING_ON, Script, post, user
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from support.postgres_stores import PostgresDatabases
from support.shared_streams import SHARED, SharedStreams, each_shared_streams
from turnlog.aisdk import UIMessage, validate_ui_messages
from turnlog.aisdk.chunks import TextDeltaChunk
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.sse import decode_chunks
from turnlog.aisdk.writer import closing_chunks
from turnlog.chat import (
    Chat,
    MemoryKeeper,
    MemoryStreamStore,
    NativeKeeper,
    RunRequest,
    StoredFrames,
    Streams,
    endpoint,
    streams,
)
from turnlog.chat.conversion import to_canonical
from turnlog.chat.recovery import recovered_message
from turnlog.model.stream import RunFinish, StepStart, StreamEvent, TextDelta

TESTS = Path(__file__).parent.parent

SERVER = """
import asyncio, random, sys
sys.path.insert(0, sys.argv[5])
from msgspec import Raw
from support.shared_streams import SharedStreams
from turnlog.chat import Chat, NativeKeeper, Streams, streams
from turnlog.model import TextPart, ToolResult
from turnlog.model.stream import *

streams.LEASE_SECONDS = 1.0

async def answer(request):
    choose = random.Random(request.chat_id)
    for step in range(50):
        yield StepStart(model="m")
        for word in range(choose.randrange(1, 60)):
            yield TextDelta(id=f"t{step}", delta=f"{step}.{word} ")
            await asyncio.sleep(choose.choice((0, 0, 0.001, 0.01)))
        yield ToolInputAvailable(tool_call_id=f"c{step}", tool_name="Bash", input=Raw(b'{ "a": 1.0 }'))
        yield ToolOutput(tool_call_id=f"c{step}", result=ToolResult(id=f"r{step}", content=(TextPart(text="x"),)))

async def run():
    keeper, store = NativeKeeper(sys.argv[1]), SharedStreams(sys.argv[2]).open()
    chat = Chat(answer, keeper, Streams(store))
    async for data in await chat.post(sys.argv[4].encode(), version=int(sys.argv[3])):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

asyncio.run(run())
"""


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """A loop that is still there when what was opened on it is closed."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path, runner: asyncio.Runner) -> Iterator[SharedStreams]:
    yield from each_shared_streams(request.param, tmp_path, runner)


@pytest.fixture(scope="module")
def databases() -> Iterator[PostgresDatabases]:
    with postgres_server(binaries_of_the_wheel()) as server:
        yield PostgresDatabases(server)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "chats.db")
    databases: PostgresDatabases = request.getfixturevalue("databases")
    return databases.url()


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LEASE_SECONDS", 1.0)


def shown_by_a_killed_server(place: str, shared: SharedStreams, chat_id: str, size: int, version: int) -> bytes:
    """What a page got of an answer before its server was killed, at least so many bytes."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, place, shared.place, str(version), post(chat_id).decode(), str(TESTS)],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    shown = server.stdout.read(size)
    server.kill()
    shown += server.stdout.read()
    server.wait()
    server.stdout.close()
    return shown[: shown.rfind(b"\n\n") + 2]


def text_of(data: bytes) -> str:
    return "".join([chunk.delta for chunk in decode_chunks(data, strict=False) if isinstance(chunk, TextDeltaChunk)])


def text_in(messages: Sequence[UIMessage]) -> str:
    parts = [part for message in messages if message.role == "assistant" for part in to_plain(message)["parts"]]
    return "".join([part["text"] for part in parts if part["type"] == "text"])


def test_all_that_a_page_was_shown_is_stored(place: str, shared: SharedStreams, runner: asyncio.Runner) -> None:
    """Whatever a page does next ends the stream: it resumes, loads the messages, sends the next one, or stops."""
    choose = random.Random(place)
    version = 5 if shared.place.endswith("socket") else 7

    async def ended(chat_id: str, way: int) -> tuple[str, list[UIMessage]]:
        async def short(_: RunRequest) -> AsyncGenerator[StreamEvent, None]:
            yield StepStart(model="m")
            yield RunFinish(stop_reason="stop")

        keeper = NativeKeeper(place)
        chat = Chat(short, keeper, Streams(shared.open()))
        await asyncio.sleep(1.1 if way == 1 else 0)
        if way == 0:
            stream = await chat.resume(chat_id)
            assert stream is not None
            async for _ in stream:
                pass
        elif way == 2:
            async for _ in await chat.post(post(chat_id, message=user("u2")), version=version):
                pass
        elif way == 3:
            assert await chat.stop(chat_id)
        messages = await chat.messages(chat_id, version=version)
        again = await keeper.load(chat_id)
        await chat.close()
        keeper.close()
        return text_in(messages), again

    for way in range(4):
        chat_id = f"{version}.{way}"
        size = choose.choice((700, 3000, 12_000))
        shown = shown_by_a_killed_server(place, shared, chat_id, size, version)
        stored, messages = runner.run(ended(chat_id, way))
        assert stored.startswith(text_of(shown))
        validate_ui_messages(messages, version=7)
        assert [message.role for message in messages[:2]] == ["user", "assistant"]


def test_readers_get_what_is_stored(runner: asyncio.Runner) -> None:
    store = MemoryStreamStore()
    is_open = asyncio.Event()

    class Slow(MemoryStreamStore):
        async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
            if frames:
                await is_open.wait()
            return await store.append(stream_id, frames, lease_until)

    async def words(_: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        yield TextDelta(id="t", delta="word")
        await asyncio.Event().wait()

    async def run() -> None:
        chat = Chat(words, MemoryKeeper(), Streams(Slow()))
        reading = asyncio.ensure_future(anext(await chat.post(post())))
        await asyncio.sleep(0.1)
        assert not reading.done()
        is_open.set()
        assert b"start" in await reading
        await chat.close()

    runner.run(run())


@pytest.mark.parametrize("fails", [True, False])
def test_a_store_that_fails_or_hangs_holds_no_reader_up(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(streams, "MOST_SECONDS", 0.05)
    is_open = asyncio.Event()

    class Broken(MemoryStreamStore):
        async def append(self, stream_id: str, frames: Sequence[StoredFrames], lease_until: float) -> bool:
            if fails:
                raise OSError("no room")
            await is_open.wait()
            return await super().append(stream_id, frames, lease_until)

    async def words(_: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        for number in range(5):
            yield TextDelta(id="t", delta=f"{number} ")
            await asyncio.sleep(0.01)
        is_open.set()

    async def run() -> None:
        chat = Chat(words, MemoryKeeper(), Streams(Broken()))
        data = b"".join([piece async for piece in await chat.post(post())])
        assert text_of(data) == "0 1 2 3 4 "
        await chat.close()

    runner.run(run())


def test_a_continued_answer_is_recovered_whole(runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored when it went on stays, exactly as it was said, and what a page was shown since follows it."""
    monkeypatch.setattr(endpoint, "SAVE_SECONDS", 60.0)
    store, keeper = MemoryStreamStore(), MemoryKeeper()

    async def run() -> None:
        chat = Chat(Script(ASKING, (*GOING_ON[:-2], None)), keeper, Streams(store))
        async for _ in await chat.post(post()):
            pass
        asking = to_plain((await chat.messages("chat"))[1])
        for part in asking["parts"]:
            if "approval" in part:
                part.update(state="approval-responded", approval={**part["approval"], "approved": True})
        await chat.post(post(message=asking))
        await asyncio.sleep(0.2)
        stream_id = await store.newest("chat")
        assert stream_id is not None
        chunks = decode_chunks(b"".join([row.data for row in await store.read(stream_id, 0, 1 << 20)]))
        stored = await keeper.load("chat")
        assert text_in(stored) == "May I?"
        recovered = recovered_message(stored, [*chunks, *closing_chunks(chunks)], version=7)
        assert recovered is not None
        assert text_in([recovered]) == "May I?One file."
        first, second = [step for step in to_canonical(recovered) if step.role == "assistant"]
        assert (first.model, first.response_id) == ("model-1", "r1")
        assert [type(part).__name__ for part in first.parts] == ["TextPart", "ToolCallPart"]
        assert [type(part).__name__ for part in second.parts] == ["TextPart"]
        assert recovered_message([*stored[:-1], recovered], [*chunks, *closing_chunks(chunks)], version=7) is None
        await chat.close()

    runner.run(run())
