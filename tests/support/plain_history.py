"""A history that has one of everything, as logs of the plain agent: two sessions and a subagent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.plain_agent import Log
from support.plain_store import at
from turnlog.agents.changes import Link
from turnlog.model import (
    Approval,
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.codec import to_json

SESSION = "plain:3f2a91c0-1111-4111-8111-000000000001"
SUBAGENT = "plain:3f2a91c0-1111-4111-8111-000000000001.scout"
OTHER = "plain:77aa0000-1111-4111-8111-000000000002"

EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\x08bell\x07 tail"
"""What a terminal would obey, around `red`, `bell` and `tail`."""


def write_history(folder: Path) -> None:
    """Write the logs of all three sessions into a home."""
    write_main_session(Log(folder, SESSION.partition(":")[2]))
    write_subagent(Log(folder, SUBAGENT.partition(":")[2]))
    write_other_session(Log(folder, OTHER.partition(":")[2]))


def prompt(id: str, text: str, minute: float, origin: Origin = Origin.PROMPT) -> Message:
    role = "developer" if origin is Origin.HARNESS else "user"
    return Message(id=id, role=role, origin=origin, created_at=at(minute), parts=(TextPart(text=text),))


def answer(id: str, minute: float, *parts: Part, model: str = "large", usage: Usage | None = None) -> Message:
    return Message(
        id=id,
        role="assistant",
        created_at=at(minute),
        model=model,
        usage=usage or Usage(input=100, output=50),
        parts=parts,
    )


def call(id: str, name: str, arguments: Any, state: ToolState, *results: ToolResult, **more: Any) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=id,
        tool_name=name,
        input=to_json(arguments),
        state=state,
        started_at=at(2),
        results=results,
        **more,
    )


def write_main_session(log: Log) -> None:
    log.session(
        project_path="/work/webshop", cwd="/work/webshop", git_branch="main", titles={"generated": "Repair the webshop"}
    )
    log.message(prompt("m1", "Please repair\nthe webshop", 0), turn=1)
    log.message(prompt("m1h", "<system-reminder>\nbe nice\n</system-reminder>", 0, Origin.HARNESS), turn=1)
    done = ToolResult(id="c1.0", content=(TextPart(text="all\ngreen"),), duration_ms=300)
    failed = ToolResult(id="c2.0", status="error", error_text="no such file: missing.py", exit_code=2)
    aborted = ToolResult(id="c3.0", status="aborted", completed_at=at(2.5))
    denied = ToolResult(id="c4.0", status="denied")
    log.message(
        answer(
            "m2",
            1,
            ReasoningPart(text="First thought.\nThen a second one."),
            TextPart(text=f"I look at it. {EVIL}"),
            call("c1", "Bash", {"command": "pytest -q"}, ToolState.OUTPUT_AVAILABLE, done),
            call("c2", "Read", {"file_path": "missing.py"}, ToolState.OUTPUT_ERROR, failed),
            call("c3", "Bash", {"command": "sleep 100"}, ToolState.ABORTED, aborted),
            call(
                "c4",
                "Bash",
                {"command": "rm -rf /"},
                ToolState.OUTPUT_DENIED,
                denied,
                approval=Approval(approved=False, reason="too dangerous"),
            ),
            call("c5", "Task", {"prompt": "scout it"}, ToolState.INPUT_AVAILABLE, kind=ToolKind.SUBAGENT),
        ),
        turn=1,
        step=1,
    )
    log.link(Link(kind="subagent", parent_session_id=SESSION, child_session_id=SUBAGENT, tool_call_id="c5"))
    log.event(InterruptEvent(id="e1", during="tool", created_at=at(3)))
    log.message(prompt("m3", "Another way", 4), turn=2, fate=Fate.REWOUND)
    log.event(RewindEvent(id="e2", to_message_id="m2", created_at=at(5)))
    log.event(CompactionEvent(id="e3", trigger="auto", tokens_before=150_000, tokens_after=12_000, created_at=at(6)))
    log.message(prompt("m4", "This picture?", 7), turn=3)
    picture = FilePart(media_type="image/png", filename="shop.png", data=b"\x89PNG....")
    log.message(Message(id="m5", role="user", created_at=at(7), parts=(picture,)), turn=3)
    log.message(
        answer("m6", 8, ReasoningPart(text="", redacted=True), TextPart(text="A shop."), model="secret"), turn=3
    )
    log.event(ErrorEvent(id="e4", error_text="overloaded", created_at=at(9)))
    log.event(RecordEvent(id="e5", kind="hologram", known=False, created_at=at(9)))
    log.event(RunMetadataEvent(id="e6", kind="duration", created_at=at(9)))
    log.line(b"{this is no record")


def write_subagent(log: Log) -> None:
    log.message(prompt("s1", "scout it", 2, Origin.SUBAGENT_PROMPT), turn=1)
    log.message(answer("s2", 3, TextPart(text="Nothing there."), model="small"), turn=1, step=1)


def write_other_session(log: Log) -> None:
    log.session(project_path="/work/blog", titles={"generated": "Write a post"})
    log.message(prompt("o1", "Write about 你好世界", 60 * 30), turn=1)
    log.message(answer("o2", 60 * 30 + 1, TextPart(text="Done."), model="small"), turn=1, step=1)
