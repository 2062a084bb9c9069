"""Exports of chat services: ChatGPT and Claude.ai (`docs/formats/chatgpt.md`, `docs/formats/claude-ai.md`).

An export is a zip or a folder that the user downloads. It is read by `turnlog import`, or from a folder for exports
next to the store. What reads it is imported when there is something to read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from turnlog import paths
from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.files import entries

if TYPE_CHECKING:
    from turnlog.agents.chat_exports.export_files import Service

CHATGPT: Final = "chatgpt"
CLAUDE_AI: Final = "claude-ai"


class ExportAgent(RowAgent):
    """A service whose conversations are in exports. See `turnlog.agents.base.Agent` and `RowAgent`."""

    parser_version = 2

    @abstractmethod
    def service(self) -> Service:
        """How its exports look."""

    def home_folders(self) -> Sequence[Path]:
        """The folder in which the user may put exports."""
        return paths.folders(BUILT_IN[self.name].homes)

    def roots(self) -> Sequence[Path]:
        """That folder, if there is something in it."""
        return [home for home in self.home_folders() if home.is_dir() and entries(str(home))]

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Each conversation of each export."""
        from turnlog.agents.chat_exports.sources import find_sources

        return find_sources(self.service(), root)

    def sources_in(self, folder: Path) -> Iterable[Source]:
        """Each conversation of each export in a folder, and each export that is damaged."""
        from turnlog.agents.chat_exports.sources import is_damaged

        return [each for each in self.find_sources(folder) if each.session_id is not None or is_damaged(each)]

    def detect(self, path: Path, head: bytes) -> Detection:
        """A list of conversations, or a zip with one."""
        from turnlog.agents.chat_exports.sources import detect_file

        return detect_file(self.service(), path, head)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """There is none: a result is what the record of the tool says."""
        return None

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.chat_exports.sources import sources_at

        return sources_at(self.service(), path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.chat_exports.sources import version_of

        return version_of(self.service(), source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.chat_exports.sources import read_rows

        return read_rows(self.service(), source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.chat_exports.sources import restore_rows

        return restore_rows(source, log, to)


class ChatGpt(ExportAgent):
    """Exports of ChatGPT."""

    name = CHATGPT
    display_name = "ChatGPT"
    colour = Colour(light="#38804b", dark="#7fd1ab")

    def service(self) -> Service:
        """See `ExportAgent.service`."""
        from turnlog.agents.chat_exports.chatgpt import SERVICE

        return SERVICE

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a conversation."""
        from turnlog.agents.chat_exports.chatgpt import ChatGptFold

        return ChatGptFold(source, state)


class ClaudeAi(ExportAgent):
    """Exports of Claude.ai."""

    name = CLAUDE_AI
    display_name = "Claude.ai"
    colour = Colour(light="#a5524d", dark="#d8a48c")

    def service(self) -> Service:
        """See `ExportAgent.service`."""
        from turnlog.agents.chat_exports.claude_ai import SERVICE

        return SERVICE

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a conversation."""
        from turnlog.agents.chat_exports.claude_ai import ClaudeAiFold

        return ClaudeAiFold(source, state)
