"""The end of a session as the store knows it, and that it is looked at again when the session has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.agent_cases import DATA
from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.model import (
    ErrorEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)
from turnlog.model.codec import to_json
from turnlog.runs.states import session_states
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.session_state import SessionState
from turnlog.store.values import Run
from turnlog.sync.syncer import sync

S = "plain:s"


class ScriptedSession:
    """A session that is written line by line, and what it is doing a minute after its last record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.log = Log(self.home, "s")
        self.minute = 0.0
        self.store: Store | None = None

    def prompt(self, id: str, origin: Origin = Origin.PROMPT, **place: Any) -> None:
        self.minute += 1
        text = (TextPart(text=id),)
        self.log.message(Message(id=id, role="user", origin=origin, created_at=at(self.minute), parts=text), **place)

    def answer(self, id: str, *parts: Any, **fields: Any) -> None:
        self.minute += 1
        self.log.message(Message(id=id, role="assistant", created_at=at(self.minute), parts=parts, **fields))

    def state(self, minutes: float = 1.0) -> SessionState:
        read_home(self.folder / "turnlog.db", self.home)
        if self.store is None:
            self.store = open_store(self.folder / "turnlog.db")
        return session_states(self.store, [S], at(self.minute) + timedelta(minutes=minutes))[S]


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[ScriptedSession]:
    found = ScriptedSession(tmp_path)
    yield found
    if found.store is not None:
        found.store.close()


def call(id: str, kind: ToolKind = ToolKind.EXECUTE, state: ToolState = ToolState.INPUT_AVAILABLE, **input: Any) -> Any:
    return ToolCallPart(tool_call_id=id, tool_name="Tool", kind=kind, input=to_json(input), state=state)


def test_a_turn_from_its_prompt_to_its_end(scripted: ScriptedSession) -> None:
    """Each record changes what the session is doing, and nothing that was found before stands in the way."""
    scripted.prompt("m1")
    assert scripted.state().evidence == "open-turn"
    scripted.answer("m2", call("c1", command="make shop"), stop_reason="tool_use")
    state = scripted.state()
    assert (state.state, state.evidence) == ("running", "open-call")
    assert state.doing is not None
    assert (state.doing.tool_call_id, state.doing.summary, state.doing.started_at) == ("c1", "make shop", at(2))
    scripted.log.result("c1", ToolResult(id="c1.0", content=(TextPart(text="done"),)), message_id="m2")
    assert scripted.state().evidence == "open-turn"
    scripted.answer("m3", TextPart(text="Made."), stop_reason="stop")
    state = scripted.state()
    assert (state.state, state.evidence, state.detail, state.since) == ("done", "answer", "stop", at(3))


def test_an_answer_without_a_word_is_none_yet(scripted: ScriptedSession) -> None:
    """Gemini CLI writes a message before its calls, without a reason why the model stopped."""
    scripted.prompt("m1")
    scripted.answer("m2", ReasoningPart(text="A command will tell."))
    assert (scripted.state().state, scripted.state().evidence) == ("running", "open-turn")
    scripted.answer("m3", ReasoningPart(text="Nothing to say."), stop_reason="stop")
    assert scripted.state().evidence == "answer"
    scripted.answer("m4", TextPart(text="I look."))
    assert scripted.state().evidence == "answer"


def test_a_refused_request_ends_a_turn_and_other_notes_do_not(scripted: ScriptedSession) -> None:
    scripted.prompt("u1")
    scripted.answer("a1", TextPart(text="Wait a moment"), origin=Origin.HARNESS)
    assert scripted.state().evidence == "open-turn"
    scripted.answer("a2", TextPart(text="You've hit your limit"), origin=Origin.HARNESS, stop_reason="error")
    assert (scripted.state().state, scripted.state().evidence, scripted.state().detail) == ("done", "answer", "error")
    scripted.answer("a3", call("c1"), stop_reason="tool_use")
    assert scripted.state().evidence == "open-call"


@pytest.mark.parametrize("version", ["0.2.126", "1.0.24", "2.1.20", "2.1.329-headless"])
def test_claude_code_is_done_when_its_request_has_failed_for_good(version: str, tmp_path: Path) -> None:
    """Of the logs of real versions those that end with `isApiErrorMessage`."""
    home = DATA / "claude_code/versions" / version
    refused = [
        log.stem
        for log in home.glob("projects/*/*.jsonl")
        if [line for line in log.read_text().splitlines() if '"uuid"' in line][-1].count('"isApiErrorMessage": true')
    ]
    assert refused
    sync(tmp_path / "store.db", roots=[home])
    with open_store(tmp_path / "store.db") as store:
        for name in refused:
            session = f"claude-code:{name}"
            last = store.turn_facts([session])[session].last_at
            assert last is not None
            state = session_states(store, [session], last)[session]
            assert (state.state, state.detail) == ("done", "error"), session


def test_a_session_that_is_silent_after_a_failed_request_has_failed(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.log.event(ErrorEvent(id="e1", error_text="invalid key", kind="api_error", status=401, created_at=at(2)))
    assert scripted.state().state == "running"
    failed = scripted.state(minutes=3)
    assert (failed.state, failed.evidence, failed.detail, failed.since) == ("done", "answer", "error", at(1))
    scripted.prompt("m2")
    assert scripted.state(minutes=3).state == "quiet"


def test_a_session_that_tries_a_request_again_has_not_failed(scripted: ScriptedSession) -> None:
    """Claude Code waits up to 40 seconds between two tries, and a try may hang for minutes."""
    scripted.prompt("m1")
    scripted.log.event(
        ErrorEvent(id="e1", error_text="overloaded", kind="api", status=529, will_retry=True, created_at=at(2))
    )
    assert scripted.state(minutes=3).state == "quiet"
    scripted.log.event(ErrorEvent(id="e2", error_text="overloaded", kind="api", status=529, created_at=at(2)))
    assert scripted.state(minutes=3).detail == "error"


def test_a_session_whose_call_ended_after_a_failed_request_has_not_failed(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", call("c1"), stop_reason="tool_use")
    scripted.log.event(ErrorEvent(id="e1", error_text="overloaded", kind="api", created_at=at(2.5)))
    scripted.log.result("c1", ToolResult(id="r1", completed_at=at(4)), message_id="m2")
    scripted.log.session(last_at=at(4))
    scripted.minute = 4
    assert scripted.state(minutes=3).state == "quiet"


def test_a_turn_that_began_after_a_failed_request_has_not_failed(tmp_path: Path) -> None:
    """Codex logs the start of a turn before its messages: it may compact for minutes first."""

    def line(minute: float, record: str, **payload: Any) -> str:
        return json.dumps({"timestamp": at(minute).isoformat(), "type": record, "payload": payload})

    name = "019a0000-0000-7000-8000-000000000001"
    log = tmp_path / f"home/sessions/2026/11/02/rollout-2026-11-02T09-00-00-{name}.jsonl"
    log.parent.mkdir(parents=True)
    text = [{"type": "input_text", "text": "Mend it"}]
    lines = [
        line(0, "session_meta", id=name, timestamp=at(0).isoformat(), cwd="/w/shop", cli_version="0.60.0"),
        line(0, "event_msg", type="task_started"),
        line(0, "response_item", type="message", role="user", content=text),
        line(0, "event_msg", type="user_message", message="Mend it"),
        line(1, "event_msg", type="error", message="the stream was cut"),
    ]
    states: list[tuple[str, str]] = []
    for more in ([], [line(2, "event_msg", type="task_started")]):
        lines += more
        log.write_text("\n".join(lines) + "\n")
        sync(tmp_path / "store.db", roots=[tmp_path / "home"])
        with open_store(tmp_path / "store.db") as store:
            [session] = store.sessions().items
            state = session_states(store, [session.id], at(6))[session.id]
            states.append((state.state, state.evidence))
    assert states == [("done", "answer"), ("quiet", "silence")]


def test_silence_is_all_that_is_known_later(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", call("c1", file_path="/work/shop.py"))
    assert scripted.state().state == "running"
    quiet = scripted.state(minutes=3)
    assert (quiet.state, quiet.since) == ("quiet", at(2))
    assert quiet.doing is not None
    assert quiet.doing.summary == "/work/shop.py"


def test_an_interrupt_ends_a_turn_with_its_calls(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", call("c1"))
    scripted.log.event(InterruptEvent(id="e1", during="tool", created_at=at(3)))
    assert scripted.state().evidence == "interrupt"


def test_questions_and_approvals_wait_for_the_user(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", call("c1", kind=ToolKind.ASK, question="Which one?"))
    waiting = scripted.state(minutes=60)
    assert (waiting.state, waiting.evidence) == ("waiting", "question")
    assert waiting.doing is not None
    assert waiting.doing.summary == "Which one?"
    scripted.prompt("m3")
    scripted.answer("m4", call("c2", state=ToolState.APPROVAL_REQUESTED))
    assert scripted.state(minutes=60).evidence == "approval"


def test_what_was_rewound_or_printed_does_not_count(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", TextPart(text="Done."), stop_reason="stop")
    scripted.prompt("m3", fate=Fate.REWOUND)
    assert scripted.state().state == "done"
    scripted.prompt("m4", Origin.COMMAND)
    assert scripted.state().state == "running"
    scripted.prompt("m5", Origin.COMMAND_OUTPUT)
    assert (scripted.state().evidence, scripted.state().detail) == ("turn-ended", "command_output")


def test_inputs_that_say_nothing_have_no_summary(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", call("c1", lines=7))
    state = scripted.state()
    assert state.doing is not None
    assert state.doing.summary is None


def test_a_run_that_ended_in_the_middle_was_killed(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.answer("m2", call("c1"))
    assert scripted.state().state == "running"
    run = Run(
        id="r1", origin="command", status="failed", created_at=at(0), session_id=S, ended_at=at(2.5), exit_code=-9
    )
    assert scripted.store is not None
    scripted.store.save_run(run)
    killed = scripted.state()
    assert (killed.state, killed.evidence, killed.detail, killed.since) == ("killed", "process-ended", "-9", at(2.5))


def test_a_session_that_is_not_there_has_no_state(scripted: ScriptedSession) -> None:
    scripted.prompt("m1")
    scripted.state()
    assert scripted.store is not None
    assert session_states(scripted.store, ["plain:nobody"]) == {}
