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
    "session_message": "record",
    "session_input": "record",
    "session_context_epoch": "record",
    "session_diff": "record",
}
"""What the rows of a table become. `part` rows stand in their message's line."""

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

EVENTS: dict[str, str] = {
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
"""Events by kind without its version: a `duplicate` tells what rows tell too."""

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
