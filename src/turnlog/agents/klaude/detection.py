"""Whether a file is klaude-code's: a record names a class of its history, and holds its data."""

from __future__ import annotations

from pathlib import Path

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.klaude.kinds import CONVERSATION_ITEMS, HISTORY_EVENTS
from turnlog.agents.klaude.records import LINES
from turnlog.agents.klaude.sources import NAME, session_id, source_of


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its place and its first bytes. No record names a version, the class a range."""
    source = source_of(path)
    if source is not None and source.kind is not SourceKind.SESSION:
        return Detection(agent=NAME, source=source)
    records = list(LINES.read(whole_lines(head), 0, 1, Changes()))
    kinds = [record.type for record, *_ in records if isinstance(record.data, msgspec.Raw)]
    ours = next((kind for kind in kinds if kind in HISTORY_EVENTS or kind in CONVERSATION_ITEMS), None)
    if ours is None:
        return Detection(reason="no record of a known class with data" if records else "no line is a JSON object")
    is_old = any(kind in CONVERSATION_ITEMS for kind in kinds)
    return Detection(agent=NAME, version="1.x" if is_old else "2.x", source=source or _elsewhere(path))


def _elsewhere(path: Path) -> Source:
    """A log that lies somewhere else: no record names its session, its folder or its own name does."""
    place = path.absolute()
    external = place.parent.name if place.stem == "events" else place.stem
    return Source(agent=NAME, path=str(place), root=str(place.parent), session_id=session_id(external or "events"))
