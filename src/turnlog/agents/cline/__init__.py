"""Cline CLI: where its sessions are, how they are read, and how it is run (`docs/formats/cline.md`).

What reads its sessions is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog import paths
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
from turnlog.agents.commands import CommandForm, words

NAME = "cline"

(_PARENT,) = BUILT_IN[NAME].variables
"""The variable with the folder that holds the home."""

_COMMAND = CommandForm(
    program="cline",
    resume=("--id",),
    packages=("cline",),
    joins_words=True,
    model=words("-m --model"),
    session=words("--id"),
    system_prompt=words("-s --system"),
    other=words("-P --provider -k --key --thinking -c --cwd --timeout --config"),
    branch=r"__.+",
)
"""Of 3.0.65."""

_MCP = McpSettings(
    home=BUILT_IN[NAME].homes, file="settings/cline_mcp_settings.json", project_file=None, servers="mcpServers"
)

_HOOK = HookHandler({})

_HOOKS = HookSettings(
    home=paths.Folders(("~/.cline",), variable="CLINE_DIR"),
    # Whatever a name ends in, Cline runs the file; most people's own end in `.sh`, or in nothing.
    file="hooks/{EVENT}.bash",
    project_file=".cline/hooks/{EVENT}.bash",
    events={
        "TaskStart": _HOOK,
        "TaskResume": _HOOK,
        "UserPromptSubmit": _HOOK,
        "PreToolUse": _HOOK,
        "PostToolUse": _HOOK,
        "TaskComplete": _HOOK,
        "TaskCancel": _HOOK,
        "TaskError": _HOOK,
        "SessionShutdown": _HOOK,
    },
    form="scripts",
    session_field="sessionContext.rootSessionId",
    note="Cline 3.0.65 reports no prompt, and no end of a session.",
)


class Cline(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Cline CLI"
    colour = Colour(light="#b0408f", dark="#f08fd0")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    log_folders = ("sessions",)
    command = _COMMAND
    hooks = _HOOKS
    mcp = _MCP

    def home_folders(self) -> Sequence[Path]:
        """What `CLINE_DATA_DIR` names; else `data` in the folder that `CLINE_DIR` names."""
        moved = paths.file_named_by(_PARENT, paths.home())
        named = super().home_folders()
        default = paths.home() / ".cline" / "data"
        return [moved / "data"] if moved is not None and list(named) == [default] else named

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The messages of each session and of its subagents, and the facts next to them."""
        from turnlog.agents.cline.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A file of messages names its session and its version before them."""
        from turnlog.agents.cline.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a file of messages, of hook events, or of the facts about a session."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.cline.hooks import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.cline.sidecars import ClineSidecarFold

            return ClineSidecarFold(source)
        from turnlog.agents.cline.fold import ClineFold

        return ClineFold(source)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`content` of the call's result, if it is a list of answers and not a text."""
        from turnlog.agents.cline.contents import structured_result

        return structured_result(record, tool_call_id)
