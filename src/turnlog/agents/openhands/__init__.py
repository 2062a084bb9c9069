"""OpenHands CLI: where its conversations are, how they are read, and how it is run (`docs/formats/openhands.md`).

What reads its conversations is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, McpSettings, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "openhands"

STATE: Final = "base_state.json"
"""The file with the facts about a conversation and its tokens."""

CONVERSATIONS: Final = "conversations"

_COMMAND = CommandForm(
    program="openhands",
    resume=("--resume",),
    prompt=words("-t --task"),
    session=words("--resume"),
    other=words("-f --file"),
)
"""Of 1.16.0."""

_MCP = McpSettings(home=BUILT_IN[NAME].homes, file="mcp.json", project_file=None, servers="mcpServers")


class OpenHands(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "OpenHands"
    colour = Colour(light="#9f6442", dark="#ffd16b")
    parser_version = 4
    homes = BUILT_IN[NAME].homes
    log_folders = (CONVERSATIONS,)
    command = _COMMAND
    mcp = _MCP

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Every conversation: a folder with a file for each event."""
        from turnlog.agents.openhands.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """The state of a conversation names its metrics and its folder."""
        from turnlog.agents.openhands.sources import detect_state

        return detect_state(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of the files of a conversation."""
        from turnlog.agents.openhands.fold import OpenHandsFold

        return OpenHandsFold(source, state)

    def obeys(self, source: Source) -> bool:
        """A state whose hooks and servers of tools would be started."""
        from turnlog.agents.openhands.sources import has_commands

        return has_commands(Path(source.path))

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The observation of a call."""
        from turnlog.agents.openhands.contents import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.openhands.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.openhands.sources import version_of

        return version_of(Path(source.path).parent)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.openhands.sources import new_lines

        return new_lines(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.file_rows import restore_files
        from turnlog.agents.openhands.sources import rows_in

        return restore_files(source, rows_in(log), to)
