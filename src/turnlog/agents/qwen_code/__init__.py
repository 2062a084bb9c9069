"""Qwen Code: where its logs are, how they are read, and how it is run (`docs/formats/qwen-code.md`).

What reads its logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from turnlog.paths import folders

NAME = "qwen-code"

(_RUNTIME,) = BUILT_IN[NAME].others
"""Where sessions are written instead of the home, as `Storage.getRuntimeBaseDir` of 0.24.4 decides."""

_COMMAND = CommandForm(
    program="qwen",
    resume=("--resume",),
    prompted=("--resume", SESSION),
    packages=("@qwen-code/qwen-code",),
    joins_words=True,
    prompt=words("-p --prompt -i --prompt-interactive"),
    model=words("-m --model"),
    system_prompt=words("--system-prompt --append-system-prompt"),
    session=words("-r --resume --session-id"),
    other=words(
        "--approval-mode --auth-type --openai-api-key --openai-base-url -o --output-format --input-format",
        "--max-session-turns --max-tool-calls --proxy --sandbox-image",
    ),
    lists=words(
        "--allowed-mcp-server-names --allowed-tools --exclude-tools --core-tools -e --extensions",
        "--include-directories --add-dir",
    ),
    branch=r"\..+",
)
"""Of 0.24.4."""


_AWAITED = HookHandler({"timeout": 10})
# A hook that is not waited for may be lost when the program ends, so the last ones of a turn are waited for.
_IN_BACKGROUND = HookHandler({"timeout": 10, "async": True})

_HOOKS = HookSettings(
    home=BUILT_IN[NAME].homes,
    file="settings.json",
    project_file=".qwen/settings.json",
    events={
        "SessionStart": _IN_BACKGROUND,
        "UserPromptSubmit": _IN_BACKGROUND,
        "MessageDisplay": _IN_BACKGROUND,
        "PreToolUse": _IN_BACKGROUND,
        "PostToolUse": _IN_BACKGROUND,
        "PostToolUseFailure": _IN_BACKGROUND,
        "PermissionRequest": _IN_BACKGROUND,
        "Notification": _IN_BACKGROUND,
        "Stop": _AWAITED,
        "StopFailure": _AWAITED,
        "SessionEnd": _AWAITED,
    },
    off=((("disableAllHooks",), True),),
)

_MCP = McpSettings(
    home=BUILT_IN[NAME].homes, file="settings.json", project_file=".qwen/settings.json", servers="mcpServers"
)


class QwenCode(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Qwen Code"
    colour = Colour(light="#6247d8", dark="#8d92f9")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    log_folders = ("projects", "tmp")
    command = _COMMAND
    hooks = _HOOKS
    mcp = _MCP
    handoff = "turnlog.agents.qwen_code.handoff:WRITER"

    def home_folders(self) -> Sequence[Path]:
        """The home, and the folder that `QWEN_RUNTIME_DIR` names."""
        return tuple(dict.fromkeys((*super().home_folders(), *folders(_RUNTIME))))

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Logs, subagents with the facts next to them, and files of JSON below a home."""
        from turnlog.agents.qwen_code.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A record has Gemini's parts in Claude Code's envelope; a file of JSON has answers of type `qwen`."""
        from turnlog.agents.qwen_code.sources import detect_log

        return detect_log(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of a file of JSON, of hook events, or of the facts about a subagent."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.qwen_code.sidecars import QwenSidecarFold

            return QwenSidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.hook_events import HookFold
            from turnlog.agents.qwen_code.hooks import HOOK_FORMAT

            return HookFold(HOOK_FORMAT, source, state)
        if not source.appendable:
            from turnlog.agents.qwen_code.json_file import QwenJsonFold

            return QwenJsonFold(source)
        from turnlog.agents.qwen_code.fold import QwenCodeFold

        return QwenCodeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`resultDisplay` of the call, from the record with its result."""
        from turnlog.agents.qwen_code.results import structured_result

        return structured_result(record, tool_call_id)
