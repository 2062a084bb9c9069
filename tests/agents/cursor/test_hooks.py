"""Events of Cursor's hooks, as its documentation describes them, become a session before its log is read (R-C21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.claude_files import gather
from turnlog.agents import agent
from turnlog.agents.base import Source, SourceKind
from turnlog.model import Message, RunMetadataEvent, TextPart, ToolCallPart, ToolKind
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

SESSION = "6f1c0a52-0000-4000-8000-000000000001"
COMMON = {
    "conversation_id": SESSION,
    "generation_id": "9b2d",
    "model": "composer-2",
    "cursor_version": "3.7.21",
    "workspace_roots": ["/home/dev/work"],
    "user_email": None,
    "transcript_path": None,
}


def spool(*events: dict[str, Any]) -> bytes:
    lines = [{"at": 1_795_000_000_000 + 1000 * number, "event": COMMON | each} for number, each in enumerate(events)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def shell(name: str, call: str, **more: Any) -> dict[str, Any]:
    return {
        "hook_event_name": name, "tool_name": "Shell", "tool_input": {"command": f"run {call}"}, "tool_use_id": call,
        "cwd": "/home/dev/work/deep", **more,
    }  # fmt: skip


RUN = spool(
    {"hook_event_name": "sessionStart", "session_id": SESSION, "composer_mode": "agent", "is_background_agent": False},
    {"hook_event_name": "beforeSubmitPrompt", "prompt": "Run it", "attachments": []},
    {"hook_event_name": "afterAgentResponse", "text": "I run it."},
    shell("preToolUse", "a"),
    shell("preToolUse", "b"),
    shell("postToolUse", "b", tool_output='{"output":"two\\n","exitCode":3}', duration=79.238),
    shell("postToolUse", "a", tool_output='{"output":"one\\n","exitCode":0}', duration=12),
    shell("preToolUse", "c"),
    shell("postToolUseFailure", "c", error_message="Not permitted", failure_type="permission_denied", duration=5),
    {"hook_event_name": "stop", "status": "completed", "loop_count": 0},
)


def read(data: bytes) -> tuple[list[Message], list[str]]:
    found = gather(AGENT.fold(SOURCE).feed(data, 0))
    assert found.diagnostics == []
    kinds = [change.event.kind for change in found.events.values() if isinstance(change.event, RunMetadataEvent)]
    return list(found.messages.values()), kinds


AGENT = agent("cursor")
SOURCE = Source(
    agent="cursor", path=f"/data/hooks/cursor/{SESSION}.jsonl", root="/data/hooks", kind=SourceKind.HOOKS,
    session_id=f"cursor:{SESSION}",
)  # fmt: skip


def test_prompts_texts_and_calls_are_read_with_their_results() -> None:
    messages, kinds = read(RUN)
    parts = [part for message in messages for part in message.parts]
    said = [(message.role, part.text) for message in messages for part in message.parts if isinstance(part, TextPart)]
    assert said == [("user", "Run it"), ("assistant", "I run it.")]
    calls = {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}
    assert {name: (call.kind, call.results[0].status) for name, call in calls.items()} == {
        "a": (ToolKind.EXECUTE, "success"),
        "b": (ToolKind.EXECUTE, "error"),
        "c": (ToolKind.EXECUTE, "denied"),
    }
    texts = {
        name: [part.text for part in call.results[0].content if isinstance(part, TextPart)]
        for name, call in calls.items()
    }
    assert texts == {"a": ["one\n"], "b": ["two\n"], "c": ["Not permitted"]}
    assert calls["b"].results[0].duration_ms == 79
    assert kinds == ["hook:SessionStart", "hook:Stop"]


def test_a_session_belongs_to_the_folder_of_the_window(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "data" / "store.db"
    place = store.parent / "hooks" / "cursor" / f"{SESSION}.jsonl"
    place.parent.mkdir(parents=True)
    place.write_bytes(RUN)
    sync(store)
    with open_store(store) as opened:
        [session] = opened.sessions(SessionFilter()).items
    assert (session.id, session.cwd, session.counts.tool_calls) == (f"cursor:{SESSION}", "/home/dev/work", 3)


def test_any_split_of_a_spool_equals_the_whole() -> None:
    lines = RUN.splitlines(keepends=True)
    whole = gather(AGENT.fold(SOURCE).feed(RUN, 0))
    for cut in range(1, len(lines)):
        first, rest = b"".join(lines[:cut]), b"".join(lines[cut:])
        fold = AGENT.fold(SOURCE)
        changes = [fold.feed(first, 0)]
        changes.append(AGENT.fold(SOURCE, fold.state()).feed(rest, len(first)))
        assert gather(*changes).as_json() == whole.as_json()
