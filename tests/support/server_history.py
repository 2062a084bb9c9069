"""A history with one of everything that the API shows: a session, its subagent, its fork, and one without messages."""

from __future__ import annotations

import hashlib
from pathlib import Path

from support.plain_agent import Log
from support.plain_store import at
from turnlog.agents.changes import Link
from turnlog.model import (
    CompactionEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RecordEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.codec import to_json

MAIN, SUBAGENT, FORK, QUIET = "plain:main", "plain:main.scout", "plain:fork", "plain:quiet"

PICTURE = b"\x89PNG\r\n\x1a\n" + b"pixels " * 20
PAGE = b"<!doctype html><script>alert(1)</script>"
DRAWING = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
LONG_TEXT = "a line of a long output\n" * 4000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def prompt(id: str, text: str, minute: float) -> Message:
    return Message(id=id, role="user", origin=Origin.PROMPT, created_at=at(minute), parts=(TextPart(text=text),))


def answer(id: str, minute: float, *parts: TextPart | ReasoningPart | ToolCallPart, model: str = "large") -> Message:
    usage = Usage(input=100, cache_read=1000, output=50)
    return Message(id=id, role="assistant", created_at=at(minute), model=model, usage=usage, parts=parts)


def write_main(log: Log) -> None:
    log.session(project_path="/work/shop", cwd="/work/shop", git_branch="main", titles={"generated": "Repair the shop"})
    log.message(prompt("m1", "Please repair the shop window", 0), turn=1)
    calls = (
        ToolCallPart(
            tool_call_id="c1",
            tool_name="Bash",
            kind=ToolKind.EXECUTE,
            input=to_json({"command": "make glass"}),
            state=ToolState.INPUT_AVAILABLE,
            started_at=at(2),
        ),
        ToolCallPart(
            tool_call_id="c2",
            tool_name="Read",
            kind=ToolKind.READ,
            input=to_json({"file_path": "/work/shop/frame.py"}),
            state=ToolState.OUTPUT_ERROR,
            started_at=at(3),
            results=(ToolResult(id="c2.0", status="error", error_text="no such file"),),
        ),
        ToolCallPart(tool_call_id="c3", tool_name="Task", kind=ToolKind.SUBAGENT, input=to_json({"prompt": "scout"})),
    )
    log.message(answer("m2", 1, ReasoningPart(text="Glass first."), TextPart(text="I look."), *calls), turn=1, step=1)
    output = ToolResult(
        id="c1.0", content=(TextPart(text=LONG_TEXT),), completed_at=at(2.5), exit_code=0, spilled_to="c1.txt"
    )
    log.result("c1", output, message_id="m2", structured={"stdout": "glass", "code": 0})
    log.spill("c1.txt", b"the whole output")
    log.link(Link(kind="subagent", parent_session_id=MAIN, child_session_id=SUBAGENT, tool_call_id="c3"))
    log.event(InterruptEvent(id="e1", during="tool", created_at=at(3)))
    log.message(prompt("m3", "Another way", 4), turn=2, fate=Fate.REWOUND)
    log.event(CompactionEvent(id="e2", trigger="auto", tokens_before=150_000, tokens_after=12_000, created_at=at(6)))
    files = (
        FilePart(media_type="image/png", filename="shop.png", data=PICTURE),
        FilePart(media_type="text/html", filename="shop.html", data=PAGE),
        FilePart(media_type="image/svg+xml", filename="shop.svg", data=DRAWING),
    )
    log.message(Message(id="m4", role="user", origin=Origin.PROMPT, created_at=at(7), parts=files), turn=3)
    log.message(answer("m5/odd", 8, TextPart(text="A shop. 木の窓"), model="secret"), turn=3, step=1)
    log.event(RecordEvent(id="e3", kind="hologram", known=False, created_at=at(9)))
    log.line(b"{this is no record")


def write_history(folder: Path) -> None:
    write_main(Log(folder, "main"))
    scout = Log(folder, "main.scout")
    scout.message(prompt("s1", "scout", 2), turn=1)
    scout.message(answer("s2", 3, TextPart(text="Nothing there."), model="small"), turn=1, step=1)
    fork = Log(folder, "fork")
    fork.link(Link(kind="fork", parent_session_id=MAIN, child_session_id=FORK))
    fork.session(project_path="/work/shop", titles={"generated": "Try it in wood"})
    fork.message(prompt("m1", "Please repair the shop window", 0), turn=1)
    fork.message(answer("f1", 20, TextPart(text="Wood it is."), model="small"), turn=1, step=1)
    quiet = Log(folder, "quiet")
    quiet.session(project_path="/work/blog", titles={"generated": "Write a post"}, last_at=at(1500))
    quiet.event(RecordEvent(id="q1", kind="title"))
