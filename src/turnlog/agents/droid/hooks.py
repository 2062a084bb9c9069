"""Droid's hook events (recorded with 0.215.0). No event has the id of a call, and none comes after one that failed."""

from __future__ import annotations

from turnlog.agents.droid import NAME
from turnlog.agents.droid.contents import TOOL_KINDS
from turnlog.agents.hook_events import HookFormat, read_call, read_prompt, read_result, read_stop

EVENTS = {
    "UserPromptSubmit": read_prompt,
    "PreToolUse": read_call,
    "PostToolUse": read_result,
    "Stop": read_stop,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS)
