"""GitHub Copilot CLI: where its logs are, how they are read, and how it is run (`docs/formats/copilot-cli.md`).

What reads its logs is imported when there is something to read.
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
from turnlog.agents.commands import SESSION, CommandForm, words

NAME = "copilot-cli"

LOGS = "session-state"
"""The folder of sessions below a home."""

_COMMAND = CommandForm(
    program="copilot",
    resume=("--resume",),
    prompted=("--resume", SESSION),
    packages=("@github/copilot",),
    # A subagent has no session of its own to resume: the program knows the session that contains it.
    branch=r"\..+",
    prompt=words("-p --prompt -i --interactive"),
    model=words("--model"),
    session=words("-r --resume --session-id"),
    newest=words("--continue"),
    other=words(
        "--add-dir --add-github-mcp-tool --add-github-mcp-toolset --additional-mcp-config --agent --attachment",
        "--auto-tier --context --disable-mcp-server --extension-sdk-path --log-dir --log-level --mcp-github-auth",
        "-n --name --output-format --plugin-dir --reasoning-effort --stream -C",
    ),
    lists=words("--allow-tool --deny-tool --allow-url --deny-url --available-tools --excluded-tools"),
)
"""As `copilot --help` of 1.0.102 says it."""

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {"permission.requested": "asks", "session.shutdown": "closed"}
"""No record says that a turn has ended: `assistant.turn_end` ends one model call."""


_HOOK = HookHandler({"timeout": 10})

_HOOKS = HookSettings(
    home=BUILT_IN[NAME].homes,
    # Versions up to 1.0.49 at least pass over hooks in `settings.json`.
    file="hooks/turnlog.json",
    project_file=".github/hooks/turnlog.json",
    more={"version": 1},
    # `PermissionRequest` is not among them: its event names the session in another way.
    events={
        "SessionStart": _HOOK,
        "UserPromptSubmit": _HOOK,
        "PreToolUse": _HOOK,
        "PostToolUse": _HOOK,
        "Stop": _HOOK,
        "SessionEnd": _HOOK,
    },
)

_MCP = McpSettings(
    home=BUILT_IN[NAME].homes,
    file="mcp-config.json",
    project_file=".mcp.json",
    servers="mcpServers",
    entry={"type": "local", "tools": ["*"]},
)


class CopilotCli(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Copilot CLI"
    colour = Colour(light="#693abb", dark="#ad87ed")
    parser_version = 6
    homes = BUILT_IN[NAME].homes
    log_folders = (LOGS,)
    command = _COMMAND
    turn_markers = _TURN_MARKERS
    hooks = _HOOKS
    mcp = _MCP

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Logs, facts about their sessions, plans and checkpoints below a home."""
        from turnlog.agents.copilot_cli.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A record is of a known kind, with an id, and names the record before it."""
        from turnlog.agents.copilot_cli.sources import detect_log

        return detect_log(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of hook events, or of a file next to it."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.copilot_cli.sidecars import CopilotSidecarFold

            return CopilotSidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.copilot_cli.hooks import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        from turnlog.agents.copilot_cli.fold import CopilotFold

        return CopilotFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`data` of the record with the call's result."""
        from turnlog.agents.copilot_cli.tools import structured_result

        return structured_result(record, tool_call_id)
