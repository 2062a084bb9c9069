"""Gemini CLI: where its logs are, how they are read, and how it is run (`docs/formats/gemini-cli.md`).

What reads its logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
)
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import SESSION, CommandForm, words

NAME = "gemini-cli"

_HOMES = BUILT_IN[NAME].homes

_COMMAND = CommandForm(
    program="gemini",
    resume=("--resume",),
    prompted=("--resume", SESSION),
    packages=("@google/gemini-cli",),
    joins_words=True,
    prompt=words("-p --prompt -i --prompt-interactive"),
    model=words("-m --model"),
    session=words("-r --resume"),
    other=words("--approval-mode -o --output-format --session-file --delete-session"),
    lists=words("--policy --allowed-mcp-server-names --allowed-tools -e --extensions --include-directories"),
)
"""Of 0.61."""

_NAMED = HookHandler({"name": "turnlog", "timeout": 10_000})

_HOOKS = HookSettings(
    home=_HOMES,
    file="settings.json",
    project_file=".gemini/settings.json",
    # Not the events of each request and each piece of an answer: a process for every one would slow it down.
    events={
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

_MCP = McpSettings(home=_HOMES, file="settings.json", project_file=".gemini/settings.json", servers="mcpServers")


class GeminiCli(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Gemini CLI"
    colour = Colour(light="#2f6fd0", dark="#7fb0f5")
    parser_version = 14
    homes = _HOMES
    log_folders = ("tmp",)
    command = _COMMAND
    hooks = _HOOKS
    mcp = _MCP
    handoff = "turnlog.agents.gemini_cli.handoff:WRITER"

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Logs, subagents, spilled outputs and the log of prompts below a home."""
        from turnlog.agents.gemini_cli.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has a header with a `sessionId` and a `projectHash`, a stream an `init` with a `session_id`."""
        from turnlog.agents.gemini_cli.sources import detect_log
        from turnlog.agents.gemini_cli.stream import STREAM_JSON
        from turnlog.agents.printed_stream import detect_printed

        found = detect_log(path, head)
        return found if found.agent is not None else detect_printed(STREAM_JSON, path, head) or found

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, the log of prompts, a spilled output, a stream or hook events."""
        if source.kind in (SourceKind.SIDECAR, SourceKind.SPILL):
            from turnlog.agents.gemini_cli.sidecars import GeminiSidecarFold

            return GeminiSidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.gemini_cli.tools import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.gemini_cli.stream import STREAM_JSON
            from turnlog.agents.printed_stream import PrintedFold

            return PrintedFold(STREAM_JSON, state)
        from turnlog.agents.gemini_cli.fold import GeminiCliFold

        return GeminiCliFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`resultDisplay` of the call, from the record with its result."""
        from turnlog.agents.gemini_cli.tools import structured_result

        return structured_result(record, tool_call_id)
