"""Mistral Vibe: where its sessions are, how they are read, and how it is run (`docs/formats/mistral-vibe.md`).

What reads its sessions is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, McpSettings, RowAgent, RowUpdate, Source, SourceKind, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "mistral-vibe"

CURRENT: Final = "CURRENT"
"""The file that names the newest generation of a session."""

LOGS: Final = "logs/session"

_COMMAND = CommandForm(
    program="vibe",
    resume=("--resume",),
    prompt=words("-p --prompt"),
    session=words("--resume"),
    other=words(
        "--workdir --output --max-turns --max-price --max-tokens --time-limit --prompt-file --output-dir --agent",
        "--enabled-tools --disabled-tools --add-dir",
    ),
)
"""Of 3.0.2."""

_MCP = McpSettings(
    home=BUILT_IN[NAME].homes,
    file="config.toml",
    project_file=".vibe/config.toml",
    servers="mcp_servers",
    form="toml-list",
    entry={"transport": "stdio"},
)


class MistralVibe(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "Mistral Vibe"
    colour = Colour(light="#d23f18", dark="#f9a782")
    parser_version = 6
    homes = BUILT_IN[NAME].homes
    log_folders = (LOGS,)
    command = _COMMAND
    mcp = _MCP
    turn_markers = {
        "turn_started": "start",
        "turn_completed": "end",
        "turn_interrupted": "end",
        "turn_failed": "end",
    }

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Every session: of 3 the rows of its folder, of 2 its log and its metadata."""
        from turnlog.agents.mistral_vibe.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """The file that names a generation, or messages of version 2 next to their metadata."""
        from turnlog.agents.mistral_vibe.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's rows, or of a log or metadata of version 2."""
        if self.holds_rows(source):
            from turnlog.agents.mistral_vibe.fold import VibeFold

            return VibeFold(source, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.mistral_vibe.old_log import VibeMetadataFold

            return VibeMetadataFold(source)
        from turnlog.agents.mistral_vibe.old_log import VibeLogFold

        return VibeLogFold(source, state)

    def obeys(self, source: Source) -> bool:
        """Prompts that are sent by a schedule."""
        from turnlog.agents.mistral_vibe.sources import has_schedule

        return has_schedule(Path(source.path))

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """What a tool answered, as the program keeps it."""
        from turnlog.agents.mistral_vibe.contents import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """Whether it is a session of version 3."""
        return Path(source.path).name == CURRENT

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.mistral_vibe.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.mistral_vibe.store import version_of

        return version_of(Path(source.path).parent)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.mistral_vibe.row_log import new_lines

        return new_lines(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.mistral_vibe.row_log import restore_rows

        return restore_rows(source, log, to)
