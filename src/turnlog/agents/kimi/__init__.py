"""Kimi Code and its predecessor Kimi CLI: where their logs are, how they are read, and how they are run.

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
from turnlog.agents.commands import CommandForm, words

KIMI_CODE = "kimi-code"
KIMI_CLI = "kimi-cli"

_COMMAND = CommandForm(
    program="kimi",
    resume=("--session",),
    packages=("@moonshot-ai/kimi-code",),
    prompt=words("-p --prompt"),
    model=words("-m --model"),
    session=words("-S --session"),
    other=words("--output-format --skills-dir --agent --agent-file --add-dir"),
    branch=r"\..+",
)
"""Of 2.1.0."""

_CODE_MARKERS: Final[Mapping[str, TurnMarker]] = {"turn.ended": "end", "interaction.request": "asks"}

_CLI_MARKERS: Final[Mapping[str, TurnMarker]] = {"TurnEnd": "end", "ApprovalRequest": "asks", "QuestionRequest": "asks"}

_MCP = McpSettings(
    home=BUILT_IN[KIMI_CODE].homes, file="mcp.json", project_file=".kimi-code/mcp.json", servers="mcpServers"
)

_HOOK = HookHandler({"timeout": 5})


def _hooks(agent: str) -> HookSettings:
    # Either program refuses settings with an event that it does not know: these are known to every version with hooks.
    return HookSettings(
        home=BUILT_IN[agent].homes,
        file="config.toml",
        project_file=None,
        events={
            "SessionStart": _HOOK,
            "UserPromptSubmit": _HOOK,
            "PreToolUse": _HOOK,
            "PostToolUse": _HOOK,
            "PostToolUseFailure": _HOOK,
            "Notification": _HOOK,
            "Stop": _HOOK,
            "StopFailure": _HOOK,
            "SessionEnd": _HOOK,
        },
        form="toml-list",
    )


class KimiCode(Agent):
    """Kimi Code (`docs/formats/kimi-code.md`)."""

    name = KIMI_CODE
    display_name = "Kimi Code"
    colour = Colour(light="#1f5dc2", dark="#6bc3f4")
    parser_version = 7
    homes = BUILT_IN[KIMI_CODE].homes
    log_folders = ("sessions",)
    command = _COMMAND
    turn_markers: Mapping[str, TurnMarker] = _CODE_MARKERS
    mcp = _MCP
    hooks = _hooks(KIMI_CODE)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The log of each agent of each session, the facts about the session, and the index of sessions."""
        from turnlog.agents.kimi.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log begins with its protocol's version, and has records of known kinds."""
        from turnlog.agents.kimi.sources import detect_log

        return detect_log(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of hook events, or of the facts about a session."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.hook_events import HookFold
            from turnlog.agents.kimi.hooks import CODE_HOOKS

            return HookFold(CODE_HOOKS, source, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.kimi.sidecars import KimiIndexFold, KimiSidecarFold

            return KimiIndexFold() if source.appendable else KimiSidecarFold(source)
        from turnlog.agents.kimi.fold import KimiCodeFold

        return KimiCodeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: a result is what the model got."""
        return None


class KimiCli(Agent):
    """Kimi CLI, which Kimi Code replaced (`docs/formats/kimi-cli.md`). Both programs are called `kimi`."""

    name = KIMI_CLI
    display_name = "Kimi CLI"
    colour = Colour(light="#425f85", dark="#9fcfce")
    parser_version = 4
    homes = BUILT_IN[KIMI_CLI].homes
    log_folders = ("sessions",)
    turn_markers: Mapping[str, TurnMarker] = _CLI_MARKERS
    hooks = _hooks(KIMI_CLI)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The log of each session and subagent, and the files next to it."""
        from turnlog.agents.kimi.cli_sources import find_cli_sources

        return find_cli_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has messages of known kinds, each with a payload."""
        from turnlog.agents.kimi.cli_sources import detect_cli_log

        return detect_cli_log(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of hook events, or of a file next to the log."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.hook_events import HookFold
            from turnlog.agents.kimi.hooks import CLI_HOOKS

            return HookFold(CLI_HOOKS, source, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.kimi.cli_sources import CliFoldersFold, CliSidecarFold

            return CliSidecarFold(source) if source.session_id is not None else CliFoldersFold(source)
        from turnlog.agents.kimi.cli_fold import KimiCliFold

        return KimiCliFold(source, state)

    def obeys(self, source: Source) -> bool:
        """The facts about a session, unless they are known to give it no rights."""
        if source.kind is not SourceKind.SIDECAR:
            return False
        from turnlog.agents.kimi.cli_sources import give_rights

        return give_rights(Path(source.path))

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: a result is what the model got."""
        return None
