"""Detects Gemini CLI's files by their first records. No record has a version, so a detection names the log's shape."""

from __future__ import annotations

import re
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.gemini_cli.records import LINES, MESSAGE_TYPES, Record
from turnlog.agents.gemini_cli.sources import NAME, source_of
from turnlog.agents.jsonl import whole_lines

_EDGE = rb"(?:[\s\x00]|\xef\xbb\xbf)*"
"""What may stand before a file of JSON after a crash or an editor. The fold leaves it out, too."""
_JSON_LOG = re.compile(_EDGE + rb'\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"projectHash"')
_PROMPT_LOG = re.compile(_EDGE + rb'\[\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"messageId"\s*:')


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`; the file is not opened.

    A log begins with a header that has a `sessionId` and a `projectHash`. A log that lost its header is recognised by
    its folder and name.
    """
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SPILL:
        return Detection(agent=NAME, source=source)
    if _PROMPT_LOG.match(head):
        return Detection(agent=NAME, version="logs.json", source=source or _prompt_log_source(path))
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    header = next((record for record in records if _is_header(record)), None)
    if header is not None and (header.messages is None or len(records) > 1):
        return Detection(agent=NAME, version="JSONL", source=_log_source(source, path, header.kind, appendable=True))
    if header is not None or _JSON_LOG.match(head):
        kind = header.kind if header is not None else None
        return Detection(agent=NAME, version="JSON", source=_log_source(source, path, kind, appendable=False))
    if source is not None and source.appendable and any(map(_is_message, records)):
        return Detection(agent=NAME, version="JSONL", source=source)
    return Detection(reason="no header with a sessionId and a projectHash" if records else "no line is a JSON object")


def _is_header(record: Record) -> bool:
    return record.session_id is not None and record.project_hash is not None


def _is_message(record: Record) -> bool:
    return record.type in MESSAGE_TYPES and record.id is not None and record.timestamp is not None


def _log_source(source: Source | None, path: Path, kind: str | None, *, appendable: bool) -> Source:
    """The source by its folder and name; for a log that lies somewhere else, what its header says."""
    if source is not None and source.kind is not SourceKind.SIDECAR:
        return source
    absolute = path.absolute()
    return Source(
        agent=NAME,
        path=str(absolute),
        root=str(absolute.parent),
        kind=SourceKind.SUBAGENT if kind == "subagent" else SourceKind.SESSION,
        appendable=appendable,
    )


def _prompt_log_source(path: Path) -> Source:
    absolute = path.absolute()
    return Source(agent=NAME, path=str(absolute), root=str(absolute.parent), kind=SourceKind.SIDECAR, appendable=False)
