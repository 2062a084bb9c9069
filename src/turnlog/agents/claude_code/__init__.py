"""Claude Code: where its logs are, how they are read, and how it is run (`docs/formats/claude-code.md`).

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
    LogRetention,
    McpSettings,
    Source,
    SourceKind,
    TurnMarker,
)
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import SESSION, CommandForm, words
from turnlog.paths import Folders

NAME = "claude-code"

_HOMES = BUILT_IN[NAME].homes
"""1.0.30 and later may write to the XDG folder."""

_COMMAND = CommandForm(
    program="claude",
    resume=("--resume",),
    prompted=("-p", "--resume", SESSION),
    packages=("@anthropic-ai/claude-code",),
    model=words("--model"),
    system_prompt=words("--system-prompt --append-system-prompt"),
    session=words("-r --resume --session-id"),
    other=words(
        "--agent --agents --autocompact --debug-file --effort --environment --fallback-model",
        "--input-format --json-schema --max-budget-usd --max-turns --name -n --output-format",
        "--permission-mode --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url",
        "--remote-control-session-name-prefix --resume-session-at --setting-sources --settings",
        "--system-prompt-file --append-system-prompt-file --system-prompt-snapshot",
    ),
    lists=words(
        "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools --file",
        "--mcp-config --tools",
    ),
)
"""As `claude --help` of 2.1.329 says it."""

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {
    "system/turn_duration": "end",
    "system/stop_hook_summary": "end",
    "result/success": "end",
    "result/error_during_execution": "end",
    "result/error_max_budget_usd": "end",
    "result/error_max_structured_output_retries": "end",
    "result/error_max_turns": "end",
}
"""Which records end a turn. No record says that a permission is wanted: only hooks do."""

# A hook that is not waited for may be lost when the agent ends, so the last ones of a turn are waited for.
_AWAITED = {"timeout": 10}
_IN_BACKGROUND = {"timeout": 10, "async": True}

_HOOKS = HookSettings(
    home=_HOMES,
    file="settings.json",
    project_file=".claude/settings.local.json",
    # Up to 2.1.100 an event that Claude Code does not know turns off all hooks of the file, other people's too.
    events={
        "SessionStart": HookHandler(_IN_BACKGROUND),
        "UserPromptSubmit": HookHandler(_IN_BACKGROUND),
        "PreToolUse": HookHandler(_IN_BACKGROUND),
        "PostToolUse": HookHandler(_IN_BACKGROUND),
        "Notification": HookHandler(_IN_BACKGROUND),
        "Stop": HookHandler(_AWAITED),
        "SessionEnd": HookHandler(_AWAITED),
        "PermissionRequest": HookHandler(_IN_BACKGROUND, since=(2, 1, 20)),
        "PostToolUseFailure": HookHandler(_IN_BACKGROUND, since=(2, 1, 20)),
        "StopFailure": HookHandler(_AWAITED, since=(2, 1, 100)),
        "MessageDisplay": HookHandler(_IN_BACKGROUND, since=(2, 1, 200)),
    },
    off=((("disableAllHooks",), True),),
)

_MCP = McpSettings(
    # `CLAUDE_CONFIG_DIR` moves this file too, but by itself it is beside the home and not in it.
    home=Folders(("~",), variable="CLAUDE_CONFIG_DIR"),
    file=".claude.json",
    project_file=".mcp.json",
    servers="mcpServers",
    entry={"type": "stdio"},
)


class ClaudeCode(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Claude Code"
    colour = Colour(light="#bd5d38", dark="#e08a63")
    parser_version = 23
    homes = _HOMES
    log_folders = ("projects",)
    command = _COMMAND
    turn_markers = _TURN_MARKERS
    hooks = _HOOKS
    mcp = _MCP
    interactive_command = "turnlog.chat.runtimes:ClaudeCodeCommand"
    handoff = "turnlog.agents.claude_code.handoff:WRITER"
    retention = LogRetention(days=30, setting="cleanupPeriodDays", file="settings.json")
    has_usage_blocks = True

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Sessions, subagents, sidecars and spilled outputs below a home."""
        from turnlog.agents.claude_code.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has records with a `sessionId` and a type of Claude Code's, a stream has them with a `session_id`.

        A sidecar is known by its place.
        """
        from turnlog.agents.claude_code.fold import detect_log
        from turnlog.agents.claude_code.stream import detect_stream

        found = detect_log(path, head)
        return found if found.agent is not None else detect_stream(path, head) or found

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, a sidecar, a spilled output or a stream, or of hook events."""
        if source.kind in (SourceKind.SIDECAR, SourceKind.SPILL):
            from turnlog.agents.claude_code.sources import ClaudeSidecarFold

            return ClaudeSidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.claude_code.hooks import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.claude_code.stream import ClaudeStreamFold

            return ClaudeStreamFold(source, state)
        from turnlog.agents.claude_code.fold import ClaudeCodeFold

        return ClaudeCodeFold(source, state)

    def obeys(self, source: Source) -> bool:
        """Scripts of workflows, and files among outputs that would be read as instructions."""
        from turnlog.agents.claude_code.sources import is_obeyed

        return is_obeyed(source.path)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`toolUseResult` of the record that contains the call's result; None if that record has none."""
        from turnlog.agents.claude_code.tool_results import structured_result

        return structured_result(record, tool_call_id)
