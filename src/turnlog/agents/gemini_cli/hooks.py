"""What Gemini CLI's hooks say (recorded with 0.61.0).

The answer that `AfterAgent` brings repeats pieces of it, so the log alone tells what was said.
"""

from __future__ import annotations

from turnlog.agents.gemini_cli.sources import NAME
from turnlog.agents.gemini_cli.tools import TOOL_KINDS
from turnlog.agents.hook_events import take_call, take_prompt, take_result
from turnlog.agents.hooked import Hooks

EVENTS = {"BeforeAgent": take_prompt, "BeforeTool": take_call, "AfterTool": take_result}

HOOKS = Hooks(NAME, EVENTS, TOOL_KINDS)
