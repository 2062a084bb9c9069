"""Copilot Chat in VS Code: where its conversations are and how they are read (`docs/formats/vscode-copilot.md`).

What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source, TurnMarker
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.editors import user_folders

NAME: Final = "vscode-copilot"

RESPONSE_END: Final = "response_end"

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {RESPONSE_END: "end"}


class CopilotChat(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "VS Code Copilot Chat"
    colour = Colour(light="#1f6cb0", dark="#57afe0")
    parser_version = 2
    log_folders = ("workspaceStorage", "globalStorage")
    turn_markers = _TURN_MARKERS

    def home_folders(self) -> Sequence[Path]:
        """The folders of VS Code's users, and of its servers."""
        return user_folders(BUILT_IN[NAME].homes)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The conversations of each workspace, and those of windows without one."""
        from turnlog.agents.copilot_chat.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A conversation has requests, or is a log of changes to one."""
        from turnlog.agents.copilot_chat.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a conversation."""
        from turnlog.agents.copilot_chat.fold import CopilotChatFold

        return CopilotChatFold(source)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`resultDetails` of the call."""
        from turnlog.agents.copilot_chat.contents import structured_result

        return structured_result(record, tool_call_id)
