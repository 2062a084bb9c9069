"""Detects klaude-code's files: a record has the name of a class of its history, and that class's data."""

from __future__ import annotations

from pathlib import Path

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.klaude.records import CONVERSATION_ITEMS, HISTORY_EVENTS, LINES
from turnlog.agents.klaude.sources import NAME, session_id, source_of


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`. No record has a version, but classes differ by version."""
    source = source_of(path)
    if source is not None and source.kind is not SourceKind.SESSION:
        return Detection(agent=NAME, source=source)
    records = list(LINES.read(whole_lines(head), 0, 1, Changes()))
    kinds = [record.type for record, *_ in records if isinstance(record.data, msgspec.Raw)]
    ours = next((kind for kind in kinds if kind in HISTORY_EVENTS or kind in CONVERSATION_ITEMS), None)
    if ours is None:
        return Detection(reason="no record of a known class with data" if records else "no line is a JSON object")
    is_old = any(kind in CONVERSATION_ITEMS for kind in kinds)
    return Detection(agent=NAME, version="1.x" if is_old else "2.x", source=source or _log_source(path))


def _log_source(path: Path) -> Source:
    """A log that lies somewhere else. No record names its session, so the name of its folder or its own name does."""
    absolute = path.absolute()
    external = absolute.parent.name if absolute.stem == "events" else absolute.stem
    return Source(
        agent=NAME, path=str(absolute), root=str(absolute.parent), session_id=session_id(external or "events")
    )
