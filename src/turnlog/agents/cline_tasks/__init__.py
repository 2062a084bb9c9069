"""Extensions of the Cline family: a folder of files for each task (`docs/formats/cline-extension.md`).

Cline's extension, and those that were made from it. What reads the folders is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.editors import user_folders

STORAGE: Final = "globalStorage"
TASKS: Final = "tasks"

EXTENSIONS: Final = {
    "saoudrizwan.claude-dev": "cline-extension",
    "rooveterinaryinc.roo-cline": "roo-code",
    "zoocodeorganization.zoo-code": "zoo-code",
    "kilocode.kilo-code": "kilo-extension",
    "ibm.bob-code": "ibm-bob",
}
"""Id of an extension, as its folder is called -> the agent."""


class TaskAgent(RowAgent):
    """An extension that keeps a folder for each task. See `turnlog.agents.base.Agent` and `RowAgent`."""

    extension: ClassVar[str]
    parser_version = 3
    log_folders = (TASKS,)

    def home_folders(self) -> Sequence[Path]:
        """The extension's folder in each editor."""
        return tuple(folder / STORAGE / self.extension for folder in user_folders(BUILT_IN[self.name].homes))

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Two sources for each task: its messages, and what is known about it."""
        from turnlog.agents.cline_tasks.sources import find_sources

        return find_sources(self.name, root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A list of messages in a task's folder, or one that begins with a task."""
        from turnlog.agents.cline_tasks.sources import detect_file

        return detect_file(self.name, path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of the messages of a task, or of what is known about it."""
        from turnlog.agents.cline_tasks.sources import make_fold

        return make_fold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """There is none: a result is a text."""
        return None

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.cline_tasks.sources import sources_at

        return sources_at(self.name, path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.cline_tasks.task_files import version_of

        return version_of(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.cline_tasks.task_files import read_rows

        return read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.cline_tasks.task_files import restore_rows

        return restore_rows(source, log, to)


class ClineExtension(TaskAgent):
    """Cline in an editor, and its program for the terminal before version 3, which kept the same tasks."""

    name = "cline-extension"
    display_name = "Cline extension"
    extension = "saoudrizwan.claude-dev"
    colour = Colour(light="#954886", dark="#d9a3d3")

    def home_folders(self) -> Sequence[Path]:
        """See `TaskAgent.home_folders`. The terminal's is also that of version 3, which has no tasks."""
        (terminal,) = BUILT_IN[self.name].others
        return (*super().home_folders(), *user_folders(terminal))


class RooCode(TaskAgent):
    """Roo Code, which ended in May 2026."""

    name = "roo-code"
    display_name = "Roo Code"
    extension = "rooveterinaryinc.roo-cline"
    colour = Colour(light="#637e54", dark="#a6d486")


class ZooCode(TaskAgent):
    """Zoo Code, which continues Roo Code."""

    name = "zoo-code"
    display_name = "Zoo Code"
    extension = "zoocodeorganization.zoo-code"
    colour = Colour(light="#5a6f63", dark="#a6e0c6")


class KiloExtension(TaskAgent):
    """Kilo Code in an editor, before it became the program for the terminal."""

    name = "kilo-extension"
    display_name = "Kilo Code extension"
    extension = "kilocode.kilo-code"
    colour = Colour(light="#847343", dark="#dcde87")


class IbmBob(TaskAgent):
    """IBM Bob 1, an editor with this extension built in."""

    name = "ibm-bob"
    display_name = "IBM Bob"
    extension = "ibm.bob-code"
    colour = Colour(light="#525dbd", dark="#b6aeee")
