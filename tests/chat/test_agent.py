"""Chats that an agent's process answers, whichever it is: programs that misbehave, runs, a page in front."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_chats import (
    DONE,
    INIT,
    SESSION,
    answer,
    answered,
    asked,
    check_chunks,
    claude,
    claude_prints,
    recording,
    spoken,
    text_of,
)
from support.chat_script import drain
from support.fake_agent import FakeAgent
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.parts import DynamicToolUIPart, TextUIPart, ToolUIPart, UIMessage
from turnlog.chat import Chat, MemoryKeeper, NativeKeeper
from turnlog.chat.runtimes import AgentRuntime, ClaudeCodeCommand
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model.stream import RunFinish, RunStart, StreamError
from turnlog.store import open_store

HUGE = "x" * 3_000_000


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param([INIT, "< not JSON", '< {"type":', "< [1]", "< ", '< "x"', spoken("hi"), DONE], id="garbage"),
        pytest.param([INIT, "! os.write(1, b'\\xff\\xfe\\n')", spoken("hi"), DONE], id="bad bytes"),
        pytest.param([INIT, spoken("hi"), f"! os.write(1, {DONE[2:].encode()!r})"], id="no newline at the end"),
        pytest.param(
            [INIT, *(f"! os.write(1, {bytes([each])!r})" for each in spoken("hi")[2:].encode()), "< ", DONE], id="slow"
        ),
        pytest.param(
            [
                INIT,
                '< {"type":"stream_event","session_id":"s","event":{"type":"content_block_delta","index":7}}',
                '< {"type":"stream_event","session_id":"s"}',
                spoken("hi"),
                DONE,
            ],
            id="pieces of nothing",
        ),
    ],
)
def test_what_is_no_event_is_left_out(agent: FakeAgent, recording: list[str]) -> None:
    agent.record("> ", *recording)
    events = answered(claude(agent), asked("go"))
    assert text_of(events) == "hi"
    assert isinstance(events[-1], RunFinish)
    check_chunks(events)


def test_a_huge_line_is_read_whole(agent: FakeAgent) -> None:
    agent.record("> ", INIT, spoken(HUGE), DONE)
    assert len(text_of(answered(claude(agent), asked("go")))) == len(HUGE)


@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (["= 0"], "ended with exit code 0"),
        ([INIT, spoken("half"), "! sys.stderr.write('secret reason')", "= 3"], "ended with exit code 3"),
        ([INIT, "! os.kill(os.getpid(), 9)"], "ended with exit code -9"),
        ([INIT, "! os.close(1); os.close(2); time.sleep(60)"], "closed its output"),
    ],
)
def test_a_process_that_dies_is_an_error_and_the_stream_is_closed(
    agent: FakeAgent, recording: list[str], words: str
) -> None:
    agent.record("> ", *recording)
    events = answered(claude(agent, grace_seconds=0.2), asked("go"))
    assert isinstance(events[-1], StreamError)
    assert events[-1].error_text == f"The agent {words} before it had answered."
    check_chunks(events)


def test_a_failed_run_says_what_the_agent_says(agent: FakeAgent) -> None:
    failed = '{"type":"result","subtype":"success","is_error":true,"session_id":"s","result":"API Error: 529"}'
    agent.record("> ", INIT, f"< {failed}", "= 1")
    events = answered(claude(agent), asked("go"))
    assert isinstance(events[-1], StreamError)
    assert events[-1].error_text == "API Error: 529"


def test_a_program_that_is_not_there_is_an_error() -> None:
    runtime = AgentRuntime(ClaudeCodeCommand(program="/no/such/program"))
    with pytest.raises(TurnlogError, match="/no/such/program cannot be started: No such file or directory"):
        answered(runtime, asked("go"))


def test_a_second_prompt_meanwhile_is_a_conflict(agent: FakeAgent) -> None:
    agent.record("> ", INIT, "! time.sleep(60)")

    async def run() -> None:
        runtime = claude(agent, grace_seconds=0.1)
        async with runtime.subscribe("chat") as listening:
            await runtime.send(asked("go"))
            await anext(listening)
            with pytest.raises(ConflictError):
                await runtime.send(asked("go"))
            await runtime.abort("chat")

    asyncio.run(run())


# -- runs


def test_every_run_is_a_row(agent: FakeAgent, tmp_path: Path) -> None:
    """R-S35."""
    path = tmp_path / "turnlog.db"
    command = ClaudeCodeCommand(program=str(agent.program), model="opus", system_prompt="Be short.", cwd=tmp_path)
    agent.record(*claude_prints("basic"))
    events = answered(AgentRuntime(command, store_path=path), asked("Give me a tour"))
    agent.record("> ", INIT, "! sys.stderr.write('no key')", "= 3")
    answered(AgentRuntime(command, store_path=path), asked("and now"))
    with open_store(path) as store:
        failed, run = store.runs().items
        assert isinstance(events[0], RunStart)
        assert events[0].metadata["run"] == run.id
        assert (run.origin, run.status, run.agent, run.exit_code) == ("runtime", "completed", "claude-code", 0)
        assert (run.prompt, run.system_prompt, run.cwd) == ("Give me a tour", "Be short.", str(tmp_path))
        assert run.command[0] == str(agent.program)
        assert run.session_id == f"claude-code:{SESSION}"
        assert run.log_problem is not None
        assert run.log_problem.startswith("no log of")
        assert run.tool_calls == 9
        assert store.session(f"claude-code:{SESSION}").counts.tool_calls == 9
        assert (failed.status, failed.exit_code, failed.error) == ("failed", 3, "no key")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_was_stopped_is_cancelled(agent: FakeAgent, tmp_path: Path) -> None:
    agent.record("> ", INIT, "! time.sleep(60)")
    path = tmp_path / "turnlog.db"

    async def run() -> None:
        runtime = claude(agent, grace_seconds=0.1, store_path=path)
        async with runtime.subscribe("chat") as listening:
            await runtime.send(asked("go"))
            await anext(listening)
            with open_store(path) as store:
                assert [each.status for each in store.runs().items] == ["running"]
            await runtime.abort("chat")
        await runtime.close()

    asyncio.run(run())
    with open_store(path) as store:
        assert [each.status for each in store.runs().items] == ["cancelled"]


# -- behind a page


def page(**newest: Any) -> bytes:
    """What a page posts that sends its newest message alone."""
    return json.dumps({"id": "chat", "message": newest}).encode()


def prompt(id: str, text: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def test_a_page_talks_with_an_agent_through_the_backend(agent: FakeAgent, tmp_path: Path) -> None:
    """R-S35: asked, permitted twice, asked again in the same session; every run is a row, the chat is kept."""
    agent.record(*recording("allow"))
    path = tmp_path / "turnlog.db"

    async def run() -> tuple[bytes, UIMessage]:
        runtime, keeper = claude(agent, store_path=path), NativeKeeper(path)
        chat = Chat(runtime, keeper)
        told = await drain(await chat.post(page(**prompt("u", "Do the thing"))))
        for _ in range(2):
            shown = (await chat.messages("chat"))[-1]
            permitted = msgspec.structs.replace(shown, parts=tuple(answer(each, approved=True) for each in shown.parts))
            told += await drain(await chat.post(page(**to_plain(permitted))))
        whole = (await chat.messages("chat"))[-1]
        agent.record(*claude_prints("denied"))
        await drain(await chat.post(page(**prompt("u2", "And now?"))))
        await chat.close()
        await runtime.close()
        keeper.close()
        return told, whole

    told, whole = asyncio.run(run())
    assert told.count(b"tool-approval-request") == 2
    assert b'"errorText"' not in told
    metadata: Any = whole.metadata
    assert (metadata["usage"]["input"], metadata["usage"]["output"]) == (170, 33)
    assert [step["stopReason"] for step in metadata["steps"]] == ["tool_use", "tool_use", "stop"]
    assert not any("usage" in step for step in metadata["steps"])
    states = [part.state for part in whole.parts if isinstance(part, ToolUIPart | DynamicToolUIPart)]
    assert states == ["output-available", "output-available"]
    assert [part.text for part in whole.parts if isinstance(part, TextUIPart)] == ["Let me write.", "Done."]
    first, second = agent.arguments
    assert first[first.index("--session-id") + 1]
    assert second[second.index("--resume") + 1] == SESSION
    with open_store(path) as store:
        assert [(run.status, run.session_id) for run in store.runs().items] == [
            ("completed", f"claude-code:{SESSION}"),
            ("completed", f"claude-code:{SESSION}"),
        ]
        # What the agent's log counts, the chat does not count again.
        assert store.session("turnlog:chat").native
        assert store.session("turnlog:chat").usage.usage.total is None
        first_run = store.runs().items[1]
        assert first_run.usage is not None
        assert first_run.usage.total == 203


def test_a_page_that_stops_ends_the_agent(agent: FakeAgent, tmp_path: Path) -> None:
    agent.record(*recording("interrupt"))
    path = tmp_path / "turnlog.db"

    async def run() -> bytes:
        runtime = claude(agent, store_path=path)
        chat = Chat(runtime, MemoryKeeper())
        stream = await chat.post(page(**prompt("u", "Do the thing")))
        told = b""
        async for data in stream:
            told += data
            if b"One two" in told:
                break
        assert await chat.stop("chat")
        await chat.close()
        await runtime.close()
        return told

    asyncio.run(run())
    assert agent.heard[-1]["request"] == {"subtype": "interrupt"}
    with open_store(path) as store:
        assert [run.status for run in store.runs().items] == ["cancelled"]
