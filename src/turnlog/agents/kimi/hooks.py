"""The hook events of Kimi Code (recorded with 2.1.0) and of Kimi CLI (by its source, 1.48)."""

from __future__ import annotations

from turnlog.agents.hook_events import HookFormat, read_call, read_failure, read_prompt, read_result
from turnlog.agents.kimi import KIMI_CLI, KIMI_CODE
from turnlog.agents.kimi.contents import TOOL_KINDS

_EVENTS = {
    "UserPromptSubmit": read_prompt,
    "PreToolUse": read_call,
    "PostToolUse": read_result,
    "PostToolUseFailure": read_failure,
}

_NAMES = {"tool_output": "tool_response"}

CODE_HOOKS = HookFormat(KIMI_CODE, _EVENTS, TOOL_KINDS, names=_NAMES)

CLI_HOOKS = HookFormat(KIMI_CLI, _EVENTS, TOOL_KINDS, names=_NAMES)
