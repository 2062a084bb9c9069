"""Cursor: where the editor and its program for the terminal keep conversations, and how they are read.

`docs/formats/cursor.md` describes them. What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from turnlog import paths
from turnlog.agents.base import (
    Colour,
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
from turnlog.agents.database_agent import DatabaseAgent
from turnlog.paths import Folders

if TYPE_CHECKING:
    from turnlog.model import Session

NAME: Final = "cursor"

TURN_END: Final = "turn_ended"

IN_EDITOR: Final = "in_editor"
"""Marks a conversation of the editor in the metadata of a session."""

_COMMAND: Final = CommandForm(
    program="cursor-agent",
    resume=("--resume",),
    joins_words=True,
    model=words("-m --model"),
    session=words("--resume"),
    other=words("--output-format --workspace --mode --endpoint -e -H --header --api-key -a"),
)
"""Of the documentation, September 2026."""

_MCP: Final = McpSettings(
    home=Folders(("~/.cursor",)), file="mcp.json", project_file=".cursor/mcp.json", servers="mcpServers"
)
"""The same file for the editor and for its program for the terminal, wherever either keeps its conversations."""

_HOOK: Final = HookHandler({})

_HOOKS: Final = HookSettings(
    home=Folders(("~/.cursor",)),
    file="hooks.json",
    project_file=".cursor/hooks.json",
    events={
        "sessionStart": _HOOK,
        "beforeSubmitPrompt": _HOOK,
        "afterAgentResponse": _HOOK,
        "preToolUse": _HOOK,
        "postToolUse": _HOOK,
        "postToolUseFailure": _HOOK,
        "stop": _HOOK,
        "sessionEnd": _HOOK,
    },
    form="handlers",
    more={"version": 1},
    session_field="conversation_id",
    note="This follows Cursor's documentation; no run was recorded. A Cursor that does not know an event may pass"
    " over the whole file.",
)

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {TURN_END: "end"}


class Cursor(DatabaseAgent):
    """See `turnlog.agents.database_agent`."""

    name = NAME
    display_name = "Cursor"
    colour = Colour(light="#5f6b00", dark="#c3d14a")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    reader = "turnlog.agents.cursor.sources"
    log_folders = ("projects", "chats", "acp-sessions", "globalStorage")
    command = _COMMAND
    turn_markers = _TURN_MARKERS
    hooks = _HOOKS
    mcp = _MCP

    def home_folders(self) -> Sequence[Path]:
        """The folders of the program for the terminal, then those of the editor."""
        rules = (BUILT_IN[NAME].homes, *BUILT_IN[NAME].others)
        return tuple(dict.fromkeys(folder for rule in rules for folder in paths.folders(rule)))

    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a transcript, of hook events, of the rows of a conversation, or of what is known about it."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.cursor.hooks import HOOK_FORMAT
            from turnlog.agents.hook_events import HookFold

            return HookFold(HOOK_FORMAT, source, state)
        from turnlog.agents.cursor.sources import make_fold

        return make_fold(source, state)

    def resumes(self, session: Session) -> bool:
        """See `Agent.resumes`. The program for the terminal knows no conversation of the editor."""
        return not session.metadata.get(NAME, {}).get(IN_EDITOR)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The object that the editor keeps of a result."""
        from turnlog.agents.cursor.bubbles import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """See `RowAgent.holds_rows`."""
        from turnlog.agents.cursor.sources import holds_rows

        return holds_rows(source)
