"""Codex behind a chat, by its app server: recorded runs, threads that go on or fork, and what fails."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import UNSET

from support.agent_chats import (
    DATA,
    answered,
    answering_each_time,
    asked,
    check_chunks,
    kinds,
    recording,
    stopped_at_first_word,
    text_of,
)
from support.fake_agent import FakeAgent, printed
from turnlog.aisdk.parts import UIMessage
from turnlog.chat.runtimes import AgentRuntime, CodexServerCommand
from turnlog.chat.runtimes.codex import ItemTranslator
from turnlog.model.stream import (
    Abort,
    ReasoningDelta,
    RunFinish,
    StepFinish,
    StreamError,
    TextDelta,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutput,
)

SERVER = DATA / "codex" / "live"


def server(agent: FakeAgent, **options: Any) -> AgentRuntime:
    return AgentRuntime(CodexServerCommand(program=str(agent.program), **options), grace_seconds=0.5)


@pytest.mark.parametrize(("name", "approved", "status"), [("allow", True, "success"), ("deny", False, "denied")])
def test_the_app_server_sends_words_as_they_come_and_asks(
    agent: FakeAgent, name: str, approved: bool, status: str
) -> None:
    agent.record(*recording(name, SERVER))
    runs = answering_each_time(server(agent, approval_policy="untrusted", cwd=agent.folder), approved=approved)
    assert [kinds(events)[-1] for events in runs] == ["Pause", "Pause", "RunFinish"]
    first = runs[0]
    assert [event.delta for event in first if isinstance(event, ReasoningDelta)] == ["**I will wri", "te**"]
    assert [event.delta for event in first if isinstance(event, TextDelta)] == ["Let me write", "."]
    outputs = [event for events in runs for event in events if isinstance(event, ToolOutput)]
    assert [(event.tool_call_id, event.result.status) for event in outputs] == [
        ("call_w1", status),
        ("call_b1", status),
    ]
    usages = [event.usage for events in runs for event in events if isinstance(event, StepFinish)]
    assert usages[-1] is not None
    assert usages[-1].total == 120
    told_to = [each for each in agent.heard if "method" in each]
    assert [each["method"] for each in told_to] == ["initialize", "initialized", "thread/start", "turn/start"]
    assert told_to[2]["params"] == {
        "approvalPolicy": "untrusted",
        "sandbox": "workspace-write",
        "cwd": str(agent.folder),
    }
    assert told_to[3]["params"]["input"] == [{"type": "text", "text": "Do the thing"}]
    answers = [each for each in agent.heard if "result" in each]
    decision = "accept" if approved else "decline"
    assert answers == [{"id": number, "result": {"decision": decision}} for number in (0, 1)]
    assert agent.arguments == [["app-server"]]


def test_the_app_server_is_interrupted_by_a_request(agent: FakeAgent) -> None:
    agent.record(*recording("interrupt", SERVER))

    events = asyncio.run(stopped_at_first_word(server(agent)))
    assert events[-1] == Abort()
    check_chunks(events)
    assert agent.heard[-1]["method"] == "turn/interrupt"


def test_a_chat_goes_on_in_its_thread_or_in_a_fork_of_it(agent: FakeAgent) -> None:
    """Behind the thread's last turn it goes on; behind an earlier one in a thread that leaves it there."""
    runtime = server(agent)

    def ask(turn: str, before: UIMessage | None = None) -> UIMessage:
        lines = [
            {"id": 2, "result": {"thread": {"id": "thread"}}},
            {"method": "turn/started", "params": {"threadId": "thread", "turn": {"id": turn}}},
            {"method": "item/completed", "params": {"threadId": "thread", "item": words("hi")}},
            {"method": "turn/completed", "params": {"threadId": "thread", "turn": {"id": turn, "status": "completed"}}},
        ]
        agent.record(*["> "] * 3, *printed([json.dumps(line) for line in lines]), "= 0")
        return check_chunks(answered(runtime, asked("go", *([] if before is None else [before]))))

    first = ask("t1")
    ask("t2", first)
    ask("t3", first)
    opened = [each for each in agent.heard if each.get("id") == 2]
    assert [each["method"] for each in opened] == ["thread/start", "thread/resume", "thread/fork"]
    assert [each["params"].get("threadId") for each in opened] == [None, "thread", "thread"]
    assert opened[2]["params"]["lastTurnId"] == "t1"


def words(text: str) -> dict[str, Any]:
    return {"type": "agentMessage", "id": "m", "text": text}


FAILURES: list[tuple[list[dict[str, Any]], str]] = [
    ([{"id": 2, "error": {"code": -32600, "message": "no such thread"}}], "no such thread"),
    (
        [
            {"id": 2, "result": {"thread": {"id": "t"}}},
            {"method": "error", "params": {"threadId": "t", "error": {"message": "try"}, "willRetry": True}},
            {"method": "turn/completed", "params": {"threadId": "t", "turn": {"status": "failed"}}},
        ],
        "The turn was failed.",
    ),
    (
        [
            {"id": 2, "result": {"thread": {"id": "t"}}},
            {"method": "item/completed", "params": {"threadId": "another", "item": words("not ours")}},
            {"method": "item/started", "params": {"threadId": "t", "item": 7}},
            {"method": "nothing/known", "params": []},
            {"method": "error", "params": {"threadId": "t", "error": {"message": "no credit"}}},
            {"method": "turn/completed", "params": {"threadId": "t", "turn": {"status": "failed", "error": None}}},
        ],
        "no credit",
    ),
]


@pytest.mark.parametrize(("lines", "error"), FAILURES)
def test_what_fails_in_the_app_server_is_an_error(agent: FakeAgent, lines: list[Any], error: str) -> None:
    agent.record(*["> "] * 3, *printed([json.dumps(line) for line in lines]), "! time.sleep(0.1)")
    events = answered(server(agent), asked("go"))
    assert events[-1] == StreamError(error_text=error, kind="codex")
    assert text_of(events) == ""
    check_chunks(events)


def test_what_the_app_server_asks_and_nobody_here_can_answer_is_refused(agent: FakeAgent) -> None:
    lines = [
        {"id": 2, "result": {"thread": {"id": "t"}}},
        {"id": "q", "method": "item/tool/requestUserInput", "params": {"threadId": "t"}},
    ]
    done = {"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "completed"}}}
    agent.record(*["> "] * 3, *printed([json.dumps(line) for line in lines]), *["> "] * 2, f"< {json.dumps(done)}")
    assert isinstance(answered(server(agent), asked("go"))[-1], RunFinish)
    assert agent.heard[-1] == {"id": "q", "error": {"code": -32601, "message": "not supported"}}


@pytest.mark.parametrize(
    ("item", "name", "status"),
    [
        (
            {"type": "mcpToolCall", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": "completed"}
            | {"result": {"content": [{"type": "text", "text": "x"}]}},
            "mcp__s__t",
            "success",
        ),
        (
            {"type": "fileChange", "changes": [{"path": "a", "kind": {"type": "add"}}], "status": "failed"},
            "file_change",
            "error",
        ),
        (
            {"type": "commandExecution", "command": "ls", "exitCode": 3, "status": "failed"},
            "command_execution",
            "error",
        ),
        (
            {"type": "commandExecution", "command": "ls", "exitCode": "odd", "status": "completed"},
            "command_execution",
            "success",
        ),
        ({"type": "webSearch", "query": "q", "action": {"type": "search"}}, "web_search", "success"),
    ],
)
def test_every_kind_of_item_is_a_call(item: dict[str, Any], name: str, status: str) -> None:
    teller = ItemTranslator()
    told = [*teller.started({**item, "id": "c"}), *teller.completed({**item, "id": "c"})]
    assert kinds(told) == ["ToolInputStart", "ToolInputAvailable", "ToolOutput"]
    start, available, output = told
    assert isinstance(start, ToolInputStart)
    assert isinstance(available, ToolInputAvailable)
    assert isinstance(output, ToolOutput)
    assert (start.tool_name, output.tool_call_id, output.result.status) == (name, "c", status)
    assert available.input is not UNSET
