"""The chat backend of the docs on PostgreSQL: processes share its chats."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from support.chat_script import ANSWER, Script, drain, post, user
from support.next_turns import PROVIDERS, next_turns
from support.postgres_stores import PostgresDatabases
from support.profiles import examples
from turnlog.chat import Chat, NativeKeeper, SqliteStreamStore, Streams
from turnlog.errors import NotFoundError
from turnlog.model import Ownership
from turnlog.store import open_store

BACKEND = """
import asyncio, sys
from turnlog.chat import Chat, NativeKeeper, SqliteStreamStore, Streams

async def answer(request):
    for word in request.prompt.split():
        yield f"{word}! "
        await asyncio.sleep(0.3)

async def main():
    chat = Chat(answer, NativeKeeper(sys.argv[1]), Streams(SqliteStreamStore(sys.argv[2])))
    frames = await chat.post(sys.argv[3].encode())
    print("begun", flush=True)
    async for _ in frames:
        pass

asyncio.run(main())
"""


def test_an_answer_of_one_process_is_followed_and_continued_in_another(
    databases: PostgresDatabases, tmp_path: Path
) -> None:
    url, streams = databases.url(), tmp_path / "streams.db"
    question = post(message=user(text="one two three")).decode()
    process = subprocess.Popen(
        [sys.executable, "-c", BACKEND, url, str(streams), question], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as printed:
        assert printed.readline() == "begun\n"
        _follow_and_go_on(url, streams, process)


def _follow_and_go_on(url: str, streams: Path, process: subprocess.Popen[str]) -> None:

    async def follow() -> tuple[str, list[str]]:
        keeper = NativeKeeper(url)
        chat = Chat(Script(ANSWER), keeper, Streams(SqliteStreamStore(streams)))
        resumed = await chat.resume("chat")
        assert resumed is not None
        followed = b"".join([frame async for frame in resumed]).decode()
        await asyncio.get_running_loop().run_in_executor(None, process.wait)
        await drain(await chat.post(post(message=user("u2", "and?"))))
        messages = await chat.messages("chat")
        keeper.close()
        return followed, [message.role for message in messages]

    followed, roles = asyncio.run(follow())
    assert all(f"{word}! " in followed for word in ("one", "two", "three"))
    assert roles == ["user", "assistant", "user", "assistant"]
    with open_store(url) as store:
        assert store.session("turnlog:chat").counts.messages == 4


def test_chats_of_owners_are_listed_renamed_and_deleted(databases: PostgresDatabases) -> None:
    url = databases.url()

    async def run() -> None:
        one, other = NativeKeeper(url), NativeKeeper(url)
        await one.claim("a", Ownership(user="ann"))
        await one.claim("b", Ownership(user="bob"))
        assert [chat.id for chat in (await other.chats(Ownership(user="ann"))).chats] == ["a"]
        assert (await other.rename("a", "hats", Ownership(user="ann"))).title == "hats"
        try:
            await other.delete("a", Ownership(user="bob"))
            raise AssertionError("somebody else's chat was deleted")
        except NotFoundError:
            pass
        await other.delete("a", Ownership(user="ann"))
        assert [chat.id for chat in (await one.chats()).chats] == ["b"]
        one.close()
        other.close()

    asyncio.run(run())


async def say(chat: Chat, chat_id: str) -> None:
    await drain(await chat.post(post(chat_id)))


def test_two_keepers_that_save_at_once_lose_nothing(databases: PostgresDatabases) -> None:
    url = databases.url()

    async def run() -> None:
        keepers = [NativeKeeper(url), NativeKeeper(url)]
        chats = [Chat(Script(ANSWER), keeper) for keeper in keepers]
        await asyncio.gather(*(say(chat, f"{number}-{turn}") for number, chat in enumerate(chats) for turn in range(3)))
        for keeper in keepers:
            keeper.close()

    asyncio.run(run())
    with open_store(url) as store:
        assert store.status().messages == 12
        numbers = [entry.sequence for entry in store.changes(0)]
        assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_begins_with_the_one_before_it(
    databases: PostgresDatabases, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Some tools of these conversations fail.
    caplog.set_level(logging.CRITICAL)
    with databases.lent() as url, closing(NativeKeeper(url)) as keeper:
        found = asyncio.run(next_turns(provider, keeper, range(examples(20))))
    assert found.pairs > 0
    assert found.wrong == []
