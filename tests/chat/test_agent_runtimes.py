"""Chats that an agent's process answers: recorded runs of the real programs, and programs that misbehave."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_chats import (
    DATA,
    SESSION,
    answer,
    answered,
    asked,
    check_chunks,
    claude,
    claude_prints,
    codex_prints,
    kinds,
    recording,
    responded,
    stopped_at_first_word,
    text_of,
    told,
)
from chat_script import drain
from fake_agent import FakeAgent
from turnlog.aisdk.building import to_plain
from turnlog.aisdk.parts import (
    DynamicToolUIPart,
    FileUIPart,
    TextUIPart,
    ToolApproval,
    ToolUIPart,
    UIMessage,
)
from turnlog.chat import Chat, MemoryKeeper, NativeKeeper, RunRequest
from turnlog.chat.runtimes import AgentRuntime, ClaudeCodeCommand, CodexCommand
from turnlog.chat.runtimes.command import RECORD_KEY, SESSION_KEY
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model.stream import (
    Abort,
    ApprovalRequest,
    Pause,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamError,
    StreamEvent,
    TextStart,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)
from turnlog.store import open_store

# -- Claude Code


def test_claude_code_streams_its_answer_piece_by_piece(agent: FakeAgent) -> None:
    """R-S39: texts, thoughts and arguments as they are made, results as they come."""
    agent.record(*claude_prints("basic"))
    events = answered(claude(agent), asked("Give me a tour"))
    assert events[0] == RunStart(metadata={SESSION_KEY: f"claude-code:{SESSION}"})
    assert kinds(events)[1:9] == [
        "StepStart",
        "ReasoningStart",
        "ReasoningDelta",
        "ReasoningEnd",
        "TextStart",
        "TextDelta",
        "TextEnd",
        "ToolInputStart",
    ]
    assert isinstance(events[-1], RunFinish)
    assert events[-1].stop_reason == "stop"
    steps = [event for event in events if isinstance(event, StepFinish)]
    assert [step.stop_reason for step in steps] == ["tool_use"] * (len(steps) - 1) + ["stop"]
    assert all(step.usage is not None and step.usage.total for step in steps)
    inputs = {event.tool_call_id for event in events if isinstance(event, ToolInputAvailable)}
    outputs = [event for event in events if isinstance(event, ToolOutput)]
    assert {event.tool_call_id for event in outputs} == inputs
    assert {event.result.status for event in outputs} == {"success", "error"}
    assert any(isinstance(event, ToolInputDelta) for event in events)
    assert len(check_chunks(events).parts) > 20
    assert agent.arguments[0][:6] == [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
    ]


@pytest.mark.parametrize("name", ["compact", "denied", "interrupt", "retry", "subagent-sync"])
def test_streams_without_pieces_are_told_whole(agent: FakeAgent, name: str) -> None:
    agent.record(*claude_prints(name))
    events = answered(claude(agent), asked("go"))
    assert isinstance(events[0], RunStart)
    assert isinstance(events[-1], RunFinish | StreamError)
    assert any(isinstance(event, StepStart) for event in events) or name == "compact"
    starts = [event.id for event in events if isinstance(event, TextStart)]
    assert len(starts) == len(set(starts))
    check_chunks(events)


def test_a_denial_of_the_agent_itself_is_no_error(agent: FakeAgent) -> None:
    agent.record(*claude_prints("denied"))
    events = answered(claude(agent), asked("go"))
    assert [event.result.status for event in events if isinstance(event, ToolOutput)] == ["denied"]


@pytest.mark.parametrize(("name", "approved", "status"), [("allow", True, "success"), ("deny", False, "denied")])
def test_claude_code_asks_the_page_for_permission(agent: FakeAgent, name: str, approved: bool, status: str) -> None:
    """The run pauses and the process waits; the answer goes on in the same message."""
    agent.record(*recording(name))

    async def run() -> list[list[StreamEvent]]:
        runtime = claude(agent)
        runs = [await told(runtime, asked("Do the thing"))]
        message: UIMessage | None = None
        while isinstance(runs[-1][-1], Pause):
            message = responded(runs[-1], approved=approved, before=message)
            runs.append(await told(runtime, asked("Do the thing", continued=message), resume=True))
        await runtime.close()
        return runs

    runs = asyncio.run(run())
    assert [kinds(events)[-1] for events in runs] == ["Pause", "Pause", "RunFinish"]
    assert [[event.tool_call_id for event in events if isinstance(event, ApprovalRequest)] for events in runs] == [
        ["toolu_w1"],
        ["toolu_b1"],
        [],
    ]
    outputs = [event for events in runs for event in events if isinstance(event, ToolOutput)]
    assert [(event.tool_call_id, event.result.status) for event in outputs] == [
        ("toolu_w1", status),
        ("toolu_b1", status),
    ]
    said = [each["response"]["response"]["behavior"] for each in agent.heard if each["type"] == "control_response"]
    assert said == [name, name]
    if approved:
        assert agent.heard[1]["response"]["response"]["updatedInput"]["content"] == "hello\n"
    assert text_of(runs[-1]) == "Done."


def test_an_input_with_half_a_character_goes_back_as_it_came() -> None:
    stream = ClaudeCodeCommand().open_stream({}, asked("go"), None)
    stream.to_write()
    permission = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "c", "input": {"command": "\ud83d"}}
    line = {"type": "control_request", "request_id": "p", "request": permission}
    (question,) = stream.feed(json.dumps(line).encode())
    assert isinstance(question, ApprovalRequest)
    assert question.reason == 'Bash {"command":"\ufffd"}'
    approval = ToolApproval(id="p", approved=True)
    part = DynamicToolUIPart(
        tool_call_id="c", tool_name="Bash", state="approval-responded", input={}, approval=approval
    )
    stream.answer(UIMessage(id="m", role="assistant", parts=(part,)))
    assert json.loads(stream.to_write())["response"]["response"]["updatedInput"] == {"command": "\ud83d"}


def test_an_answer_that_nobody_waits_for_is_a_conflict(agent: FakeAgent) -> None:
    agent.record(*recording("allow"))

    async def run() -> None:
        runtime = claude(agent, wait_seconds=0.05)
        paused = await told(runtime, asked("Do the thing"))
        message = responded(paused, approved=True)
        await asyncio.sleep(0.3)
        with pytest.raises(ConflictError, match="no agent waits"):
            await runtime.resume(asked("Do the thing", continued=message))
        await runtime.close()

    asyncio.run(run())


def test_a_new_prompt_takes_the_place_of_an_agent_that_waits(agent: FakeAgent) -> None:
    agent.record(*recording("allow"))

    async def run() -> list[StreamEvent]:
        runtime = claude(agent)
        await told(runtime, asked("Do the thing"))
        agent.record(*claude_prints("denied"))
        events = await told(runtime, asked("Something else"))
        await runtime.close()
        return events

    assert isinstance(asyncio.run(run())[-1], RunFinish)
    assert len(agent.arguments) == 2


def test_stopping_interrupts_claude_code_by_its_own_request(agent: FakeAgent) -> None:
    agent.record(*recording("interrupt"))

    events = asyncio.run(stopped_at_first_word(claude(agent)))
    assert events[-1] == Abort()
    assert text_of(events).startswith("One two")
    assert agent.heard[-1]["request"] == {"subtype": "interrupt"}
    check_chunks(events)


def test_a_chat_goes_on_with_its_session(agent: FakeAgent) -> None:
    agent.record(*claude_prints("denied"))
    runtime = claude(agent)

    def said(session: str) -> UIMessage:
        return UIMessage(id="a", role="assistant", parts=(), metadata={SESSION_KEY: session})

    answered(runtime, asked("again", said("claude-code:abc-1")))
    answered(runtime, asked("again", said("codex:abc-1")))
    answered(runtime, asked("again", said("claude-code:--dangerously-skip-permissions")))
    first, second, third = agent.arguments
    assert first[first.index("--resume") + 1] == "abc-1"
    for arguments in (second, third):
        assert "--resume" not in arguments
        assert "--session-id" in arguments


def test_an_answer_that_is_asked_for_again_is_made_anew(agent: FakeAgent) -> None:
    """Claude Code goes back to the answer before it; where that is the session's last, it simply goes on."""
    runtime = claude(agent)

    def ask(text: str, record: str, before: UIMessage | None = None, *, by: AgentRuntime = runtime) -> UIMessage:
        agent.record("> ", INIT, spoken("hi", record), DONE, "= 0")
        return check_chunks(answered(by, asked(text, *([] if before is None else [before]))))

    first = ask("one", "r1")
    metadata: Any = first.metadata
    assert (metadata[SESSION_KEY], metadata[RECORD_KEY]) == ("claude-code:s", "r1")
    second = ask("two", "r2", first)
    ask("two again", "r3", first)
    ask("after a restart", "r4", second, by=claude(agent))
    ask("after a stop", "r5", msgspec.structs.replace(second, metadata={SESSION_KEY: "claude-code:s"}))
    goes_on, goes_back = ["--resume", "s"], ["--resume", "s", "--resume-session-at"]
    back = [call[call.index("default") + 1 :] for call in agent.arguments]
    assert back[1:] == [goes_on, [*goes_back, "r1"], [*goes_back, "r2"], goes_on]
    assert back[0][0] == "--session-id"


def test_options_and_files_are_given_to_claude_code(agent: FakeAgent, tmp_path: Path) -> None:
    agent.record("> ", f"! open({str(tmp_path / 'seen')!r}, 'w').write(os.getcwd() + ' ' + repr(dict(os.environ)))")
    command = ClaudeCodeCommand(
        program=str(agent.program),
        model="opus",
        system_prompt="Be short; $(touch x)",
        cwd=tmp_path,
        environment={"ONLY": "this"},
        permission_mode="plan",
        allowed_tools=("Bash(git log:*)", "Read"),
    )
    picture = FileUIPart(media_type="image/png", url="data:image/png;base64,QUJD")
    elsewhere = FileUIPart(media_type="image/png", url="https://example.org/x.png")
    message = UIMessage(id="u", role="user", parts=(TextUIPart(text="look"), picture, elsewhere))
    events = answered(AgentRuntime(command), RunRequest(chat_id="chat", messages=(message,)))
    assert isinstance(events[-1], StreamError)
    (arguments,) = agent.arguments
    pairs = list(pairwise(arguments))
    for pair in [
        ("--model", "opus"),
        ("--append-system-prompt", "Be short; $(touch x)"),
        ("--permission-mode", "plan"),
    ]:
        assert pair in pairs
    assert arguments[-3:] == ["--allowedTools", "Bash(git log:*)", "Read"]
    assert agent.heard[0]["message"]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
    ]
    folder, _, environment = (tmp_path / "seen").read_text().partition(" ")
    assert folder == str(tmp_path)
    assert "'ONLY': 'this'" in environment
    assert "PATH" not in environment


# -- Codex


def codex(agent: FakeAgent, **options: Any) -> AgentRuntime:
    return AgentRuntime(CodexCommand(program=str(agent.program), **options), grace_seconds=1.0)


@pytest.mark.parametrize("name", ["basic", "codemode", "mcp", "openai", "subagent-gpt-5.5"])
def test_codex_tells_item_by_item(agent: FakeAgent, name: str) -> None:
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


# -- programs that misbehave


INIT = '< {"type":"system","subtype":"init","session_id":"s"}'
HUGE = "x" * 3_000_000


def spoken(text: str, record: str = "r") -> str:
    message = {"id": "m", "content": [{"type": "text", "text": text}]}
    return "< " + json.dumps({"type": "assistant", "session_id": "s", "uuid": record, "message": message})


DONE = '< {"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"x"}'


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
