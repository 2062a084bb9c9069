"""Every kind of row, part and event that OpenCode is known to write, with its outcome.

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
"""Table -> outcome of its rows. `part` rows are in the line of their message. `session_message` rows that are messages
have lines of `message`."""

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
"""Type of a part -> outcome; `message` for facts about the message itself."""

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
"""Kind of an event, without its version -> outcome. Rows have what a `duplicate` says. A `row` became a row of
`session_message` or `session_input`; it is an event where there are no rows (in a stream)."""

_KNOWN_PREFIXES = (
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
"""Kind of an event that `opencode run --format json` prints -> outcome."""


def event_kind(name: str) -> str:
    """The kind of an event: its type without the version at the end."""
    return _EVENT_VERSION.sub("", name)


def outcome_of(kind: str) -> str | None:
    """The outcome of events of a kind; None when the kind is not known."""
    if kind.startswith(_KNOWN_PREFIXES):
        return EVENTS.get(kind, "record")
    return EVENTS.get(kind)
