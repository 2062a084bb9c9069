"""What turnlog's own plugin for OpenCode (`hooks/opencode.js`) says, in the words that other agents' hooks use."""

from __future__ import annotations

from turnlog.agents.hook_events import take_call, take_piece, take_prompt, take_question, take_result
from turnlog.agents.hooked import Hooks
from turnlog.agents.opencode.rows import NAME
from turnlog.agents.opencode.tools import TOOL_KINDS

EVENTS = {
    "prompt": take_prompt,
    "text": take_piece,
    "tool.before": take_call,
    "tool.after": take_result,
    "permission": take_question,
}

HOOKS = Hooks(NAME, EVENTS, TOOL_KINDS)
