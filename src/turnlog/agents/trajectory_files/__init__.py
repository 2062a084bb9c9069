"""Trajectories of the Agent Trajectory Interchange Format, ATIF (`docs/formats/atif.md`).

A trajectory is a file in which any program may write what an agent did: harbor, turnlog (`turnlog.formats.atif`) and
others. It is read by `turnlog import`, or from a folder for trajectories next to the store. What reads it is imported
when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.files import entries

NAME: Final = "atif"


class Atif(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "ATIF"
    colour = Colour(light="#6d5a00", dark="#ccc882")
    parser_version = 3
    homes = BUILT_IN[NAME].homes

    def roots(self) -> Sequence[Path]:
        """The folder for trajectories, if there is something in it."""
        return [home for home in self.home_folders() if home.is_dir() and entries(str(home))]

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Each trajectory in a folder and in the folders there. It is read to know its session."""
        from turnlog.agents.trajectory_files.sources import find_sources

        return find_sources(root, depth=1)

    def sources_in(self, folder: Path) -> Iterable[Source]:
        """Each trajectory in a folder that a user names, as deep as harbor puts them into the folder of a job."""
        from turnlog.agents.trajectory_files.sources import find_sources

        return find_sources(folder, depth=6)

    def detect(self, path: Path, head: bytes) -> Detection:
        """An object that names the version of the format, or has numbered steps."""
        from turnlog.agents.trajectory_files.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a trajectory and those of its subagents."""
        from turnlog.agents.trajectory_files.fold import TrajectoryFold

        return TrajectoryFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts, images and sounds."""
        return None

    def holds_rows(self, source: Source) -> bool:
        """Every source: a trajectory is kept with the images that it names."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.trajectory_files.sources import source_at

        source = source_at(path, root)
        if source is not None:
            yield source

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.trajectory_files.sources import version_of

        return version_of(Path(source.path))

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.trajectory_files.sources import read_rows

        return read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.trajectory_files.sources import restore_rows

        return restore_rows(source, log, to)
