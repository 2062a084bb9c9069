"""What Claude Code's hooks say (recorded with 2.1.329).

`MessageDisplay` brings an answer line by line while it is printed, which the log has only when a block has ended.
"""

from __future__ import annotations

from turnlog.agents.claude_code.sources import NAME
from turnlog.agents.claude_code.tools import TOOL_KINDS
from turnlog.agents.hook_events import (
    take_call,
    take_failure,
    take_piece,
    take_prompt,
    take_question,
    take_result,
    take_stop,
)
from turnlog.agents.hooked import Hooks, Told
from turnlog.model import Origin

_NOTIFICATION = "<task-notification>"


def _take_prompt(told: Told) -> None:
    """Also what tells the model that a subagent in the background has ended comes as a prompt."""
    if told.event.prompt and told.event.prompt.startswith(_NOTIFICATION):
        told.show_prompt(told.event.prompt, Origin.NOTIFICATION)
    else:
        take_prompt(told)


EVENTS = {
    "UserPromptSubmit": _take_prompt,
    "MessageDisplay": take_piece,
    "PreToolUse": take_call,
    "PostToolUse": take_result,
    "PostToolUseFailure": take_failure,
    "PermissionRequest": take_question,
    "Stop": take_stop,
}

HOOKS = Hooks(NAME, EVENTS, TOOL_KINDS, child="{session}.{agent}")
