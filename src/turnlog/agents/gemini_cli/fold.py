"""The fold of one Gemini CLI log: a header, messages that replace each other by id, and patches of the whole list.

A file of JSON (up to 0.38) is one header with all messages in it, and is rewritten whole; a log of lines holds the same
in pieces. What a later record drops stays in the history; of two records of one message the one with more in it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path, PurePath
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import aware, clean_json, fields_of
from turnlog.agents.files import read_regular_file
from turnlog.agents.gemini_cli.conversation import append_message, apply_checkpoint, apply_rewind, is_message_key
from turnlog.agents.gemini_cli.fold_context import GeminiContext, GeminiState, aware_or_none, decode_state, encode_state
from turnlog.agents.gemini_cli.messages import LoggedMessage, is_subagent_request
from turnlog.agents.gemini_cli.records import (
    CALLS,
    LINES,
    MESSAGE_TYPES,
    RECORD_KINDS,
    UPDATES,
    GeminiCall,
    GeminiRecord,
    GeminiRecordOutcome,
    RecordUpdate,
    is_message,
    joined_text,
    kind_of_patch,
    parse_parts,
)
from turnlog.agents.gemini_cli.sidecars import (
    previous_file,
    project_path_of,
    session_id_from_name,
    was_cleared,
)
from turnlog.agents.gemini_cli.sources import base_position, parent_of
from turnlog.agents.gemini_cli.tools import call_index
from turnlog.agents.handoffs import continuation, handed_over_facts, read_mark
from turnlog.agents.json_file import locate_items, read_object
from turnlog.agents.jsonl import count_lines


class GeminiCliFold:
    """Reads one log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else GeminiState()
        self._project = project_path_of(source)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = GeminiContext(
            self._state,
            unnamed=PurePath(self._source.path).stem,
            is_subagent=self._source.kind is SourceKind.SUBAGENT,
            parent=parent_of(self._source),
            project=self._project,
            base_position=base_position(self._source),
        )
        if self._source.session_id is not None:
            context.state.session = self._source.session_id.partition(":")[2]
        # Another terminal in the folder deletes logs without a prompt, and their header with them (0.61).
        elif context.state.session is None and data and not _begins_with_header(data):
            context.state.session = session_id_from_name(self._source)
        if self._source.appendable:
            _read_lines(context, data, offset)
        else:
            _read_whole(context, data, self._source)
        self._state = context.state
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


def _begins_with_header(data: bytes) -> bool:
    end = data.find(b"\n")
    return data.find(b'"sessionId"', 0, end if end >= 0 else len(data)) >= 0


def _read_lines(context: GeminiContext, data: bytes, offset: int) -> None:
    first = context.state.lines + 1
    for record, json, position, length, number in LINES.read(data, offset, first, context.changes):
        context.previous_end = context.position + context.length
        context.json, context.position, context.length, context.line_number = json, position, length, number
        context.report_replaced_bytes()
        _read_record(context, record)
    context.state.lines += count_lines(data)


def _read_whole(context: GeminiContext, data: bytes, source: Source) -> None:
    """Read a file of JSON. Its messages count as records."""
    context.is_whole = True
    record = read_object(context, data, LINES, is_message)
    if record is None or (context.changes.counts.unreadable and record.session_id is None):
        return
    # A later version of the file may have dropped messages, of which this one says nothing: the leaf must be stored.
    context.state.branched = True
    # 0.30, which merged steps, names no kind in the header; 0.34 does.
    context.merges_steps = record.kind is None
    if record.kind is None and not _is_of_subagent(record):
        _continue_previous_file(context, record, source)
    _read_record(context, record)
    counts = context.changes.counts
    counts.unreadable += len(record.messages or ()) - counts.messages - counts.results - counts.events + 1


def _continue_previous_file(context: GeminiContext, record: GeminiRecord, source: Source) -> None:
    """Begin after the session's previous file, when the history was shortened in between; see `sidecars`."""
    previous = previous_file(source)
    if record.session_id is None or previous is None or was_cleared(source, record.session_id, record.start_time):
        return
    fold = GeminiCliFold(previous, None)
    fold.feed(read_regular_file(Path(previous.path), -1), 0)
    before = decode_state(fold.state())
    if before.session == record.session_id and before.leaf is not None:
        context.continue_from(before, before.leaf)


def _read_record(context: GeminiContext, record: GeminiRecord) -> None:
    counts = context.changes.counts
    # A header may have a `kind`, but only a message has a `type` and no session.
    if record.type in MESSAGE_TYPES and record.session_id is None:
        logged = LoggedMessage(record, context.json, context.position, context.length)
        _count(context, record, is_message=append_message(context, logged))
        return
    counts.events += 1
    if isinstance(record.update, Raw):
        _read_patch(context, record.update)
    elif record.rewind_to is not None:
        apply_rewind(context, record.rewind_to)
    elif record.session_id is not None and record.type is None:
        _read_header(context, record)
    else:
        context.add_record(record.type or "", aware_or_none(record.timestamp), known=False)


def _count(context: GeminiContext, record: GeminiRecord, *, is_message: bool) -> None:
    counts = context.changes.counts
    if is_message:
        counts.messages += 1
    elif record.type == "user":
        counts.results += 1
    else:
        counts.events += 1


def _read_header(context: GeminiContext, record: GeminiRecord) -> None:
    """Read the facts about the session. A header that comes again begins a resume of the same session."""
    # Files of one session must not share ids of events, which are made of offsets.
    if record.start_time is not None and not context.state.file:
        context.state.file = f"{aware(record.start_time):%Y%m%dT%H%M%S}."
    if not context.is_subagent and _is_of_subagent(record):
        context.use_subagent_session(record.session_id or "")
    else:
        context.use_session(record.session_id or "")
    # A resume writes the header again, then an empty list, then the whole list.
    context.state.reopened = bool(context.state.active)
    context.update_times(record.start_time, record.last_updated)
    _set_facts(context, record.summary, record.directories)
    carried = read_mark(record.turnlog)
    if carried is not None:
        context.changes.links.append(continuation(carried, context.session_id))
        context.session.metadata |= handed_over_facts(carried)
    context.add_run_metadata("header", aware_or_none(record.start_time), _without_messages(context.json))
    if record.messages is not None:
        messages = list(_messages_in(context, record.messages, is_copy=False))
        apply_checkpoint(context, messages)
        if context.is_whole:
            for logged in messages:
                if not logged.is_later_step:
                    _count(context, logged.record, is_message=is_message_key(context, logged.key))


def _is_of_subagent(record: GeminiRecord) -> bool:
    """Whether a log among those of sessions is a subagent's, which has the id of the session.

    0.34 says so in the header's kind. 0.30 has no kinds: there the first message is the subagent's prompt.
    """
    if record.kind is not None or not record.messages:
        return record.kind == "subagent"
    first = LINES.decode(bytes(record.messages[0]))
    return not isinstance(first, str) and is_subagent_request(joined_text(parse_parts(first.record.content)))


def _read_patch(context: GeminiContext, raw: Raw) -> None:
    found = UPDATES.decode(bytes(raw))
    fields = fields_of(raw)
    kind = kind_of_patch(fields)
    if isinstance(found, str):
        context.report(found, json_path="$.$set")
        context.add_record(kind, None, known=kind in RECORD_KINDS)
        return
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.$set{problem.json_path}")
    _apply_update(context, found.record, kind, raw)


def _apply_update(context: GeminiContext, update: RecordUpdate, kind: str, raw: Raw) -> None:
    if update.session_id is not None:
        context.use_session(update.session_id)
    context.update_times(update.last_updated)
    _set_facts(context, update.summary, update.directories)
    if update.messages is not None:
        apply_checkpoint(context, list(_messages_in(context, update.messages, is_copy=True)))
    at = aware_or_none(update.last_updated)
    outcome = RECORD_KINDS.get(kind)
    if outcome is None:
        context.add_record(kind, at, known=False)
    elif outcome is GeminiRecordOutcome.CHECKPOINT:
        context.add_run_metadata(kind, at)
    else:
        context.add_run_metadata(kind, at, Raw(clean_json(bytes(raw))))


def _set_facts(context: GeminiContext, summary: str | None, directories: Sequence[str] | None) -> None:
    # The summary of a subagent is its report to the session that started it.
    if summary and not context.is_subagent:
        context.session.titles["summary"] = summary
    if directories and context.session.project_path is None:
        context.set_folder(directories[0])


def _messages_in(context: GeminiContext, messages: Sequence[Raw], *, is_copy: bool) -> Iterator[LoggedMessage]:
    """The messages of a list, each with its place in the file. What is no message becomes a diagnostic."""
    for number, (raw, position, length) in enumerate(locate_items(messages, context.json, context.position)):
        found = LINES.decode(bytes(raw))
        path = f"messages[{number}]"
        if isinstance(found, str) or found.record.type not in MESSAGE_TYPES:
            context.report(found if isinstance(found, str) else "not a known message", json_path=path)
            continue
        for problem in found.problems:
            context.report(problem.reason, problem.severity, f"{path}{problem.json_path}")
        logged = LoggedMessage(found.record, found.json, position, length, is_copy)
        if context.merges_steps and found.record.type == "gemini":
            yield from split_steps(logged)
        else:
            yield logged


def _without_messages(json: bytes) -> Raw:
    fields = fields_of(json)
    return Raw(msgspec.json.encode({name: value for name, value in fields.items() if name != "messages"}))


# -- steps that were merged into one message


_SIMULTANEOUS = timedelta(milliseconds=10)
"""Calls of one step were logged within this time."""

_LocatedCall: TypeAlias = tuple[Raw, int, int]
"""A call, its byte offset and its length."""


def split_steps(logged: LoggedMessage) -> Iterator[LoggedMessage]:
    """The message as its first step left it, then a message for the calls of each later step.

    Up to 0.30 the calls of a step without text were added to the message before, which kept the tokens of its first
    step. Calls of one step were logged together: since 0.2x their ids are numbered from 0, before that they have one
    time.
    """
    record = logged.record
    first, *later = list(_steps(list(locate_items(record.tool_calls or (), logged.json, logged.position)))) or [[]]
    if not later:
        yield logged
        return
    yield logged._replace(record=msgspec.structs.replace(record, tool_calls=[raw for raw, *_ in first]))
    for number, calls in enumerate(later, 2):
        (_, start, _), (_, last, length) = calls[0], calls[-1]
        times = (_decode_call(raw).timestamp for raw, *_ in calls)
        yield LoggedMessage(
            record=msgspec.structs.replace(
                record,
                id=f"{record.id}.{number}",
                timestamp=next((time for time in times if time is not None), record.timestamp),
                content=UNSET,
                thoughts=None,
                tokens=None,
                tool_calls=[raw for raw, *_ in calls],
            ),
            json=logged.json[start - logged.position : last + length - logged.position],
            position=start,
            length=last + length - start,
            is_later_step=True,
        )


def _steps(calls: list[_LocatedCall]) -> Iterator[list[_LocatedCall]]:
    """The calls, step by step."""
    current: list[_LocatedCall] = []
    previous: GeminiCall | None = None
    for located in calls:
        call = _decode_call(located[0])
        if previous is not None and _begins_step(previous, call):
            yield current
            current = []
        current.append(located)
        previous = call
    if current:
        yield current


def _begins_step(previous: GeminiCall, call: GeminiCall) -> bool:
    number = call_index(call.id)
    # Since 0.2x ids end with the number of the call in its request.
    if number is not None:
        return number == 0
    before, after = aware_or_none(previous.timestamp), aware_or_none(call.timestamp)
    return before is not None and after is not None and abs(after - before) > _SIMULTANEOUS


def _decode_call(raw: Raw) -> GeminiCall:
    found = CALLS.decode(bytes(raw))
    return GeminiCall() if isinstance(found, str) else found.record
