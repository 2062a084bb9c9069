"""klaude-code: where its logs are and how they are read. `docs/formats/klaude.md` has the evidence.

What reads its logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source, SourceKind
from turnlog.agents.built_in import BUILT_IN

NAME = "klaude"


class Klaude(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "klaude-code"
    colour = Colour(light="#a73b6d", dark="#e28dae")
    parser_version = 11
    homes = BUILT_IN[NAME].homes
    log_folders = ("projects",)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Logs, the facts next to them, and images below a home."""
        from turnlog.agents.klaude.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A record names a class of klaude-code's, and holds its data."""
        from turnlog.agents.klaude.fold import detect_log

        return detect_log(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of the facts next to it, or of an image."""
        if source.kind in (SourceKind.SIDECAR, SourceKind.SPILL):
            from turnlog.agents.klaude.sidecars import KlaudeSidecarFold

            return KlaudeSidecarFold(source)
        from turnlog.agents.klaude.fold import KlaudeFold

        return KlaudeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`ui_extra` of the record with the call's result."""
        from turnlog.agents.klaude.messages import structured_result

        return structured_result(record, tool_call_id)
