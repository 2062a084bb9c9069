"""What Codex's hooks say (recorded with 0.169.0). Whatever runs commands is called `Bash` there."""

from __future__ import annotations

from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.tools import TOOL_KINDS
from turnlog.agents.hook_events import take_call, take_prompt, take_question, take_result, take_stop
from turnlog.agents.hooked import Hooks
from turnlog.model import ToolKind

EVENTS = {
    "UserPromptSubmit": take_prompt,
    "PreToolUse": take_call,
    "PostToolUse": take_result,
    "PermissionRequest": take_question,
    "Stop": take_stop,
}

HOOKS = Hooks(NAME, EVENTS, {**TOOL_KINDS, "Bash": ToolKind.EXECUTE}, child="{agent}")
