"""Whether a file is Codex's, and of which version: by its content."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Raw

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.codex import NAME
from turnlog.agents.codex.record_kinds import ITEM_TYPES, TYPES
from turnlog.agents.codex.records import CodexLine, Meta, read_lines, thread_named_in
from turnlog.agents.codex.sidecars import names_a_thread, read_entries
from turnlog.agents.codex.sources import IMPORTS, renamed, source_of
from turnlog.agents.files import decompress, is_compressed
from turnlog.agents.jsonl import whole_lines

_BEFORE_ENVELOPES = "0.3x or older"
"""The version of logs without envelopes, which name none."""


def detect_log(path: Path, head: bytes) -> Detection:
    """Whether a file is a rollout or a sidecar. The version is that of the first record which names one."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SIDECAR:
        if source.path.endswith(IMPORTS):
            return Detection(agent=NAME, source=source)
        # Kimi Code has an index of the same name.
        entries_read = [entry for entry, *_ in read_entries(whole_lines(head), 0, 1, Changes())]
        if entries_read and not any(map(names_a_thread, entries_read)):
            return Detection(reason="no line names a thread")
        return Detection(agent=NAME, source=source)
    head = decompress(str(path), head).data
    beginning = whole_lines(head)
    records = [record for record, *_ in read_lines(beginning, 0, 1, Changes())]
    if not records:
        return Detection(reason="no line is a JSON object")
    bare = _is_bare(records)
    if not bare and not any(_is_ours(record) for record in records):
        return Detection(reason="no record has a known type and a payload")
    version = _BEFORE_ENVELOPES if bare else next(filter(None, map(_version_in, records)), None)
    return Detection(agent=NAME, version=version, source=_source(path, source, beginning))


def _is_ours(record: CodexLine) -> bool:
    return record.type in TYPES and isinstance(record.payload, Raw)


def _is_bare(records: list[CodexLine]) -> bool:
    """Whether it is a log without envelopes: an id and a time, then marks and items."""
    first, *others = records
    if first.type or first.id is None or first.timestamp is None or first.payload is not msgspec.UNSET:
        return False
    return all(record.record_type == "state" or record.type in ITEM_TYPES for record in others)


def _version_in(record: CodexLine) -> str | None:
    if record.type != "session_meta" or not isinstance(record.payload, Raw):
        return None
    try:
        return msgspec.json.decode(record.payload, type=Meta).cli_version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _source(path: Path, known: Source | None, head: bytes) -> Source:
    """The source. Of a log that was copied under another name, the records name the thread.

    When the beginning was lost and no record names a thread, the file's name takes its place.
    """
    if known is not None:
        return known
    place = path.absolute()
    found = Source(agent=NAME, path=str(place), root=str(place.parent), appendable=not is_compressed(path.name))
    return renamed(found, thread_named_in(head) or path.stem)
