"""What OpenCode prints: exports of sessions, and streams of events while it runs.

`opencode export` prints `{info, messages: [{info, parts}]}`. `opencode run --format json` prints an event per line, the
server sends its events (SSE). Both are read as the row log of such rows is read.

Events have rows in them, with the ids that the rows have in a database. So they are put together into rows. What a
database says of a message takes precedence, because an event does not say which version of the message it has. A stream
is read whole. `run` prints no prompts and mostly no thoughts; the time of its messages is the one in their ids. An
export that counts as a stream (see `sources`) is read as an export.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic, SessionChange
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.opencode import NAME
from turnlog.agents.opencode.fold import OpenCodeContext, read_line
from turnlog.agents.opencode.row_log import new_lines
from turnlog.agents.opencode.rows import (
    EVENT,
    RUN_KINDS,
    SESSION,
    Row,
    RowVersion,
    decode_line,
    document_of,
    encode_line,
    event_kind,
    is_unique,
    outcome_of,
    own_id,
    session_id,
    time_near,
    time_of,
    time_of_id,
    to_datetime,
    to_int,
)
from turnlog.agents.opencode.snapshot import ListedMessage, MessageCopy, MessageRows, Snapshot, documents_of
from turnlog.agents.opencode.tools import metadata_of_result

# -- exports


_EXPORT_HEAD = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{\s*(?P<session>"id"\s*:\s*"ses)?')

_MESSAGES_HEAD = re.compile(rb'"messages"\s*:\s*\[\s*(?:\]|\{\s*"(?:info|parts)"\s*:)')

_SESSION_FIELDS = (b'"title"', b'"directory"', b'"version"', b'"time"')

_REDACTED = "[redacted:"

_SOON_MS = 60_000
"""How far the time in an id may be from the one that is written beside it; in recorded sessions 4 ms."""

_QUEUED_MS = 24 * 60 * _SOON_MS
"""The same of a message, which a client may name long before OpenCode takes it."""


def is_export(head: bytes) -> bool:
    """Whether a file begins as an export does. Somebody may have given its session a name of their own."""
    begins = _EXPORT_HEAD.match(head)
    if begins is None or begins["session"]:
        return begins is not None
    return _MESSAGES_HEAD.search(head) is not None or all(field in head for field in _SESSION_FIELDS)


class OpenCodeExportFold(StatelessFold):
    """Reads one export."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`. The record of every message is the whole file."""
        try:
            export = parse_export(data)
        except (ValueError, RecursionError) as error:
            changes = Changes()
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), reason=f"not an export: {error}"))
            changes.counts.unreadable = 1
            return changes
        rows = ExportSession(export)
        source = msgspec.structs.replace(self._source, session_id=session_id(rows.external_id, self._source.agent))
        context = OpenCodeContext(source, "")
        # An export is read as the rows that a database with nothing but this session would have.
        for line in new_lines(rows, ()).lines:
            read_line(context, line, (0, len(data)))
        if not context.changes.messages:
            # Nothing else leads from the session back to the file.
            context.add_record(
                RowVersion(table=SESSION, key=rows.external_id, row=_row(rows.info)), SESSION, known=True
            )
        context.changes.diagnostics += [
            Diagnostic(offset=0, length=len(data), reason=reason, json_path=path, severity="note")
            for path, reason in rows.oddities
        ]
        if copies := rows.older_than_session():
            _leave_to_original(context.changes, copies, to_datetime(time_of(rows.info, "created")))
        return context.changes


class ExportSession:
    """The rows in an export. See `snapshot.RowSource`.

    In an export that somebody made anonymous, many messages, and many sessions, may have one id.
    """

    def __init__(self, export: Row) -> None:
        """Read the session and its messages. Redacted facts of a sanitized export (title, folder) count as unknown."""
        info = object_of(export.get("info"))
        messages = [object_of(message) for message in list_of(export.get("messages"))]
        self.oddities: list[tuple[str, str]] = []
        """JSON path of an id that does not say which session or message it is, and what was made of it."""
        self.info = {name: value for name, value in info.items() if not str(value).startswith(_REDACTED)}
        self._given = str(info.get("id") or "")
        self._began = time_of(self.info, "created")
        self._is_named = is_unique(self._given) and self._is_near(time_near(self._given, self._began))
        self.external_id = self._given if self._is_named else self._made_up_name(messages[:1])
        self._shared: set[str] = set()
        self._messages = self._with_keys(messages)

    def _is_near(self, time: int) -> bool:
        return not self._began or abs(time - self._began) <= _SOON_MS

    def _made_up_name(self, first: list[Row]) -> str:
        """A name for a session whose id OpenCode did not make, and which may stand for others too.

        A later export of the same session begins in the same way, and that of another session in another.
        """
        beginning = (
            [time_of(info, "created") for info in (self.info, *map(_info, first))],
            self.info.get("directory"),
            [part.get("text") for message in first for part in map(object_of, list_of(message.get("parts")))],
        )
        name = f"{self._given.replace(':', '_')}-{blake2b(repr(beginning).encode(), digest_size=6).hexdigest()}"
        reason = (
            f"{self._given!r} may stand for several sessions: this one is called {name}, before the ids of messages"
        )
        self.oddities.append(("$.info.id", reason))
        return name

    def _with_keys(self, messages: list[Row]) -> list[tuple[str, Row]]:
        """The messages, each with its own key. One that is there twice, word for word, counts once."""
        found: dict[str, Row] = {}
        for number, message in enumerate(messages):
            key = given = str(_info(message).get("id") or "")
            if given in found and message in found.values():
                self._note(number, f"{given!r} is there twice with the same content: it counts once")
                continue
            if given in found:
                key = f"{given}~{number}"
                reason = f"another message is called {given!r} too"
            else:
                reason = self._doubt(given, _info(message))
            # That the session's own name is doubtful has been told.
            if is_unique(given) and (reason is not None or not self._is_named):
                self._shared.add(key)
            if reason is not None:
                name = own_id(self.external_id, key, is_shared=True)
                self._note(number, f"{reason}: this one is called {name}")
            found[key] = message
        return list(found.items())

    def _doubt(self, given: str, info: Row) -> str | None:
        """Why the id of a message may stand for messages of other sessions; None if it does not.

        OpenCode makes the id of a message, also that of a fork's copy, after the session has begun.
        """
        made, created = time_near(given, self._began), time_of(info, "created")
        is_copy = created < self._began
        if not is_unique(given):
            return f"{given!r} may stand for messages of other sessions"
        if text_of(info.get("sessionID")) not in (None, self._given):
            return f"{given!r} says that it belongs to another session"
        if (self._began and made < self._began - _SOON_MS) or (not is_copy and abs(made - created) > _QUEUED_MS):
            return f"{given!r} was made at another time than its message, and may belong to another session"
        return None

    def _note(self, number: int, reason: str) -> None:
        self.oddities.append((f"$.messages[{number}].info.id", reason))

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.RowSource.read`."""
        return Snapshot(
            session=_row(self.info),
            info=self.info,
            messages=[
                MessageRows(
                    key,
                    _row(_info(message)),
                    tuple(_row(object_of(part)) for part in list_of(message.get("parts"))),
                )
                for key, message in self._messages
            ],
            shared=frozenset(self._shared),
        )

    def older_than_session(self) -> set[str]:
        """Ids of the messages that a fork copied, which keep their time."""
        return {key for key, message in self._messages if time_of(_info(message), "created") < self._began}

    def find_originals(self, messages: Sequence[ListedMessage], session: Row) -> dict[str, MessageCopy]:
        """None: an export has only one session."""
        return {}


def _info(message: Row) -> Row:
    return object_of(message.get("info"))


def parse_export(data: bytes) -> Row:
    """The JSON of an export. Raises ValueError for anything else."""
    found = document_of({"text": data.decode(errors="replace")})
    if not isinstance(found.get("info"), dict) or not isinstance(found.get("messages"), list):
        raise ValueError("it has no info and messages")
    return found


def _leave_to_original(changes: Changes, copies: set[str], began: datetime | None) -> None:
    """Drop what belongs to the originals of a fork's copies: the links to subagents, and the time of the session."""
    changes.links = [link for link in changes.links if link.message_id not in copies]
    for session in changes.sessions.values():
        session.first_at = began


def structured_result(record: bytes, tool_call_id: str) -> msgspec.Raw | None:
    """The `state.metadata` of a call: OpenCode's own facts about its result. None if there are none.

    Args:
        record: A line of a row log, or an export.
        tool_call_id: The call's id.
    """
    try:
        parts = _parts(record)
    except (ValueError, RecursionError):
        return None
    return next((metadata_of_result(part) for part in parts if part.get("callID") == tool_call_id), None)


def _parts(record: bytes) -> list[Row]:
    try:
        line = decode_line(record)
        return documents_of(line.row, line.parts)[1]
    except msgspec.ValidationError:
        messages: list[Any] = parse_export(record)["messages"]
        return [part for message in messages for part in message.get("parts", ())]


# -- streams


_DATA = b"data:"

_BELOW_LOGS = 1 << 53
"""Subtracted from positions, so that rows take precedence over all that a stream says about a session."""

_UNNAMED = "stream"
"""The session as long as no event has named it."""

_ASSISTANT_PARTS = frozenset({"step-start", "step-finish", "tool", "reasoning"})
"""Parts that only an answer has."""


class OpenCodeStreamFold(StatelessFold):
    """Reads one stream."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`. The record of every message is the whole file."""
        if is_export(data):
            return _below_rows(OpenCodeExportFold(self._source).feed(data, offset))
        changes = Changes()
        sessions: dict[str, _StreamRows] = {}
        position = offset
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            _read_line(line, sessions, changes, Diagnostic(offset=position, length=len(line), line=number, reason=""))
            position += len(line)
        counts = changes.counts
        for name, rows in sessions.items():
            source = msgspec.structs.replace(self._source, session_id=session_id(name, self._source.agent))
            _append_changes(changes, rows.changes(source, (0, len(data))))
        changes.counts = counts
        return changes


def detect_stream(path: Path, head: bytes) -> Detection | None:
    """The detection of a file that begins as a stream of events; None for any other file."""
    events = [event for line in head.split(b"\n")[:200] if (event := _event(line)) is not None]
    if not any(_is_known_event(event) for event in events[:50]):
        return None
    infos = (object_of(object_of(event.get("properties")).get("info")) for event in events)
    version = next((found for info in infos if (found := text_of(info.get("version")))), None)
    absolute = path.absolute()
    source = Source(agent=NAME, path=str(absolute), root=str(absolute.parent), kind=SourceKind.STREAM, appendable=False)
    return Detection(agent=NAME, version=version, source=source)


def _is_known_event(event: Row) -> bool:
    if text_of(event.get("type")) in RUN_KINDS:
        return str(event.get("sessionID")).startswith("ses") and isinstance(event.get("timestamp"), int)
    is_known = outcome_of(event_kind(str(event.get("type")))) is not None
    return is_known and isinstance(event.get("properties"), dict)


def _event(line: bytes) -> Row | None:
    """The event in a line; None if it has none. Events of all projects from the server are in an envelope."""
    try:
        found = object_of(msgspec.json.decode(line.strip().removeprefix(_DATA)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    event = object_of(found.get("payload")) or found
    return event if isinstance(event.get("type"), str) else None


def _read_line(line: bytes, sessions: dict[str, _StreamRows], changes: Changes, unreadable: Diagnostic) -> None:
    if not line.strip() or line.startswith((b":", b"event:", b"id:", b"retry:")):
        changes.counts.blank += 1
        return
    event = _event(line)
    if event is None:
        changes.counts.unreadable += 1
        changes.diagnostics.append(msgspec.structs.replace(unreadable, reason="no event of OpenCode"))
        return
    name = _session_of(event) or next(iter(sessions), _UNNAMED)
    # Events of the server (`server.connected`) come before the first one that names a session.
    if name != _UNNAMED and _UNNAMED in sessions:
        sessions[name] = sessions.pop(_UNNAMED)
    rows = sessions.setdefault(name, _StreamRows())
    rows.name = name
    if rows.add_event(event):
        changes.counts.messages += 1
    else:
        changes.counts.events += 1


def _session_of(event: Row) -> str | None:
    facts = object_of(event.get("properties"))
    inner = object_of(facts.get("part")) or object_of(facts.get("info"))
    found = text_of(event.get("sessionID")) or text_of(facts.get("sessionID")) or text_of(inner.get("sessionID"))
    return found or (text_of(inner.get("id")) if str(event.get("type")).startswith("session.") else None)


class _StreamRows:
    """The rows of one session, put together from events. See `snapshot.RowSource`."""

    def __init__(self) -> None:
        self.name = _UNNAMED
        self._info: Row = {}
        self._messages: dict[str, Row] = {}
        self._parts: dict[str, dict[str, Row]] = {}
        self._removed: set[str] = set()
        self._others: list[Row] = []

    @property
    def external_id(self) -> str:
        """The session's id."""
        return self.name

    def add_event(self, event: Row) -> bool:
        """Apply an event to the rows; whether it is about a message."""
        kind, facts = event_kind(str(event["type"])), object_of(event.get("properties"))
        part = object_of(event.get("part"))
        if kind in RUN_KINDS and part:
            self._add_run_part(part, to_int(event.get("timestamp")))
        elif kind == "message.updated":
            self._messages[str(object_of(facts.get("info")).get("id"))] = object_of(facts.get("info"))
        elif kind == "message.part.updated":
            self._add_part(object_of(facts.get("part")))
        elif kind == "message.part.delta":
            self._add_delta(facts)
        elif kind == "message.removed":
            self._removed.add(str(facts.get("messageID")))
        elif kind == "message.part.removed":
            self._parts.get(str(facts.get("messageID")), {}).pop(str(facts.get("partID")), None)
        else:
            if kind in ("session.created", "session.updated"):
                self._info = object_of(facts.get("info"))
            else:
                self._others.append(event)
            return False
        return True

    def _add_part(self, part: Row) -> None:
        self._parts.setdefault(str(part.get("messageID")), {})[str(part.get("id"))] = part

    def _add_delta(self, facts: Row) -> None:
        part = self._parts.get(str(facts.get("messageID")), {}).get(str(facts.get("partID")))
        field = str(facts.get("field"))
        if part is not None and isinstance(part.get(field, ""), str):
            part[field] = part.get(field, "") + str(facts.get("delta") or "")

    def _add_run_part(self, part: Row, at: int) -> None:
        """Apply a part that `run` prints without its message, whose facts follow from its parts."""
        self._add_part(part)
        key = str(part.get("messageID"))
        created = {"time": {"created": time_of_id(key, at)}, "role": "user"}
        info = self._messages.setdefault(key, {"id": key, "sessionID": part.get("sessionID"), **created})
        # `run` prints no prompts, but texts that OpenCode itself wrote into one: those are synthetic.
        if str(part.get("type")) in _ASSISTANT_PARTS or part.get("synthetic") is not True:
            info["role"] = "assistant"
        if part.get("type") == "step-finish":
            info["time"]["completed"] = at
            info |= {"cost": part.get("cost"), "tokens": part.get("tokens"), "finish": part.get("reason")}

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.RowSource.read`."""
        keys = dict.fromkeys((*self._messages, *self._parts))
        messages = [MessageRows(key, _row(self._messages.get(key, {})), self._parts_of(key)) for key in keys]
        return Snapshot(
            session=_row(self._info) if self._info else None,
            info=self._info,
            messages=[message for message in messages if message.key not in self._removed],
            removed=[message for message in messages if message.key in self._removed],
        )

    def _parts_of(self, key: str) -> tuple[Row, ...]:
        """The parts of a message, in the order of their ids as in rows: calls are printed as they end."""
        return tuple(_row(part) for _, part in sorted(self._parts.get(key, {}).items()))

    def find_originals(self, messages: Sequence[ListedMessage], session: Row) -> dict[str, MessageCopy]:
        """None: a stream does not have the messages that a fork copied."""
        return {}

    def changes(self, source: Source, record: tuple[int, int]) -> Changes:
        """The changes that the rows make, below those of a database."""
        context = OpenCodeContext(source, "")
        lines = [*new_lines(self, ()).lines]
        for number, event in enumerate(self._others):
            key = text_of(event.get("id")) or f"{self.name}.{number}"
            lines.append(encode_line(RowVersion(table=EVENT, key=key, row=_event_row(event))))
        for line in lines:
            read_line(context, line, record)
        if self.name != _UNNAMED and source.session_id is not None:
            # A run that fails at once prints nothing but the error.
            context.changes.sessions.setdefault(source.session_id, SessionChange(session_id=source.session_id))
        return _below_rows(context.changes)


def _below_rows(changes: Changes) -> Changes:
    """The same changes, so that rows take precedence over them."""
    for session in changes.sessions.values():
        # Of two facts about a session the one with the higher position wins, and rows count from 0.
        session.position -= _BELOW_LOGS
    changes.messages = [
        # Of two readings of a message the later `updated_at` wins, and one without a time never does.
        msgspec.structs.replace(change, message=msgspec.structs.replace(change.message, updated_at=None))
        for change in changes.messages
    ]
    return changes


def _event_row(event: Row) -> Row:
    """The event as a row of the table `event`. What `run` prints as `error` is `session.error` there."""
    kind = "session.error" if event["type"] == "error" else event["type"]
    facts: Any = event.get("properties", {name: value for name, value in event.items() if name != "type"})
    return {"type": kind, "data": msgspec.json.encode(facts).decode(), "time_created": event.get("timestamp")}


def _row(info: Row) -> Row:
    return {"id": info.get("id"), "data": msgspec.json.encode(info).decode()}


def _append_changes(changes: Changes, found: Changes) -> None:
    changes.sessions |= found.sessions
    changes.messages += found.messages
    changes.events += found.events
    changes.links += found.links
    changes.diagnostics += found.diagnostics
