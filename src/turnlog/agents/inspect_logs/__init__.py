"""Logs of evaluations that Inspect writes, `.eval` and `.json` (`docs/formats/inspect-ai.md`).

A log has samples, and each of them is a session. It is read by `turnlog import`, or from a folder for logs next to the
store. What reads it is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, TurnMarker, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.files import entries

NAME: Final = "inspect-ai"

SAMPLE_END: Final = "sample-end"
"""The kind of the event with the scores of a sample, and with the limit that it reached."""

_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {SAMPLE_END: "end"}


class InspectAi(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "Inspect"
    colour = Colour(light="#556da3", dark="#99bdd3")
    parser_version = 2
    homes = BUILT_IN[NAME].homes
    turn_markers = _TURN_MARKERS

    def roots(self) -> Sequence[Path]:
        """The folder for logs, if there is something in it."""
        return [home for home in self.home_folders() if home.is_dir() and entries(str(home))]

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Each sample of each log in a folder and in the folders there."""
        from turnlog.agents.inspect_logs.sources import find_sources

        return find_sources(root, depth=1)

    def sources_in(self, folder: Path) -> Iterable[Source]:
        """Each sample of each log in a folder that a user names, and each log that is damaged."""
        from turnlog.agents.inspect_logs.sources import find_sources, is_damaged

        return [each for each in find_sources(folder, depth=4) if each.session_id is not None or is_damaged(each)]

    def detect(self, path: Path, head: bytes) -> Detection:
        """An object with an evaluation, or a zip with one."""
        from turnlog.agents.inspect_logs.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a sample."""
        from turnlog.agents.inspect_logs.fold import SampleFold

        return SampleFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts and files."""
        return None

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.inspect_logs.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.inspect_logs.sources import version_of

        return version_of(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.inspect_logs.sources import read_rows

        return read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.inspect_logs.sources import restore_rows

        return restore_rows(source, log, to)
