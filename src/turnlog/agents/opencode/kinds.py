"""Every kind of row, part and event that OpenCode is known to write, and what it becomes.

`docs/formats/opencode.md` describes each of them, which a test compares with these tables.
"""

from __future__ import annotations

import re

_EVENT_VERSION = re.compile(r"\.\d+$")

TABLES: dict[str, str] = {
    "message": "message",
    "session": "session",
    "project": "session",
    "todo": "session",
    "event": "event",
    "event_sequence": "nothing",
    "session_message": "message",
    "session_input": "record",
    "session_context_epoch": "record",
    "session_diff": "record",
}
"""What the rows of a table become. `part` rows stand in their message's line, `session_message` rows are lines of
`message` where they hold what was said."""

PARTS: dict[str, str] = {
    "text": "text",
    "reasoning": "reasoning",
    "file": "file",
    "tool": "tool call",
    "step-start": "message",
    "step-finish": "message",
    "snapshot": "data",
    "patch": "data",
    "agent": "data",
    "subtask": "data",
    "retry": "data",
    "compaction": "data",
}
"""What the parts of a message become; `message`: facts of the message itself."""

_NEXT = (
    *("agent.switched", "model.switched", "prompt.admitted", "prompted", "step.started", "step.ended"),
    *("text.started", "text.ended", "reasoning.started", "reasoning.ended"),
    *("tool.input.started", "tool.input.ended", "tool.called", "tool.success", "tool.failed"),
)

EVENTS: dict[str, str] = {
    **{f"session.next.{name}": "row" for name in _NEXT},
    "session.created": "duplicate",
    "session.updated": "duplicate",
    "session.deleted": "duplicate",
    "message.updated": "duplicate",
    "message.removed": "duplicate",
    "message.part.updated": "duplicate",
    "message.part.removed": "duplicate",
    "message.part.delta": "duplicate",
    "todo.updated": "duplicate",
    "session.status": "record",
    "session.idle": "record",
    "session.error": "record",
    "session.compacted": "record",
    "session.diff": "record",
    "command.executed": "record",
    "file.edited": "record",
    "file.watcher.updated": "record",
    "permission.asked": "record",
    "permission.replied": "record",
    "permission.updated": "record",
    "question.asked": "record",
    "question.rejected": "record",
    "question.replied": "record",
    "vcs.branch.updated": "record",
}
"""Events by kind without its version: a `duplicate` tells what rows tell too; a `row` became one of `session_message`
or `session_input`, and is an event where there are only events (a stream)."""

_FAMILIES = (
    "session.next.",
    "permission.",
    "question.",
    "server.",
    "plugin.",
    "catalog.",
    "integration.",
    "reference.",
)

RUN_KINDS: dict[str, str] = {
    "step_start": "message",
    "reasoning": "message",
    "text": "message",
    "tool_use": "message",
    "step_finish": "message",
    "error": "record",
}
"""What `opencode run --format json` prints."""


def event_kind(name: str) -> str:
    """The kind of an event: its type without the version at its end."""
    return _EVENT_VERSION.sub("", name)


def becomes(kind: str) -> str | None:
    """What an event of a kind becomes; None when the kind is not known."""
    if kind.startswith(_FAMILIES):
        return EVENTS.get(kind, "record")
    return EVENTS.get(kind)
