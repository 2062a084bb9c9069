"""What Gemini CLI's hooks say (recorded with 0.61.0).

The answer that `AfterAgent` brings repeats pieces of it, so the log alone tells what was said.
"""

from __future__ import annotations

from turnlog.agents.gemini_cli.sources import NAME
from turnlog.agents.gemini_cli.tools import TOOL_KINDS
from turnlog.agents.hook_events import HookFormat, read_call, read_prompt, read_result

EVENTS = {"BeforeAgent": read_prompt, "BeforeTool": read_call, "AfterTool": read_result}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS)
