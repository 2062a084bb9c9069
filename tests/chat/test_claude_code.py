"""Chats that Claude Code answers: recorded runs of the real program."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_chats import (
    DONE,
    INIT,
    SESSION,
    answered,
    answering_each_time,
    asked,
    check_chunks,
    claude,
    claude_prints,
    kinds,
    recording,
    responded,
    spoken,
    stopped_at_first_word,
    text_of,
    told,
)
from support.fake_agent import FakeAgent
from turnlog.aisdk.parts import DynamicToolUIPart, FileUIPart, TextUIPart, ToolApproval, UIMessage
from turnlog.chat import RunRequest
from turnlog.chat.runtimes import AgentRuntime, ClaudeCodeCommand
from turnlog.chat.runtimes.command import RECORD_KEY, SESSION_KEY
from turnlog.errors import ConflictError
from turnlog.model.stream import (
    Abort,
    ApprovalRequest,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamError,
    StreamEvent,
    TextStart,
    ToolInputAvailable,
    ToolInputDelta,
    ToolOutput,
)


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
def test_streams_without_pieces_are_read_whole(agent: FakeAgent, name: str) -> None:
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
    runs = answering_each_time(claude(agent), approved=approved)
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
