"""Grok Build: where its sessions are, how they are read, and how its program is run (`docs/formats/grok-build.md`).

What reads the sessions is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import (
    Agent,
    Colour,
    Detection,
    Fold,
    HookHandler,
    HookSettings,
    McpSettings,
    Source,
    SourceKind,
    TurnMarker,
)
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "grok-build"

SESSIONS: Final = "sessions"

TURN_END: Final = "turn_completed"

_COMMAND: Final = CommandForm(
    program="grok",
    resume=("--resume",),
    prompted=("--resume", "{session}", "--prompt-file", "/dev/stdin"),
    newest=words("-c --continue"),
    prompt=words("-p --single"),
    model=words("-m --model"),
    session=words("-r --resume"),
    other=words(
        "--agent --agents --allow --cwd --debug-file --deny --disallowed-tools --json-schema --leader-socket",
        "--max-turns --output-format --permission-mode --prompt-file --prompt-json --reasoning-effort --effort --rules",
        "-s --session-id --sandbox --tools",
    ),
)
"""Of 0.2.111."""

_HOOK: Final = HookHandler({"timeout": 5})

_HOOKS: Final = HookSettings(
    home=BUILT_IN[NAME].homes,
    file="hooks/turnlog.json",
    project_file=".grok/hooks/turnlog.json",
    # Every version passes over an event that it does not know.
    events={
        "SessionStart": _HOOK,
        "UserPromptSubmit": _HOOK,
        "PreToolUse": _HOOK,
        "PostToolUse": _HOOK,
        "PostToolUseFailure": _HOOK,
        "Notification": _HOOK,
        "Stop": _HOOK,
        "StopFailure": _HOOK,
        "StopCancelled": _HOOK,
        "SessionEnd": _HOOK,
    },
    session_field="sessionId",
)

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {TURN_END: "end"}


class GrokBuild(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Grok Build"
    colour = Colour(light="#334155", dark="#8b9bb4")
    parser_version = 4
    homes = BUILT_IN[NAME].homes
    log_folders = (SESSIONS,)
    command = _COMMAND
    turn_markers = _TURN_MARKERS
    hooks = _HOOKS
    mcp = McpSettings(
        home=BUILT_IN[NAME].homes,
        file="config.toml",
        project_file=".grok/config.toml",
        servers="mcp_servers",
        form="toml",
    )

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The updates of each session, and what is known about it."""
        from turnlog.agents.grok_build.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log consists of updates as in the Agent Client Protocol, with the ids of events."""
        from turnlog.agents.grok_build.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's updates, or of what is known about it."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.grok_build.hooks import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.grok_build.sidecars import SummaryFold

            return SummaryFold(source)
        from turnlog.agents.grok_build.fold import GrokBuildFold

        return GrokBuildFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """What a tool returned, as an object."""
        from turnlog.agents.grok_build.contents import structured_result

        return structured_result(record, tool_call_id)
