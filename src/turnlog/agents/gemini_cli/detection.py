"""Whether a file is Gemini CLI's, by its first records. No record names a version: the shape of the log is told."""

from __future__ import annotations

import re
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.gemini_cli.kinds import MESSAGE_TYPES
from turnlog.agents.gemini_cli.records import LINES, Record
from turnlog.agents.gemini_cli.sources import NAME, source_of
from turnlog.agents.jsonl import whole_lines

_EDGE = rb"(?:[\s\x00]|\xef\xbb\xbf)*"
"""What may stand before a file of JSON after a crash or an editor: the fold leaves it out, too."""
_WHOLE = re.compile(_EDGE + rb'\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"projectHash"')
_TYPED = re.compile(_EDGE + rb'\[\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"messageId"\s*:')


def detect_log(path: Path, head: bytes) -> Detection:
    """A log begins with a header that has a `sessionId` and a `projectHash`; one that lost it is known by its place."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SPILL:
        return Detection(agent=NAME, source=source)
    if _TYPED.match(head):
        return Detection(agent=NAME, version="logs.json", source=source or _typed(path))
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    header = next((record for record in records if _is_header(record)), None)
    if header is not None and (header.messages is None or len(records) > 1):
        return Detection(agent=NAME, version="JSONL", source=_found(source, path, header.kind, appendable=True))
    if header is not None or _WHOLE.match(head):
        kind = header.kind if header is not None else None
        return Detection(agent=NAME, version="JSON", source=_found(source, path, kind, appendable=False))
    if source is not None and source.appendable and any(map(_is_message, records)):
        return Detection(agent=NAME, version="JSONL", source=source)
    return Detection(reason="no header with a sessionId and a projectHash" if records else "no line is a JSON object")


def _is_header(record: Record) -> bool:
    return record.session_id is not None and record.project_hash is not None


def _is_message(record: Record) -> bool:
    return record.type in MESSAGE_TYPES and record.id is not None and record.timestamp is not None


def _found(source: Source | None, path: Path, kind: str | None, *, appendable: bool) -> Source:
    """The source by its place; a log that lies somewhere else is what its header says."""
    if source is not None and source.kind is not SourceKind.SIDECAR:
        return source
    place = path.absolute()
    return Source(
        agent=NAME,
        path=str(place),
        root=str(place.parent),
        kind=SourceKind.SUBAGENT if kind == "subagent" else SourceKind.SESSION,
        appendable=appendable,
    )


def _typed(path: Path) -> Source:
    place = path.absolute()
    return Source(agent=NAME, path=str(place), root=str(place.parent), kind=SourceKind.SIDECAR, appendable=False)
