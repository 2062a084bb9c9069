"""Qwen Code's hook events (recorded with 0.24.4).

They are Claude Code's, with two ids of a call: `tool_call_id` is the one that the log has. `MessageDisplay` repeats the
whole text of an answer each time that it has grown.
"""

from __future__ import annotations

from turnlog.agents.hook_events import (
    HookFormat,
    HookReading,
    read_call,
    read_failure,
    read_permission_request,
    read_prompt,
    read_result,
    read_stop,
)
from turnlog.agents.qwen_code import NAME
from turnlog.agents.qwen_code.results import TOOL_KINDS


def _read_text(reading: HookReading) -> None:
    event = reading.event
    if event.message_id is None or event.displayed_text is None:
        reading.add_fact()
    else:
        reading.show_text(event.message_id, event.displayed_text, done=event.is_final)


EVENTS = {
    "UserPromptSubmit": read_prompt,
    "MessageDisplay": _read_text,
    "PreToolUse": read_call,
    "PostToolUse": read_result,
    "PostToolUseFailure": read_failure,
    "PermissionRequest": read_permission_request,
    "Stop": read_stop,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS, child="{session}.{agent}")
