"""Copilot CLI's hook events (recorded with 1.0.102).

An event whose name begins with a capital letter is written as Claude Code writes it, with Claude Code's name of the
tool that runs commands. No event has the id of a call.
"""

from __future__ import annotations

from turnlog.agents.copilot_cli import NAME
from turnlog.agents.copilot_cli.tools import TOOL_KINDS
from turnlog.agents.hook_events import HookFormat, HookReading, output_text, read_call, read_prompt, read_stop

_LOGGED = {"Bash": "bash"}
"""Name of a tool in an event -> in the log."""


def _read_call(reading: HookReading) -> None:
    _use_logged_name(reading)
    read_call(reading)


def _read_result(reading: HookReading) -> None:
    _use_logged_name(reading)
    # A command with an exit code other than 0 is a success here; only the log has the code.
    reading.end_call("success", output_text(reading.event.tool_result))


def _use_logged_name(reading: HookReading) -> None:
    name = reading.event.tool_name or ""
    reading.event.tool_name = _LOGGED.get(name, name)


EVENTS = {
    "UserPromptSubmit": read_prompt,
    "PreToolUse": _read_call,
    "PostToolUse": _read_result,
    "Stop": read_stop,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS)
