"""What Codex's hooks say (recorded with 0.169.0). Whatever runs commands is called `Bash` there."""

from __future__ import annotations

from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.tools import TOOL_KINDS
from turnlog.agents.hook_events import (
    HookFormat,
    read_call,
    read_permission_request,
    read_prompt,
    read_result,
    read_stop,
)
from turnlog.model import ToolKind

EVENTS = {
    "UserPromptSubmit": read_prompt,
    "PreToolUse": read_call,
    "PostToolUse": read_result,
    "PermissionRequest": read_permission_request,
    "Stop": read_stop,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, {**TOOL_KINDS, "Bash": ToolKind.EXECUTE}, child="{agent}")
