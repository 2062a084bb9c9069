"""Which agents can tell of themselves, where their settings lie, and what stands in these (docs/how-to/hooks.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from turnlog import paths
from turnlog.hooks.groups import Wanted
from turnlog.hooks.versions import installed_version


class Hooked(NamedTuple):
    """An agent that can tell of itself."""

    word: str
    """As on the command line."""
    display_name: str
    home: Callable[[], Path]
    """The folder of its settings."""
    file: str
    """Below that folder."""
    project_file: str
    """Below a project's folder."""
    wanted: Callable[[], Wanted] | None
    """What stands in its settings; None for one whose hooks are a program of their own."""
    note: str = ""
    """What the user must know once they are in."""


_SECONDS = 10

# A hook that is not waited for may be lost with the agent's end, so the last ones of a turn are.
_AWAITED = {"timeout": _SECONDS}
_BESIDE = {"timeout": _SECONDS, "async": True}

_CLAUDE_EVENTS = {
    "SessionStart": _BESIDE,
    "UserPromptSubmit": _BESIDE,
    "PreToolUse": _BESIDE,
    "PostToolUse": _BESIDE,
    "Notification": _BESIDE,
    "Stop": _AWAITED,
    "SessionEnd": _AWAITED,
}

_LATER_CLAUDE_EVENTS = {
    "PermissionRequest": ((2, 1, 20), _BESIDE),
    "PostToolUseFailure": ((2, 1, 20), _BESIDE),
    "StopFailure": ((2, 1, 100), _AWAITED),
    "MessageDisplay": ((2, 1, 200), _BESIDE),
}
"""Event -> the oldest version that is known to know it, and what its handler says. Up to 2.1.100 an event that
Claude Code does not know turns off all hooks of the file, other people's too."""


def _claude() -> Wanted:
    version = installed_version("claude") or (0,)
    later = {event: fields for event, (since, fields) in _LATER_CLAUDE_EVENTS.items() if version >= since}
    return Wanted({**_CLAUDE_EVENTS, **later}, off=((("disableAllHooks",), True),))


_CODEX = Wanted(
    {
        "SessionStart": _AWAITED,
        "UserPromptSubmit": _AWAITED,
        "PreToolUse": _AWAITED,
        "PermissionRequest": _AWAITED,
        "PostToolUse": _AWAITED,
        "Stop": _AWAITED,
        "SessionEnd": _AWAITED,
    }
)

_NAMED = {"name": "turnlog", "timeout": _SECONDS * 1000}

_GEMINI = Wanted(
    {
        # Not the events of each request and each piece of an answer: a process for every one would slow it down.
        "SessionStart": _NAMED,
        "BeforeAgent": _NAMED,
        "BeforeTool": _NAMED,
        "AfterTool": _NAMED,
        "AfterAgent": _NAMED,
        "Notification": _NAMED,
        "SessionEnd": _NAMED,
    },
    off=((("tools", "enableHooks"), False), (("hooksConfig", "enabled"), False), (("hooks", "enabled"), False)),
)

HOOKED = {
    agent.word: agent
    for agent in (
        Hooked(
            word="claude",
            display_name="Claude Code",
            home=lambda: paths.claude_roots()[0],
            file="settings.json",
            project_file=".claude/settings.local.json",
            wanted=_claude,
        ),
        Hooked(
            word="codex",
            display_name="Codex",
            home=lambda: paths.codex_roots()[0],
            file="hooks.json",
            project_file=".codex/hooks.json",
            wanted=lambda: _CODEX,
            note="Codex asks once whether you trust these hooks, in its own screen; until then it does not start them.",
        ),
        Hooked(
            word="gemini",
            display_name="Gemini CLI",
            home=lambda: paths.gemini_roots()[0],
            file="settings.json",
            project_file=".gemini/settings.json",
            wanted=lambda: _GEMINI,
        ),
        Hooked(
            word="opencode",
            display_name="OpenCode",
            home=paths.opencode_config_dir,
            file="plugin/turnlog.js",
            project_file=".opencode/plugin/turnlog.js",
            wanted=None,
            note="At its next start OpenCode installs its own package for plugins, once, and waits for the network.",
        ),
    )
}
