"""Events of Cline's hooks become the session that a run had, before its file of messages is read (R-C18)."""

from __future__ import annotations

import json
from typing import Any

from support.claude_files import gather
from support.hook_recordings import recording
from turnlog.agents.base import Source, SourceKind
from turnlog.model import RunMetadataEvent, TextPart, ToolCallPart

RECORDED = recording("cline")
SESSION = RECORDED.events[0]["session_id"]
SOURCE = Source(
    agent="cline", path=f"/data/hooks/cline/{SESSION}.jsonl", root="/data/hooks", kind=SourceKind.HOOKS,
    session_id=f"cline:{SESSION}",
)  # fmt: skip
AGENT = RECORDED.agent


def read(*lines: bytes) -> Any:
    return gather(AGENT.fold(SOURCE).feed(b"".join(lines), 0))


def line(name: str, **more: Any) -> bytes:
    event = json.loads(RECORDED.lines[0])["event"] | {"hookName": name} | more
    return json.dumps({"at": 1_795_750_200_000, "event": event}).encode() + b"\n"


def test_calls_have_their_results_and_a_command_that_failed_is_an_error() -> None:
    found = read(*RECORDED.lines)
    assert found.diagnostics == []
    calls = [part for message in found.messages.values() for part in message.parts if isinstance(part, ToolCallPart)]
    assert {call.tool_call_id: (call.results[0].status, call.output_text.strip()) for call in calls} == {
        "call_h1": ("success", "good morning"),
        "call_h2": ("error", "[Command exited with code 3]\n\n[stderr]\nalas"),
        "call_h3": ("success", "to the left"),
        "call_h4": ("success", "to the right"),
        "call_h5": ("success", "It was said."),
        "call_h6": ("success", "once more"),
    }
    assert all(call.results[0].duration_ms is not None and call.started_at is not None for call in calls)


def test_a_subagent_has_a_session_started_by_its_parent() -> None:
    changes = AGENT.fold(SOURCE).feed(b"".join(RECORDED.lines), 0)
    (link,) = changes.links
    assert (link.kind, link.parent_session_id) == ("subagent", f"cline:{SESSION}")
    logs = {source.session_id for source in RECORDED.logs() if source.kind is SourceKind.SUBAGENT}
    assert {link.child_session_id} == logs
    texts = [
        (change.placement.session_id, part.text)
        for change in changes.messages
        for part in change.message.parts
        if isinstance(part, TextPart)
    ]
    assert texts == [
        (f"cline:{SESSION}", "Everything was tried."),
        (link.child_session_id, "It was said."),
        (f"cline:{SESSION}", "Done again."),
    ]
    facts = [(change.session_id, change.event) for change in changes.events]
    kinds = [(name, event.kind) for name, event in facts if isinstance(event, RunMetadataEvent)]
    assert [kind for name, kind in kinds if name == link.child_session_id] == ["hook:TaskStart", "hook:Stop"]
    assert [kind for name, kind in kinds if name != link.child_session_id] == ["hook:TaskStart", "hook:Stop"] * 2


def test_ends_of_runs_and_prompts_have_the_names_of_other_agents() -> None:
    """By its source: no run reported them."""
    found = read(
        line("prompt_submit", userPromptSubmit={"prompt": "Go on", "attachments": []}),
        line("agent_abort", reason="aborted"),
        line("agent_error", error={"name": "Error", "message": "no answer"}),
        line("session_shutdown"),
        line("tomorrows_event"),
    )
    assert [part.text for message in found.messages.values() for part in message.parts] == ["Go on"]
    assert [change.event.kind for change in found.events.values()] == [
        "hook:StopCancelled", "hook:StopFailure", "hook:SessionEnd", "hook:tomorrows_event",
    ]  # fmt: skip


def test_events_of_another_shape_leave_their_bytes_and_no_crash() -> None:
    shapes: list[Any] = [None, 7, "text", [], {}, [{}], True]
    for name in ("tool_call", "tool_result", "agent_end", "prompt_submit", "sessionContext", "workspaceRoots"):
        for shape in shapes:
            changes = AGENT.fold(SOURCE).feed(line(name if "_" in name else "tool_result", **{name: shape}), 0)
            counts = changes.counts
            assert counts.messages + counts.events + counts.unreadable == 1, (name, shape)


def test_any_split_of_a_spool_equals_the_whole() -> None:
    whole = read(*RECORDED.lines)
    for cut in range(1, len(RECORDED.lines)):
        first, rest = b"".join(RECORDED.lines[:cut]), b"".join(RECORDED.lines[cut:])
        fold = AGENT.fold(SOURCE)
        changes = [fold.feed(first, 0), AGENT.fold(SOURCE, fold.state()).feed(rest, len(first))]
        assert gather(*changes).as_json() == whole.as_json()
