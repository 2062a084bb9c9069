"""Grok Build's hook events (recorded with 0.2.111). Their fields are in camel case, and their names in snake case.

A command that fails has an event as of a success, whose result has the exit code.
"""

from __future__ import annotations

import re

import msgspec

from turnlog.agents.decoding import clean_json, object_of
from turnlog.agents.grok_build import NAME
from turnlog.agents.grok_build.contents import TOOL_KINDS
from turnlog.agents.hook_events import (
    HookFormat,
    HookReading,
    output_text,
    read_call,
    read_failure,
    read_stop,
)
from turnlog.agents.jsonl import UNREADABLE

_QUERY = re.compile(r"\A<user_query>\n(?P<prompt>.*)\n</user_query>\Z", re.DOTALL)
"""What the program puts around a prompt; the log has it without."""


def _read_prompt(reading: HookReading) -> None:
    prompt = reading.event.prompt_text
    wrapped = _QUERY.match(prompt)
    if prompt:
        reading.show_prompt(wrapped["prompt"] if wrapped is not None else prompt)
    else:
        reading.add_fact()


def _read_result(reading: HookReading) -> None:
    given = reading.event.tool_response
    try:
        returned = object_of(msgspec.json.decode(clean_json(bytes(given)))) if isinstance(given, msgspec.Raw) else {}
        # A command's output is a list of bytes.
        output = (
            bytes(returned["output"]).decode(errors="replace") if isinstance(returned.get("output"), list) else None
        )
    except (*UNREADABLE, ValueError, TypeError):
        returned, output = {}, None
    failed = bool(returned.get("exit_code")) or returned.get("timed_out") is True
    reading.end_call("error" if failed else "success", output_text(given) if output is None else output)


EVENTS = {
    "UserPromptSubmit": _read_prompt,
    "PreToolUse": read_call,
    "PostToolUse": _read_result,
    "PostToolUseFailure": read_failure,
    "Stop": read_stop,
}

NAMES = {
    "sessionId": "session_id",
    "hookEventName": "hook_event_name",
    "promptId": "prompt_id",
    "permissionMode": "permission_mode",
    "lastAssistantMessage": "last_assistant_message",
    "stopHookActive": "stop_hook_active",
    "toolName": "tool_name",
    "toolUseId": "tool_use_id",
    "toolInput": "tool_input",
    "toolResult": "tool_response",
    "durationMs": "duration_ms",
    "notificationType": "notification_type",
    "modelId": "model",
    "subagentType": "agent_type",
}

EVENT_NAMES = {
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
    "user_prompt_submit": "UserPromptSubmit",
    "pre_tool_use": "PreToolUse",
    "post_tool_use": "PostToolUse",
    "post_tool_use_failure": "PostToolUseFailure",
    "permission_denied": "PermissionDenied",
    "notification": "Notification",
    "stop": "Stop",
    "stop_failure": "StopFailure",
    "stop_cancelled": "StopCancelled",
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS, names=NAMES, events=EVENT_NAMES)
