"""Droid of Factory: where its logs are, how they are read, and how it is run (`docs/formats/droid.md`).

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

NAME = "droid"

TURN_END = "agent_turn_outcome"
"""The kind of the record that ends a turn (0.215.0)."""

_COMMAND = CommandForm(
    program="droid",
    resume=("--resume",),
    prompted=("exec", "--session-id", SESSION),
    packages=("droid",),
    subcommands=(("exec",), ()),
    model=words("-m --model"),
    system_prompt=words("--append-system-prompt"),
    session=words("-s --session-id -r --resume --fork"),
    other=words(
        "-o --output-format --input-format -f --file --auto --reasoning-effort --spec-model --spec-reasoning-effort",
        "--only-tools --add-tools --remove-tools --cwd --tag --log-group-id --worker-model --worker-reasoning-effort",
        "--validator-model --validator-reasoning-effort --append-system-prompt-file --settings",
    ),
)
"""Of 0.215.0."""


_HOOK = HookHandler({"timeout": 10})

_HOOKS = HookSettings(
    home=BUILT_IN[NAME].homes,
    file="hooks.json",
    project_file=".factory/hooks.json",
    events={
        "SessionStart": _HOOK,
        "UserPromptSubmit": _HOOK,
        "PreToolUse": _HOOK,
        "PostToolUse": _HOOK,
        "Notification": _HOOK,
        "Stop": _HOOK,
        "SessionEnd": _HOOK,
    },
    # With this file there, hooks in `settings.json` do not count.
    field=None,
)

_MCP = McpSettings(
    home=BUILT_IN[NAME].homes,
    file="mcp.json",
    project_file=".factory/mcp.json",
    servers="mcpServers",
    entry={"type": "stdio"},
)


class Droid(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Droid"
    colour = Colour(light="#a44c1d", dark="#f0995b")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    log_folders = ("sessions",)
    command = _COMMAND
    turn_markers = {TURN_END: "end"}
    hooks = _HOOKS
    mcp = _MCP

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Logs and the settings next to them, below a home."""
        from turnlog.agents.droid.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log begins with a `session_start` that has an id and a title."""
        from turnlog.agents.droid.sources import detect_log

        return detect_log(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of hook events, or of the settings next to it."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.droid.sidecars import DroidSidecarFold

            return DroidSidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.droid.hooks import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        from turnlog.agents.droid.fold import DroidFold

        return DroidFold(source, state)

    def obeys(self, source: Source) -> bool:
        """Settings of a session, unless they are known to allow little without asking."""
        if source.kind is not SourceKind.SIDECAR:
            return False
        from turnlog.agents.droid.sidecars import allow_little

        return not allow_little(Path(source.path))

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The object that the text of a result is, such as the changed lines of an edit."""
        from turnlog.agents.droid.contents import structured_result

        return structured_result(record, tool_call_id)
