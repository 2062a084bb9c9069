"""The fold of one session's row log: each line is a message with its parts, the session, or something about it.

A line has all that its reading needs (see `rows.TimelineEntry`). So the state is no more than the version of OpenCode,
which decides how tokens were counted. `OpenCodeContext` knows the line that is being read and the session, and collects
what one feed has found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

import msgspec

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    SessionChange,
)
from turnlog.agents.decoding import json_of, list_of, object_of, text_of
from turnlog.agents.handoffs import MARK, Carried, continuation, handed_over_facts, read_mark
from turnlog.agents.opencode import NAME
from turnlog.agents.opencode.messages import (
    ABORTED,
    StepMessage,
    cost_of,
    is_mixed,
    read_message,
    updated_at,
    usage_of,
)
from turnlog.agents.opencode.rows import (
    EVENT,
    MESSAGE,
    PROJECT,
    SESSION,
    TABLES,
    TO_DOS,
    Row,
    RowVersion,
    TimelineEntry,
    bad_times,
    decode_line,
    document_of,
    event_kind,
    outcome_of,
    session_id,
    time_position,
    to_datetime,
    to_int,
)
from turnlog.agents.opencode.snapshot import (
    documents_of,
    is_session_message,
    project_facts,
    read_session,
    session_info,
    subagent_of,
    todo_facts,
)
from turnlog.model import (
    CompactionEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    Provenance,
    ProviderData,
    RecordEvent,
    RewindEvent,
    TextPart,
    ToolCallPart,
)
from turnlog.model.session import TitleSource, title_from

_HAS_NO_DIRECTORY = re.compile(r"0\.[0-5]\.")
"""Versions whose sessions do not have their working directory; their answers have it."""


class OpenCodeFold:
    """Reads one session's rows. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        """Begin at the start of the log, or where `state` left off: it is the version of OpenCode."""
        self._source = source
        self._version = state.decode() if state else ""

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = OpenCodeContext(self._source, self._version)
        for line in data.split(b"\n"):
            if line:
                read_line(context, line, (offset, len(line)))
            offset += len(line) + 1
        self._version = context.version
        return context.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return self._version.encode()


def read_line(context: OpenCodeContext, data: bytes, record: tuple[int, int]) -> None:
    """Read one line of the row log.

    Args:
        context: The feed.
        data: The line's JSON.
        record: The bytes of the source that hold it: offset and length.
    """
    context.record = record
    try:
        line = decode_line(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        context.add_diagnostic(str(error))
        context.changes.counts.unreadable += 1
        return
    reader = _READERS.get(line.table)
    if reader is not None:
        _read_by(context, reader, line)
    elif TABLES.get(line.table) == "nothing":
        context.changes.counts.duplicates += 1
    else:
        context.add_record(line, line.table, known=line.table in TABLES)


def _read_by(context: OpenCodeContext, reader: _Reader, line: RowVersion) -> None:
    try:
        reader(context, line)
    except RecursionError:
        context.add_diagnostic("nested too deep")
        context.changes.counts.unreadable += 1


class OpenCodeContext:
    """The context of one feed."""

    def __init__(self, source: Source, version: str) -> None:
        """Begin before the first line, with the version of OpenCode that made the session ("" when not known)."""
        self.changes = Changes()
        self.version = version
        self.source = source
        self.session_id = source.session_id or ""
        self.external = self.session_id.partition(":")[2]
        self.record: tuple[int, int] = (0, 0)
        """Byte offset and length of the line in its source."""
        self._session: SessionChange | None = None
        self._steps: dict[str, Sequence[StepMessage]] = {}

    def latest(
        self, key: str, steps: Sequence[StepMessage], read: Callable[..., Iterable[StepMessage]]
    ) -> Sequence[StepMessage]:
        """The steps of a message, of which the feed may have an earlier version; `read` reads them with another time.

        Logs of older versions of turnlog have no `since`: a version without a later time than the one before it gets
        one here.
        """
        before = self._steps.get(key)
        if before and steps:
            at, now = before[0].message.updated_at, steps[0].message.updated_at
            if at is not None and now is not None and (now < at or (now == at and is_mixed(before, steps))):
                # Less than the milliseconds in which rows count, so that a next version is later than this one.
                steps = tuple(read(updated_at=at + timedelta(microseconds=1)))
        self._steps[key] = steps
        return steps

    def documents(self, line: RowVersion) -> tuple[Row, list[Row]]:
        """The JSON of a message and that of its parts. What has none is empty, and becomes a diagnostic."""
        if not is_session_message(line.row):
            info = self._document(line.row, "row") | subagent_of(line.row)
            return info, [self._part(row, number) for number, row in enumerate(line.parts)]
        try:
            return documents_of(line.row, ())
        except (ValueError, RecursionError) as error:
            self.add_diagnostic(f"not a JSON object: {error}", "$.row")
            return {}, []

    def _document(self, row: Row, path: str) -> Row:
        try:
            return document_of(row) if row else {}
        except (ValueError, RecursionError) as error:
            self.add_diagnostic(f"not a JSON object: {error}", f"$.{path}")
            return {}

    def _part(self, row: Row, number: int) -> Row:
        """The JSON of a part with its id, which a database keeps in a column."""
        part = self._document(row, f"parts[{number}]")
        return part if "id" in part or "id" not in row else part | {"id": row["id"]}

    def add_record(self, line: RowVersion, kind: str, *, known: bool) -> None:
        """Add a row that is no message as an event with its JSON."""
        data = object_of(_document_or_none(line.row)) or line.row
        event = RecordEvent(
            id=f"{line.table}.{line.key}",
            kind=kind,
            known=known,
            position=_position_of_row(line.row, data),
            data=json_of(data),
            records=self.provenance(line),
        )
        self.add_event(event, counted=True)

    def add_event(self, event: Any, *, counted: bool) -> None:
        """Add an event to the session. `counted`: it is what became of the line, so the line counts as an event."""
        self.changes.events.append(EventChange(session_id=self.session_id, event=event))
        self.changes.counts.events += counted

    def provenance(self, line: RowVersion) -> tuple[Provenance, ...]:
        """The provenance of what is read from the line."""
        offset, length = self.record
        key = f"{line.table}/{line.key}" if line.key else line.table
        return (Provenance(source=self.source.path, offset=offset, length=length, key=key),)

    def link(
        self,
        kind: Any,
        parent: str,
        child: str,
        call: str | None = None,
        message: str | None = None,
        *,
        inferred: bool = False,
    ) -> None:
        """Add that `parent` (an id of the model, or OpenCode's own) led to the session `child` (an id of the model)."""
        parent = parent if parent.startswith(f"{self.source.agent}:") else session_id(parent, self.source.agent)
        self.changes.links.append(
            Link(
                kind=kind,
                parent_session_id=parent,
                child_session_id=child,
                tool_call_id=call,
                message_id=message,
                inferred=inferred,
            )
        )

    def merge_session(self, change: SessionChange) -> None:
        """Merge facts into the feed's change of the session; those with the greater position win."""
        known = self._session
        if known is None:
            self._session = self.changes.sessions[self.session_id] = change
            return
        older, newer = sorted((known, change), key=lambda fact: fact.position)
        joined = {
            name: getattr(newer, name) if getattr(newer, name) is not None else getattr(older, name)
            for name in ("project_path", "cwd", "agent_version", "reported_cost", "active_leaf")
        }
        self._session = self.changes.sessions[self.session_id] = SessionChange(
            session_id=self.session_id,
            position=newer.position,
            titles={**older.titles, **newer.titles},
            first_at=min((at for at in (older.first_at, newer.first_at) if at), default=None),
            last_at=max((at for at in (older.last_at, newer.last_at) if at), default=None),
            has_branches=older.has_branches or newer.has_branches,
            metadata=_merge_metadata(older.metadata, newer.metadata),
            **joined,
        )

    def report_times(self, *values: Row) -> None:
        """Add a diagnostic for each time in rows and JSON that is none, and therefore left out."""
        for name in dict.fromkeys(name for each in values for name in bad_times(each)):
            self.add_diagnostic(f"{name} is no time")

    def add_diagnostic(self, reason: str, path: str | None = None) -> None:
        """Add a diagnostic about the line, with the JSON path in it."""
        offset, length = self.record
        self.changes.diagnostics.append(Diagnostic(offset=offset, length=length, reason=reason, json_path=path))


def _position_of_row(row: Row, data: Row) -> int:
    known = row.get("time_created") or object_of(data.get("time")).get("created") or data.get("time")
    return time_position(to_int(known))


def _document_or_none(row: Row) -> Row | None:
    try:
        return document_of(row)
    except (ValueError, RecursionError):
        return None


def _merge_metadata(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    joined = {**older, **newer}
    for name in older.keys() & newer.keys():
        if isinstance(older[name], dict) and isinstance(newer[name], dict):
            joined[name] = _merge_metadata(older[name], newer[name])
    return joined


# -- messages


def _read_message(context: OpenCodeContext, line: RowVersion) -> None:
    entry = line.entry or TimelineEntry(position=0)
    info, parts = context.documents(line)
    parts = parts or [object_of(part) for part in list_of(info.get("parts"))]
    if info.get("role") not in ("user", "assistant"):
        context.add_record(line, MESSAGE, known=True)
        return
    context.report_times(line.row, info)
    context.report_times(*line.parts, *parts, *(object_of(part.get("state")) for part in parts))
    # The rows of a fork's copy are as old as the fork: the original's times hold.
    updated = None if entry.copy_of else to_datetime(entry.since) or updated_at(line, info, parts)
    # What versions of OpenCode did says nothing of programs with their own numbers.
    version = context.version if context.source.agent == NAME else None
    carried = read_mark(info.get(MARK))
    if carried is not None:
        _note_handoff(context, carried)
    read = partial(read_message, line.key, info, parts, entry, version=version)
    for step in context.latest(line.key, tuple(read(updated_at=updated)), read):
        _add_message(context, step, line, entry, handed_over=carried is not None)
    context.changes.counts.messages += 1
    folder = text_of(object_of(info.get("path")).get("cwd"))
    if folder is not None and _HAS_NO_DIRECTORY.match(context.version or ""):
        context.merge_session(SessionChange(session_id=context.session_id, project_path=folder, cwd=folder))
    _add_compaction(context, line, entry, info)
    _add_compaction_call(context, line, entry, info, updated)
    _add_interruption(context, entry, info, parts)


def _note_handoff(context: OpenCodeContext, carried: Carried) -> None:
    """Link the session that this one continues, which every carried message names."""
    link = continuation(carried, context.session_id)
    if link not in context.changes.links:
        context.changes.links.append(link)
        context.merge_session(SessionChange(session_id=context.session_id, metadata=handed_over_facts(carried)))


def _add_message(
    context: OpenCodeContext, step: StepMessage, line: RowVersion, entry: TimelineEntry, *, handed_over: bool
) -> None:
    offset, length = context.record
    records: list[RecordRef] = [(offset, length, None)]
    # Results have no record of their own: they are in the row of their call, at the position when it ended.
    records += [(position, 0, name) for name, position in step.results]
    fate = Fate.RETRACTED if line.deleted else Fate.ACTIVE
    placement = Placement(
        session_id=context.session_id,
        position=step.position,
        records=tuple(records),
        record_ids=(step.message.id,),
        parent_id=step.parent,
        turn=entry.turn,
        step=step.step,
        fate=fate,
        copied=handed_over or entry.copy_of is not None,
        handed_over=handed_over,
    )
    context.changes.messages.append(MessageChange(message=step.message, placement=placement))
    at = step.message.created_at
    last = step.message.completed_at or at
    context.merge_session(
        SessionChange(
            session_id=context.session_id,
            position=step.position,
            first_at=None if entry.copy_of or handed_over else at,
            last_at=None if handed_over else last,
            titles=_title(step.message) if entry.turn == 1 else {},
        )
    )
    if entry.copied_from is not None:
        context.link("fork", entry.copied_from, context.session_id, inferred=True)
    for child in step.children if entry.copy_of is None else ():
        context.link(
            "subagent",
            context.session_id,
            session_id(child.session, context.source.agent),
            child.tool_call_id,
            step.message.id,
        )


def _title(message: Message) -> dict[TitleSource, str]:
    """The title of a session that has no other: its first prompt."""
    if message.origin not in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        return {}
    texts = (part.text for part in message.parts if isinstance(part, TextPart) and not part.metadata)
    title = title_from(" ".join(texts))
    return {"prompt": title} if title else {}


def _add_compaction(context: OpenCodeContext, line: RowVersion, entry: TimelineEntry, info: Row) -> None:
    if entry.compacts is None:
        return
    message_id = entry.id_of(line.key)
    event = CompactionEvent(
        id=f"{message_id}.compaction",
        position=entry.compacts,
        created_at=to_datetime(to_int(object_of(info.get("time")).get("created"))),
        trigger="auto" if entry.automatic else "manual",
        summary_message_id=message_id,
        kept_message_ids=entry.kept,
        records=context.provenance(line),
    )
    context.add_event(event, counted=False)
    context.merge_session(SessionChange(session_id=context.session_id, has_branches=True))


def _add_compaction_call(
    context: OpenCodeContext, line: RowVersion, entry: TimelineEntry, info: Row, updated: datetime | None
) -> None:
    """Add the model call of a compaction whose row has its tokens: the summary is no answer of the conversation."""
    usage = usage_of(info.get("tokens"), context.version)
    if info.get("role") != "user" or usage is None or entry.copy_of is not None:
        return
    offset, length = context.record
    provider = text_of(info.get("providerID"))
    model = text_of(info.get("modelID"))
    message = Message(
        id=f"{entry.id_of(line.key)}.usage",
        role="assistant",
        created_at=to_datetime(to_int(object_of(info.get("time")).get("created"))),
        updated_at=updated,
        model=model,
        usage=usage,
        cost=cost_of(info.get("cost")),
        provider=ProviderData(name=provider, model=model) if provider else None,
        metadata={NAME: {"call": "compaction"}},
    )
    placement = Placement(
        session_id=context.session_id,
        position=entry.position + 1,
        records=((offset, length, None),),
        fate=Fate.SIDECAR,
    )
    context.changes.messages.append(MessageChange(message=message, placement=placement))


def _add_interruption(context: OpenCodeContext, entry: TimelineEntry, info: Row, parts: list[Row]) -> None:
    if info.get("role") != "assistant" or object_of(info.get("error")).get("name") not in ABORTED:
        return
    message = context.changes.messages[-1].message
    is_at_tool = any(isinstance(part, ToolCallPart) and part.state == "aborted" for part in message.parts)
    event = InterruptEvent(
        id=f"{message.id}.interrupt",
        position=entry.position + 1,
        created_at=message.completed_at,
        during="tool" if is_at_tool else "answer",
        message_id=message.id,
        derived=True,
    )
    context.add_event(event, counted=False)


# -- the session and what belongs to it


def _read_session(context: OpenCodeContext, line: RowVersion) -> None:
    context.changes.counts.events += 1
    found = read_session(line.row, context.session_id)
    if found is None:
        context.add_diagnostic("the session's JSON cannot be read")
        return
    context.report_times(line.row, _document_or_none(line.row) or {})
    change, parent = found
    context.version = change.agent_version or context.version
    change.position = change.position if line.position is None else line.position
    change.active_leaf = context.external if line.leaf is None else line.leaf
    change.has_branches = line.restored
    # `session.revert` hides messages without deleting them: they are `rewound` until it is cleared.
    if line.leaf is not None and line.reverted_from is not None:
        change.has_branches = True
        event = RewindEvent(
            id=f"{context.external}.revert.{line.reverted_from}",
            position=line.reverted_from,
            created_at=change.last_at,
            to_message_id=line.leaf or None,
            records=context.provenance(line),
        )
        context.add_event(event, counted=False)
    context.merge_session(change)
    if parent:
        context.link("subagent", session_id(parent, context.source.agent), context.session_id)
    origin = text_of((_document_or_none(line.row) or session_info(line.row)).get("forkSessionID"))
    if origin:
        context.link("fork", origin, context.session_id)


def _read_todo(context: OpenCodeContext, line: RowVersion) -> None:
    context.changes.counts.events += 1
    position, facts = todo_facts(line.rows)
    position = position if line.position is None else line.position
    context.merge_session(
        SessionChange(session_id=context.session_id, position=position, metadata={NAME: {"todo": facts}})
    )


def _read_project(context: OpenCodeContext, line: RowVersion) -> None:
    context.changes.counts.events += 1
    facts = {NAME: {"project": project_facts(line.row)}}
    context.merge_session(SessionChange(session_id=context.session_id, position=line.position or 0, metadata=facts))


def _read_event(context: OpenCodeContext, line: RowVersion) -> None:
    kind = event_kind(str(line.row.get("type")))
    outcome = outcome_of(kind)
    # A stream has no rows but those that its events were put together to: there such an event is all that there is.
    if outcome == "duplicate" or (outcome == "row" and context.source.kind is not SourceKind.STREAM):
        context.changes.counts.duplicates += 1
    else:
        context.add_record(line, kind, known=outcome is not None)


_Reader: TypeAlias = Callable[[OpenCodeContext, RowVersion], None]

_READERS: dict[str, _Reader] = {
    MESSAGE: _read_message,
    SESSION: _read_session,
    TO_DOS: _read_todo,
    PROJECT: _read_project,
    EVENT: _read_event,
}
