"""What turnlog's own plugin for OpenCode (`hooks/opencode.js`) says, in the words that other agents' hooks use."""

from __future__ import annotations

from turnlog.agents.hook_events import (
    HookFormat,
    read_call,
    read_permission_request,
    read_prompt,
    read_result,
    read_text_delta,
)
from turnlog.agents.opencode.rows import NAME
from turnlog.agents.opencode.tools import TOOL_KINDS

EVENTS = {
    "prompt": read_prompt,
    "text": read_text_delta,
    "tool.before": read_call,
    "tool.after": read_result,
    "permission": read_permission_request,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS)
