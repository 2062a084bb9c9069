"""Claude Code's hook events (recorded with 2.1.329).

`MessageDisplay` has an answer line by line while it is printed. The log has it only when a block has ended.
"""

from __future__ import annotations

from turnlog.agents.claude_code import NAME
from turnlog.agents.claude_code.contents import TOOL_KINDS
from turnlog.agents.hook_events import (
    HookFormat,
    HookReading,
    read_call,
    read_failure,
    read_permission_request,
    read_prompt,
    read_result,
    read_stop,
    read_text_delta,
)
from turnlog.model import Origin

_NOTIFICATION = "<task-notification>"


def _read_prompt(reading: HookReading) -> None:
    """Read a prompt. The report of a background subagent also arrives as one."""
    # `UserPromptSubmit` is fired for those reports too; taken as a prompt, it would begin a turn that nobody asked for.
    if reading.event.prompt_text.startswith(_NOTIFICATION):
        reading.show_prompt(reading.event.prompt_text, Origin.NOTIFICATION)
    else:
        read_prompt(reading)


EVENTS = {
    "UserPromptSubmit": _read_prompt,
    "MessageDisplay": read_text_delta,
    "PreToolUse": read_call,
    "PostToolUse": read_result,
    "PostToolUseFailure": read_failure,
    "PermissionRequest": read_permission_request,
    "Stop": read_stop,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS, child="{session}.{agent}")
