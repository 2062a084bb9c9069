"""klaude-code: where its logs lie and how they are read. `docs/formats/klaude.md` has the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog import paths
from turnlog.agents.base import Changes, Detection, Fold, Source, SourceKind
from turnlog.agents.folders import holds_folder
from turnlog.agents.klaude.fold import KlaudeFold
from turnlog.agents.klaude.kinds import CONVERSATION_ITEMS, HISTORY_EVENTS
from turnlog.agents.klaude.messages import structured_result
from turnlog.agents.klaude.records import LINES
from turnlog.agents.klaude.sidecars import SidecarFold
from turnlog.agents.klaude.sources import NAME, find_sources, session_id, source_of


class Klaude:
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "klaude-code"
    parser_version = 3

    def roots(self) -> Sequence[Path]:
        """The `.klaude` folder, where it holds logs."""
        return [root for root in paths.klaude_roots() if holds_folder(root, "projects")]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Logs, the facts beside them, and images below the roots."""
        for root in self.roots() if roots is None else roots:
            yield from find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A record names a class of klaude-code's, and holds its data. No record names a version, the class a range."""
        source = source_of(path)
        if source is not None and source.kind is not SourceKind.SESSION:
            return Detection(agent=NAME, source=source)
        lines = head.split(b"\n")
        records = list(LINES.read(lines[:-1] if len(lines) > 1 else lines, 0, 1, Changes()))
        kinds = [record.type for record, *_ in records if isinstance(record.data, msgspec.Raw)]
        ours = next((kind for kind in kinds if kind in HISTORY_EVENTS or kind in CONVERSATION_ITEMS), None)
        if ours is None:
            return Detection(reason="no record of a known class with data" if records else "no line is a JSON object")
        is_old = any(kind in CONVERSATION_ITEMS for kind in kinds)
        return Detection(agent=NAME, version="1.x" if is_old else "2.x", source=source or _elsewhere(path))

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, of the facts beside it, or of an image."""
        if source.kind in (SourceKind.SIDECAR, SourceKind.SPILL):
            return SidecarFold(source)
        return KlaudeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`ui_extra` of the record that brought the call's result."""
        return structured_result(record, tool_call_id)


def _elsewhere(path: Path) -> Source:
    """A log that lies somewhere else: no record names its session, its folder or its own name does."""
    place = path.absolute()
    external = place.parent.name if place.stem == "events" else place.stem
    return Source(agent=NAME, path=str(place), root=str(place.parent), session_id=session_id(external or "events"))
