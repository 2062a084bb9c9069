"""Whether a file is Claude Code's, and of which version, by its first records."""

from __future__ import annotations

from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.claude_code.record_kinds import TYPES
from turnlog.agents.claude_code.records import Record, read_lines
from turnlog.agents.claude_code.sources import NAME, source_of
from turnlog.agents.claude_code.stream import read_stream_lines
from turnlog.agents.claude_code.stream_records import STREAM_KINDS, StreamRecord
from turnlog.agents.jsonl import whole_lines

_SIDECARS = (SourceKind.SIDECAR, SourceKind.SPILL)


def detect_log(path: Path, head: bytes) -> Detection:
    """Whether a file is a log or a sidecar. The version is that of the first record which names one."""
    source = source_of(path)
    if source is not None and source.kind in _SIDECARS:
        return Detection(agent=NAME, source=source)
    records = [record for record, *_ in read_lines(whole_lines(head), 0, 1, Changes())]
    if not records:
        return Detection(reason="no line is a JSON object")
    ours = [record for record in records if _is_ours(record)]
    if not ours:
        return Detection(reason="no record has a known type and a sessionId")
    version = next((record.version for record in ours if record.version is not None), None)
    return Detection(agent=NAME, version=version, source=source or _source(path, ours))


def detect_stream(path: Path, head: bytes) -> Detection | None:
    """Whether a file is a stream, or input for `--input-format stream-json`; None when it is neither."""
    records = [record for record, *_ in read_stream_lines(whole_lines(head), 0, 1, Changes())]
    if not any(_is_streamed(record) for record in records) and not _are_prompt_lines(records):
        return None
    version = next((record.claude_code_version for record in records if record.claude_code_version), None)
    place = path.absolute()
    source = Source(agent=NAME, path=str(place), root=str(place.parent), kind=SourceKind.STREAM)
    return Detection(agent=NAME, version=version, source=source)


def _is_streamed(record: StreamRecord) -> bool:
    """Whether a line is of a stream: a log writes `sessionId`. A stream has `uuid` only since 1.0.8x."""
    return record.kind in STREAM_KINDS and record.session_id is not None


def _are_prompt_lines(records: list[StreamRecord]) -> bool:
    """Whether all lines are prompts in the form of the Messages API, without the ids that a log's records have."""
    return bool(records) and all(
        record.type == "user"
        and record.uuid is None
        and record.wire_message is not None
        and record.wire_message.role == "user"
        for record in records
    )


def _is_ours(record: Record) -> bool:
    if record.type not in TYPES:
        return False
    return record.session_id is not None or (record.type == "summary" and record.leaf_uuid is not None)


def _source(path: Path, records: list[Record]) -> Source:
    """The source of a log outside of its home: its records say whether it is a subagent's."""
    root = str(path.absolute().parent)
    kind = SourceKind.SUBAGENT if all(record.is_sidechain for record in records) else SourceKind.SESSION
    return Source(agent=NAME, path=str(path.absolute()), root=root, kind=kind)
