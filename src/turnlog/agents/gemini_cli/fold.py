"""The fold of one Gemini CLI log: a header, messages that replace each other by id, and patches of the whole list.

A file of JSON is one header with all messages in it, rewritten whole; a log of lines says the same in pieces.
What a later record drops stays; of two readings of one message the fuller counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli import lists
from turnlog.agents.gemini_cli.calls import places_of
from turnlog.agents.gemini_cli.contents import pieces_of, spoken_in
from turnlog.agents.gemini_cli.earlier import earlier_file, was_cleared
from turnlog.agents.gemini_cli.kinds import KINDS, MESSAGE_TYPES, Becomes, kind_of_patch
from turnlog.agents.gemini_cli.logged import Logged
from turnlog.agents.gemini_cli.origins import asks_subagent
from turnlog.agents.gemini_cli.projects import project_of, read_plain, session_named
from turnlog.agents.gemini_cli.reading import Reading, aware_or_none
from turnlog.agents.gemini_cli.records import LINES, UPDATES, Record, Update, fields_of
from turnlog.agents.gemini_cli.rounds import split_rounds
from turnlog.agents.gemini_cli.sources import first_place, parent_of
from turnlog.agents.gemini_cli.state import State, decode_state, encode_state
from turnlog.agents.gemini_cli.torn import sound_messages
from turnlog.agents.jsonl import count_lines
from turnlog.agents.reading import aware


class GeminiCliFold:
    """Reads one log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else State()
        self._project = project_of(source)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        reading = Reading(
            self._state,
            unnamed=PurePath(self._source.path).stem,
            is_subagent=self._source.kind is SourceKind.SUBAGENT,
            parent=parent_of(self._source),
            project=self._project,
            place=first_place(self._source),
        )
        if self._source.session_id is not None:
            reading.state.session = self._source.session_id.partition(":")[2]
        elif reading.state.session is None and data and not _begins_with_header(data):
            reading.state.session = session_named(self._source)
        if self._source.appendable:
            _read_lines(reading, data, offset)
        else:
            _read_whole(reading, data, self._source)
        self._state = reading.state
        return reading.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


def _begins_with_header(data: bytes) -> bool:
    end = data.find(b"\n")
    return data.find(b'"sessionId"', 0, end if end >= 0 else len(data)) >= 0


def _read_lines(reading: Reading, data: bytes, offset: int) -> None:
    first = reading.state.lines + 1
    for record, json, position, length, number in LINES.read(data, offset, first, reading.changes):
        reading.previous_end = reading.position + reading.length
        reading.json, reading.position, reading.length, reading.line_number = json, position, length, number
        reading.tell_of_bytes()
        _read_record(reading, record)
    reading.state.lines += count_lines(data)


def _read_whole(reading: Reading, data: bytes, source: Source) -> None:
    """A file of JSON: its messages count as records of their own."""
    reading.is_whole = True
    text = data.strip(_EDGES).removeprefix(b"\xef\xbb\xbf").lstrip(_EDGES)
    reading.json, reading.position, reading.length, reading.line_number = text, max(data.find(text), 0), len(text), 1
    if not text:
        reading.changes.counts.blank += 1
        return
    found = LINES.decode(text)
    if isinstance(found, str):
        reading.tell(found)
        reading.changes.counts.unreadable += 1
        reading.json = text = sound_messages(text)
        found = LINES.decode(text)
        if isinstance(found, str) or found.record.session_id is None:
            return
    for problem in found.problems:
        reading.tell(problem.reason, problem.severity, problem.json_path)
    reading.json = found.json
    reading.tell_of_bytes()
    reading.state.branched = True
    reading.merges_rounds = found.record.kind is None
    if found.record.kind is None and not _is_of_subagent(found.record):
        _go_on(reading, found.record, source)
    _read_record(reading, found.record)
    counts = reading.changes.counts
    counts.unreadable += len(found.record.messages or ()) - counts.messages - counts.results - counts.events + 1


_EDGES = b" \t\r\n\x00"


def _go_on(reading: Reading, record: Record, source: Source) -> None:
    """Begin behind what an earlier file has of the session, when the history was shortened in between."""
    earlier = earlier_file(source)
    if record.session_id is None or earlier is None or was_cleared(source, record.session_id, record.start_time):
        return
    fold = GeminiCliFold(earlier, None)
    fold.feed(read_plain(Path(earlier.path), -1), 0)
    before = decode_state(fold.state())
    if before.session == record.session_id and before.leaf is not None:
        reading.go_on_from(before, before.leaf)


def _read_record(reading: Reading, record: Record) -> None:
    counts = reading.changes.counts
    if record.type in MESSAGE_TYPES and record.session_id is None:
        logged = Logged(record, reading.json, reading.position, reading.length)
        counted = lists.append(reading, logged)
        _count(reading, record, is_message=counted)
        return
    counts.events += 1
    if isinstance(record.update, Raw):
        _read_patch(reading, record.update)
    elif record.rewind_to is not None:
        lists.rewind(reading, record.rewind_to)
    elif record.session_id is not None and record.type is None:
        _read_header(reading, record)
    else:
        reading.add_record(record.type or "", aware_or_none(record.timestamp), known=False)


def _count(reading: Reading, record: Record, *, is_message: bool) -> None:
    counts = reading.changes.counts
    if is_message:
        counts.messages += 1
    elif record.type == "user":
        counts.results += 1
    else:
        counts.events += 1


def _read_header(reading: Reading, record: Record) -> None:
    """The session's facts. One that comes again is the same session, taken up again."""
    if record.start_time is not None and not reading.state.file:
        reading.state.file = f"{aware(record.start_time):%Y%m%dT%H%M%S}."
    if not reading.is_subagent and _is_of_subagent(record):
        reading.enter_subagent(record.session_id or "")
    else:
        reading.enter(record.session_id or "")
    reading.state.reopened = bool(reading.state.active)
    reading.note_times(record.start_time, record.last_updated)
    _note_facts(reading, record.summary, record.directories)
    reading.add_fact("header", aware_or_none(record.start_time), _without_messages(reading.json))
    if record.messages is not None:
        items = list(_logged(reading, record.messages, is_copy=False))
        lists.replace(reading, items)
        if reading.is_whole:
            for item in items:
                if item.is_later_round:
                    continue
                _count(reading, item.record, is_message=_is_message(reading, item))


def _is_of_subagent(record: Record) -> bool:
    """Whether a log among those of sessions is a subagent's, which has the session's id: its kind says so in 0.34.

    0.30 has no kinds: there its first message is what a subagent is asked.
    """
    if record.kind is not None or not record.messages:
        return record.kind == "subagent"
    first = LINES.decode(bytes(record.messages[0]))
    return not isinstance(first, str) and asks_subagent(spoken_in(pieces_of(first.record.content)))


def _is_message(reading: Reading, item: Logged) -> bool:
    entry = reading.state.entries.get(item.key)
    return entry is not None and entry.is_message


def _read_patch(reading: Reading, raw: Raw) -> None:
    found = UPDATES.decode(bytes(raw))
    fields = fields_of(clean_json(bytes(raw)))
    kind = kind_of_patch(fields)
    if isinstance(found, str):
        reading.tell(found, json_path="$.$set")
        reading.add_record(kind, None, known=kind in KINDS)
        return
    for problem in found.problems:
        reading.tell(problem.reason, problem.severity, f"$.$set{problem.json_path}")
    _apply(reading, found.record, kind, raw)


def _apply(reading: Reading, update: Update, kind: str, raw: Raw) -> None:
    if update.session_id is not None:
        reading.enter(update.session_id)
    reading.note_times(update.last_updated)
    _note_facts(reading, update.summary, update.directories)
    if update.messages is not None:
        lists.replace(reading, list(_logged(reading, update.messages, is_copy=True)))
    at = aware_or_none(update.last_updated)
    becomes = KINDS.get(kind)
    if becomes is None:
        reading.add_record(kind, at, known=False)
    elif becomes is Becomes.CHECKPOINT:
        reading.add_fact(kind, at)
    else:
        reading.add_fact(kind, at, Raw(clean_json(bytes(raw))))


def _note_facts(reading: Reading, summary: str | None, directories: Sequence[str] | None) -> None:
    if summary and not reading.is_subagent:
        reading.session.titles["summary"] = summary
    if directories and reading.session.project_path is None:
        reading.note_folder(directories[0])


def _logged(reading: Reading, messages: Sequence[Raw], *, is_copy: bool) -> Iterator[Logged]:
    """The messages of a list, each with its place in the file. What is none is told of."""
    for index, (raw, position, length) in enumerate(places_of(messages, reading.json, reading.position)):
        found = LINES.decode(bytes(raw))
        path = f"messages[{index}]"
        if isinstance(found, str) or found.record.type not in MESSAGE_TYPES:
            reading.tell(found if isinstance(found, str) else "not a known message", json_path=path)
            continue
        for problem in found.problems:
            reading.tell(problem.reason, problem.severity, f"{path}{problem.json_path}")
        logged = Logged(found.record, found.json, position, length, is_copy)
        if reading.merges_rounds and found.record.type == "gemini":
            yield from split_rounds(logged)
        else:
            yield logged


def _without_messages(json: bytes) -> Raw:
    fields = fields_of(clean_json(json))
    return Raw(msgspec.json.encode({name: value for name, value in fields.items() if name != "messages"}))
