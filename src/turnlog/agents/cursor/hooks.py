"""Cursor's hook events, after its documentation (https://cursor.com/docs/agent/hooks, 2026); no run was recorded.

The editor and `cursor-agent` report the same events. What a tool returned is JSON in a text.
"""

from __future__ import annotations

import msgspec

from turnlog.agents.cursor import NAME
from turnlog.agents.cursor.tools import TOOL_KINDS
from turnlog.agents.decoding import object_of
from turnlog.agents.hook_events import HookFormat, HookReading, checksum, output_text, read_call, read_prompt
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import ResultStatus

_STATUSES: dict[str, ResultStatus] = {"permission_denied": "denied"}
"""Type of a failure -> what became of the call. Any other is an error."""


def _read_text(reading: HookReading) -> None:
    said = reading.event.displayed_text
    if said:
        # The event has no id: the same text twice in one answer to a prompt is one.
        reading.show_text(checksum(f"{reading.event.prompt_id}:{said}"), said)
    else:
        reading.add_fact()


def _read_result(reading: HookReading) -> None:
    text = output_text(reading.event.tool_response)
    try:
        returned = object_of(msgspec.json.decode(text))
    except UNREADABLE:
        returned = {}
    failed = bool(returned.get("exitCode"))
    reading.end_call("error" if failed else "success", output_text(msgspec.Raw(text.encode())) if returned else text)


def _read_failure(reading: HookReading) -> None:
    event = reading.event
    status = "aborted" if event.is_interrupt else _STATUSES.get(event.failure_type or "", "error")
    reading.end_call(status, output_text(event.error))


EVENTS = {
    "UserPromptSubmit": read_prompt,
    "afterAgentResponse": _read_text,
    "PreToolUse": read_call,
    "PostToolUse": _read_result,
    "PostToolUseFailure": _read_failure,
}

NAMES = {
    # Of a session's events both are the same; that of the conversation is in each.
    "conversation_id": "session_id",
    "session_id": "own_session_id",
    "generation_id": "prompt_id",
    "text": "displayed_text",
    "tool_output": "tool_response",
    "error_message": "error",
    "duration": "duration_ms",
    "status": "reason",
}

EVENT_NAMES = {
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "stop": "Stop",
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS, names=NAMES, events=EVENT_NAMES)
