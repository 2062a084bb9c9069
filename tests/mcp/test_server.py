"""The official client calls the server, in the same process and over standard input and output."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent, TextResourceContents

from mcp import Client, StdioServerParameters
from support.browser_server import serving
from support.browser_visit import TOKEN
from support.plain_agent import Log
from support.plain_store import read_home
from turnlog.mcp.history import History, HistoryScope
from turnlog.mcp.server import make_server
from turnlog.model import Message, Origin, TextPart
from turnlog.server.sample import LOGS
from turnlog.store import open_store


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's home with the sample's session of Claude Code."""
    home = tmp_path_factory.mktemp("home")
    (home / ".claude").symlink_to(LOGS / "claude-code")
    return home


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "PATH": os.environ["PATH"]}


def ask_command(home: Path, folder: Path, question: Callable[[Client], Awaitable[Any]], *options: str) -> Any:
    """Start `turnlog mcp` as an agent does, in a folder, and ask it."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "turnlog", "mcp", *options], env=environment(home), cwd=folder
    )

    async def run() -> Any:
        async with Client(server) as client:
            return await question(client)

    return asyncio.run(run())


def test_an_agent_searches_and_reads(home: Path, tmp_path: Path) -> None:
    """It starts with an empty store, and reads the logs itself."""

    async def question(client: Client) -> tuple[list[str], str, str]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        listed = text_of(await client.call_tool("list_sessions", {}))
        session = re.search(r"claude-code:[\w-]+", listed)
        assert session is not None
        read = text_of(await client.call_tool("read_session", {"session": session[0]}))
        return tools, listed, read

    tools, listed, read = ask_command(home, tmp_path, question, "--all-projects")
    assert tools == ["search_history", "list_sessions", "read_session", "read_output", "file_history", "why", "usage"]
    assert "That is all." in listed
    assert read.startswith("Quoted from earlier sessions.")
    assert "The agent counted 2 files." in read


def test_in_another_folder_there_is_nothing_to_see(home: Path, tmp_path: Path) -> None:
    async def question(client: Client) -> str:
        return text_of(await client.call_tool("list_sessions", {}))

    assert ask_command(home, tmp_path, question) == f"There are no sessions in {tmp_path}."


def test_errors_are_answers_that_a_model_can_read(tmp_path: Path) -> None:
    async def run() -> list[CallToolResult]:
        with open_store(tmp_path / "turnlog.db", create=True) as store:
            history = History(store, tmp_path / "turnlog.db", HistoryScope())
            async with Client(make_server(history)) as client:
                results = [
                    await client.call_tool("read_session", {"session": "codex:none"}),
                    await client.call_tool("list_sessions", {"since": "the day before"}),
                    await client.call_tool("usage", {"by": "year"}),
                    await client.call_tool("read_session", {}),
                    await client.call_tool("usage", {"max_tokens": 5}),
                ]
            history.close()
            return results

    missing, no_time, no_unit, no_name, too_few = asyncio.run(run())
    assert missing.is_error
    assert "there is no session codex:none" in text_of(missing)
    assert no_time.is_error
    assert "'the day before' is not a time: write a day (2026-11-20)" in text_of(no_time)
    assert no_unit.is_error
    assert text_of(no_unit).startswith("usage cannot be called so: by: expected 'hour', 'day', 'week', ")
    assert "\n" not in text_of(no_unit)
    assert text_of(no_name) == "read_session cannot be called so: session: is missing"
    assert text_of(too_few).startswith("usage cannot be called so: max_tokens: expected ")


def test_a_session_is_a_resource(home: Path, tmp_path: Path) -> None:
    async def question(client: Client) -> str:
        listed = text_of(await client.call_tool("list_sessions", {}))
        session = re.search(r"claude-code:[\w-]+", listed)
        assert session is not None
        [content] = (await client.read_resource(f"turnlog://sessions/{session[0]}")).contents
        assert isinstance(content, TextResourceContents)
        return content.text

    assert "The agent counted 2 files." in ask_command(home, tmp_path, question, "--all-projects")


def test_what_agents_write_meanwhile_is_read(tmp_path: Path) -> None:
    refreshed: list[int] = []

    async def run() -> None:
        with open_store(tmp_path / "turnlog.db", create=True) as store:
            history = History(store, tmp_path / "turnlog.db", HistoryScope())
            async with Client(make_server(history, lambda: refreshed.append(1))) as client:
                await client.call_tool("list_sessions", {})
                await client.call_tool("list_sessions", {})
            history.close()

    asyncio.run(run())
    assert len(refreshed) == 1, "a second question within seconds reads nothing again"


def test_a_running_server_answers_over_http(home: Path, tmp_path: Path) -> None:
    """Behind its token, and only for the project that the address names."""
    with serving(home, tmp_path / "data") as address:

        async def listed(query: str, token: str = TOKEN) -> str:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as web,
                Client(streamable_http_client(f"{address}/api/mcp?{query}", http_client=web)) as client,
            ):
                return text_of(await client.call_tool("list_sessions", {}))

        everything = asyncio.run(listed("all_projects=true"))
        assert everything.count("claude-code:") == 3
        assert asyncio.run(listed("project=/home/dev/sample")) == everything
        assert asyncio.run(listed("project=/elsewhere")) == "There are no sessions in /elsewhere."

        def refused(query: str, token: str = TOKEN) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            return httpx2.post(f"{address}/api/mcp?{query}", headers=headers, timeout=60).status_code

        assert refused("all_projects=true", "a" * 32) == 401
        assert refused("") == 400
        assert refused("all_projects=perhaps") == 400
        assert refused("all_projects=true&project=sample") == 400


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "Pacific/Niue"])
def test_times_are_those_of_the_command_in_local_days(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    starts = {"today": today, "yesterday": today - timedelta(hours=1), "a month ago": today - timedelta(days=35)}

    def named(result: CallToolResult) -> list[str] | None:
        found = [name for number, name in enumerate(starts) if f"plain:s{number}" in text_of(result)]
        return None if result.is_error else found

    async def run() -> None:
        for number, (name, at) in enumerate(starts.items()):
            parts = (TextPart(text=f"walrus {name} it was"),)
            message = Message(id=f"m{number}", role="user", origin=Origin.PROMPT, parts=parts, created_at=at)
            Log(tmp_path, f"s{number}").message(message)
        read_home(tmp_path / "turnlog.db", tmp_path)
        with open_store(tmp_path / "turnlog.db") as store:
            history = History(store, tmp_path / "turnlog.db", HistoryScope())
            async with Client(make_server(history)) as client:

                async def asked(**arguments: str) -> list[str] | None:
                    return named(await client.call_tool("list_sessions", arguments))

                everything = list(starts)
                for words in ("yesterday", "Yesterday", "2d", f"{today - timedelta(hours=1):%Y-%m-%d}"):
                    assert await asked(since=words) == ["today", "yesterday"], words
                assert await asked(since="today") == ["today"]
                for words in ("last-month", "last month", "last_month", "2000"):
                    assert "yesterday" in (await asked(since=words) or []), words
                assert await asked(until="today") == everything
                assert await asked(until="yesterday") == everything[1:]
                assert await asked(until=f"{today:%Y%m%d}") == everything
                assert await asked(since="today", until="yesterday") is None
                for tool in ("list_sessions", "search_history", "usage"):
                    query = {"query": "x"} if tool == "search_history" else {}
                    for wrong in ({"since": "soon"}, {"until": "2026-13"}, {"since": ""}, {"before": "today"}):
                        assert (await client.call_tool(tool, {**query, **wrong})).is_error, (tool, wrong)
            history.close()

    try:
        asyncio.run(run())
    finally:
        monkeypatch.undo()
        time.tzset()
