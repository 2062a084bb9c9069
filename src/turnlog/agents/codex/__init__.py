"""Codex: where its logs are, how they are read, and how it is run (`docs/formats/codex.md`).

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

NAME = "codex"

FOLDERS = ("sessions", "archived_sessions")
"""The folders of rollouts below a home."""

BRANCH = r"_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""End of a branch's name, after its thread: when a prompt is changed, the thread continues in another file."""

_HOMES = BUILT_IN[NAME].homes

_COMMAND = CommandForm(
    program="codex",
    resume=("resume",),
    prompted=("exec", "resume", "--skip-git-repo-check", SESSION, "-"),
    packages=("@openai/codex",),
    branch=BRANCH,
    subcommands=(("exec", "resume"), ("e", "resume"), ("exec",), ("e",), ("resume",), ()),
    resumes=frozenset({("exec", "resume"), ("e", "resume"), ("resume",)}),
    newest=words("--last"),
    model=words("-m --model"),
    other=words(
        "-c --config --enable --disable --local-provider -p --profile -s --sandbox -a --ask-for-approval",
        "-C --cd --add-dir --thread-source --cyber-access-program --output-schema --color -o",
        "--output-last-message -i --image",
    ),
)
"""As `codex exec --help` of 0.169.0 says it."""

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {
    "event_msg/task_started": "start",
    "event_msg/turn_started": "start",
    "turn.started": "start",
    "event_msg/task_complete": "end",
    "event_msg/turn_complete": "end",
    "event_msg/turn_aborted": "end",
    "turn.completed": "end",
    "event_msg/apply_patch_approval_request": "asks",
    "event_msg/elicitation_request": "asks",
    "event_msg/exec_approval_request": "asks",
    "event_msg/request_permissions": "asks",
    "event_msg/request_user_input": "asks",
}
"""Which events begin and end a turn, and which ask the user."""

_AWAITED = HookHandler({"timeout": 10})

_HOOKS = HookSettings(
    home=_HOMES,
    file="hooks.json",
    project_file=".codex/hooks.json",
    events={
        "SessionStart": _AWAITED,
        "UserPromptSubmit": _AWAITED,
        "PreToolUse": _AWAITED,
        "PermissionRequest": _AWAITED,
        "PostToolUse": _AWAITED,
        "Stop": _AWAITED,
        "SessionEnd": _AWAITED,
    },
    note="Codex asks once whether you trust these hooks, in its own screen; until then it does not start them.",
)

_MCP = McpSettings(
    home=_HOMES,
    file="config.toml",
    project_file=".codex/config.toml",
    servers="mcp_servers",
    form="toml",
)


class Codex(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Codex"
    colour = Colour(light="#0f7b6c", dark="#4fc3b0")
    parser_version = 27
    homes = _HOMES
    log_folders = FOLDERS
    command = _COMMAND
    turn_markers = _TURN_MARKERS
    hooks = _HOOKS
    mcp = _MCP
    handoff = "turnlog.agents.codex.handoff:WRITER"
    interactive_command = "turnlog.chat.runtimes:CodexServerCommand"

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Rollouts and sidecars below a home."""
        from turnlog.agents.codex.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has records of known types with a payload; in 2025 they are items after a line with an id.

        A stream names a thread that starts, or has known items.
        """
        from turnlog.agents.codex.detection import detect_log
        from turnlog.agents.codex.stream import EXEC_JSON
        from turnlog.agents.printed_stream import detect_printed

        found = detect_log(path, head)
        return found if found.agent is not None else detect_printed(EXEC_JSON, path, head) or found

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a rollout, a sidecar, a stream or hook events."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.codex.tools import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.codex.stream import EXEC_JSON
            from turnlog.agents.printed_stream import PrintedFold

            return PrintedFold(EXEC_JSON, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.codex.sidecars import CodexImportsFold, CodexSidecarFold
            from turnlog.agents.codex.sources import IMPORTS

            return CodexImportsFold(source) if source.path.endswith(IMPORTS) else CodexSidecarFold(source, state)
        from turnlog.agents.codex.fold import CodexFold

        return CodexFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The item or event that describes the outcome of a call in addition to its output."""
        from turnlog.agents.codex.stream_records import exec_structured_result
        from turnlog.agents.codex.tool_results import structured_result

        return structured_result(record, tool_call_id) or exec_structured_result(record, tool_call_id)
