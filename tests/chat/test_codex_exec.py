"""Chats that Codex answers by `codex exec`: recorded runs of the real program."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.agent_chats import DATA, answered, asked, check_chunks, codex_prints
from support.fake_agent import FakeAgent
from turnlog.aisdk.parts import UIMessage
from turnlog.chat.runtimes import AgentRuntime, CodexCommand
from turnlog.chat.runtimes.command import SESSION_KEY
from turnlog.model.stream import Abort, RunFinish, RunStart, StreamError, StreamEvent, ToolInputStart, ToolOutput


def codex(agent: FakeAgent, **options: Any) -> AgentRuntime:
    return AgentRuntime(CodexCommand(program=str(agent.program), **options), grace_seconds=1.0)


@pytest.mark.parametrize("name", ["basic", "codemode", "mcp", "openai", "subagent-gpt-5.5"])
def test_codex_prints_item_by_item(agent: FakeAgent, name: str) -> None:
    agent.record(*codex_prints(name))
    events = answered(codex(agent), asked("Give me a tour"))
    first = events[0]
    assert isinstance(first, RunStart)
    assert first.metadata[SESSION_KEY].startswith("codex:")
    assert isinstance(events[-1], RunFinish)
    calls = [event.tool_call_id for event in events if isinstance(event, ToolInputStart)]
    final = [event.tool_call_id for event in events if isinstance(event, ToolOutput) and not event.result.preliminary]
    assert len(set(calls)) == len(calls)
    assert set(final) <= set(calls)
    assert len(calls) - len(set(final)) == unanswered(name)
    check_chunks(events)


def unanswered(name: str) -> int:
    """How many items began and never ended."""
    lines = (DATA / "codex" / "streams" / f"{name}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    begun, ended = (
        {record["item"]["id"] for record in records if record["type"] == kind and record["item"]["type"] != "todo_list"}
        for kind in ("item.started", "item.completed")
    )
    return len(begun - ended)


def test_codex_that_fails_says_why(agent: FakeAgent) -> None:
    agent.record(*codex_prints("error"))
    events = answered(codex(agent), asked("go"))
    assert isinstance(events[-1], StreamError)
    assert "mock bad request" in events[-1].error_text
    check_chunks(events)


def test_codex_is_given_its_options_and_its_prompt_by_its_input(agent: FakeAgent) -> None:
    agent.record("! heard.write(sys.stdin.buffer.read())")
    runtime = codex(agent, model="gpt-5.5", system_prompt='Be "short".', sandbox="read-only")
    session = UIMessage(id="a", role="assistant", parts=(), metadata={SESSION_KEY: "codex:0199-a"})
    answered(runtime, asked("--help is no option", session))
    assert agent.arguments == [
        [
            *("exec", "resume", "--json", "--skip-git-repo-check", "-c", 'sandbox_mode="read-only"', "-m", "gpt-5.5"),
            *("-c", 'developer_instructions="Be \\"short\\"."', "0199-a", "-"),
        ]
    ]
    assert (agent.folder / "heard.jsonl").read_text() == "--help is no option"


def test_stopping_codex_ends_all_that_it_started(agent: FakeAgent, tmp_path: Path) -> None:
    """By a signal to its process group; a program that does not listen is killed."""
    mark = tmp_path / "pid"
    agent.record(
        "! signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        f"! import subprocess; open({str(mark)!r}, 'w').write(str(subprocess.Popen(['sleep', '60']).pid))",
        '< {"type":"thread.started","thread_id":"t"}',
        "! time.sleep(60)",
    )

    async def run() -> list[StreamEvent]:
        runtime = AgentRuntime(CodexCommand(program=str(agent.program)), grace_seconds=0.1)
        async with runtime.subscribe("chat") as listening:
            await runtime.send(asked("go"))
            events = [await anext(listening)]
            await asyncio.gather(runtime.abort("chat"), runtime.abort("another"))
            return [*events, *[event async for event in listening]]

    events = asyncio.run(run())
    assert [type(event) for event in events] == [RunStart, Abort]
    deadline = time.monotonic() + 60
    while is_running(int(mark.read_text())):
        assert time.monotonic() < deadline


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
