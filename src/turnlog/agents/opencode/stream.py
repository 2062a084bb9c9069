"""What OpenCode prints while it runs: `opencode run --format json` (a line an event), and the server's events (SSE).

The events tell of rows, with the ids that the rows have. So they are put together into rows and read as rows are;
what a database says of a message holds against them, since they do not say which version of it they tell. A stream
is read whole. `run` prints neither prompts nor, as a rule, thoughts; the time of its messages is that in their ids.
An export that counts as a stream does, see `detection`, is read as an export.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes, Diagnostic, SessionChange
from turnlog.agents.opencode.export import ExportFold, is_export
from turnlog.agents.opencode.fold import Reading
from turnlog.agents.opencode.ids import NAME, session_id, time_of_id, whole
from turnlog.agents.opencode.kinds import RUN_KINDS, becomes, event_kind
from turnlog.agents.opencode.rows import EVENT, Line, Row, encode_line, object_of, text_of
from turnlog.agents.opencode.snapshot import MessageRows, Snapshot
from turnlog.agents.opencode.timeline import Copy, Listed
from turnlog.agents.opencode.update import update_of

_DATA = b"data:"
_LONG_AGO = 1 << 53
"""What a stream says of a session counts less than anything that rows say."""
_NOBODY = "stream"
_ASSISTANTS = frozenset({"step-start", "step-finish", "tool", "reasoning"})


class StreamFold:
    """Reads one stream, whole. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`. Every record is the whole file: no row has a place of its own."""
        if is_export(data):
            return _less_than_rows(ExportFold(self._source).feed(data, offset))
        changes = Changes()
        told: dict[str, _Told] = {}
        position = offset
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            _read_line(line, told, changes, Diagnostic(offset=position, length=len(line), line=number, reason=""))
            position += len(line)
        counts = changes.counts
        for name, rows in told.items():
            source = msgspec.structs.replace(self._source, session_id=session_id(name))
            _add(changes, rows.changes(source, (0, len(data))))
        changes.counts = counts
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""


def detect_stream(path: Path, head: bytes) -> Detection | None:
    """Whether a file begins as a stream of events does; None when it does not."""
    events = [event for line in head.split(b"\n")[:200] if (event := _event(line)) is not None]
    if not any(_is_ours(event) for event in events[:50]):
        return None
    infos = (object_of(object_of(event.get("properties")).get("info")) for event in events)
    version = next((found for info in infos if (found := text_of(info.get("version")))), None)
    place = path.absolute()
    source = Source(agent=NAME, path=str(place), root=str(place.parent), kind=SourceKind.STREAM, appendable=False)
    return Detection(agent=NAME, version=version, source=source)


def _is_ours(event: Row) -> bool:
    if event.get("type") in RUN_KINDS:
        return str(event.get("sessionID")).startswith("ses") and isinstance(event.get("timestamp"), int)
    is_known = becomes(event_kind(str(event.get("type")))) is not None
    return is_known and isinstance(event.get("properties"), dict)


def _event(line: bytes) -> Row | None:
    """The event in a line; None when it is none. Those of all projects stand in an envelope."""
    try:
        found = object_of(msgspec.json.decode(line.strip().removeprefix(_DATA)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    event = object_of(found.get("payload")) or found
    return event if isinstance(event.get("type"), str) else None


def _read_line(line: bytes, told: dict[str, _Told], changes: Changes, place: Diagnostic) -> None:
    if not line.strip() or line.startswith((b":", b"event:", b"id:", b"retry:")):
        changes.counts.blank += 1
        return
    event = _event(line)
    if event is None:
        changes.counts.unreadable += 1
        changes.diagnostics.append(msgspec.structs.replace(place, reason="no event of OpenCode"))
        return
    name = _session_of(event) or next(iter(told), _NOBODY)
    if name != _NOBODY and _NOBODY in told:
        told[name] = told.pop(_NOBODY)
    rows = told.setdefault(name, _Told())
    rows.name = name
    if rows.take(event):
        changes.counts.messages += 1
    else:
        changes.counts.events += 1


def _session_of(event: Row) -> str | None:
    facts = object_of(event.get("properties"))
    inner = object_of(facts.get("part")) or object_of(facts.get("info"))
    found = text_of(event.get("sessionID")) or text_of(facts.get("sessionID")) or text_of(inner.get("sessionID"))
    return found or (text_of(inner.get("id")) if str(event.get("type")).startswith("session.") else None)


class _Told:
    """What a stream tells of one session. See `snapshot.Rows`."""

    def __init__(self) -> None:
        self.name = _NOBODY
        self._info: Row = {}
        self._messages: dict[str, Row] = {}
        self._parts: dict[str, dict[str, Row]] = {}
        self._removed: set[str] = set()
        self._others: list[Row] = []

    def take(self, event: Row) -> bool:
        """Take an event in; whether it tells of a message."""
        kind, facts = event_kind(str(event["type"])), object_of(event.get("properties"))
        part = object_of(event.get("part"))
        if kind in RUN_KINDS and part:
            self._take_run(part, whole(event.get("timestamp")))
        elif kind == "message.updated":
            self._messages[str(object_of(facts.get("info")).get("id"))] = object_of(facts.get("info"))
        elif kind == "message.part.updated":
            self._take_part(object_of(facts.get("part")))
        elif kind == "message.part.delta":
            self._take_delta(facts)
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

    def _take_part(self, part: Row) -> None:
        self._parts.setdefault(str(part.get("messageID")), {})[str(part.get("id"))] = part

    def _take_delta(self, facts: Row) -> None:
        part = self._parts.get(str(facts.get("messageID")), {}).get(str(facts.get("partID")))
        field = str(facts.get("field"))
        if part is not None and isinstance(part.get(field, ""), str):
            part[field] = part.get(field, "") + str(facts.get("delta") or "")

    def _take_run(self, part: Row, at: int) -> None:
        """A part alone: its message is what its parts tell."""
        self._take_part(part)
        key = str(part.get("messageID"))
        created = {"time": {"created": time_of_id(key, at)}, "role": "user"}
        info = self._messages.setdefault(key, {"id": key, "sessionID": part.get("sessionID"), **created})
        if str(part.get("type")) in _ASSISTANTS or part.get("synthetic") is not True:
            info["role"] = "assistant"
        if part.get("type") == "step-finish":
            info["time"]["completed"] = at
            info |= {"cost": part.get("cost"), "tokens": part.get("tokens"), "finish": part.get("reason")}

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.Rows.read`."""
        keys = dict.fromkeys((*self._messages, *self._parts))
        messages = [MessageRows(key, _row(self._messages.get(key, {})), self._parts_of(key)) for key in keys]
        return Snapshot(
            session=_row(self._info) if self._info else None,
            info=self._info,
            messages=[message for message in messages if message.key not in self._removed],
            removed=[message for message in messages if message.key in self._removed],
        )

    def _parts_of(self, key: str) -> tuple[Row, ...]:
        """In the order of their ids, as rows stand: calls are printed as they end."""
        return tuple(_row(part) for _, part in sorted(self._parts.get(key, {}).items()))

    def find_originals(self, messages: Sequence[Listed], session: Row) -> dict[str, Copy]:
        """A stream does not tell what a fork holds."""
        return {}

    def changes(self, source: Source, record: tuple[int, int]) -> Changes:
        """What the rows bring, each reading of a message without a version, so that a database's holds."""
        reading = Reading(source, "")
        lines = [*update_of(self, ()).lines]
        for number, event in enumerate(self._others):
            key = text_of(event.get("id")) or f"{self.name}.{number}"
            lines.append(encode_line(Line(table=EVENT, key=key, row=_event_row(event))))
        for line in lines:
            reading.read(line, record)
        if self.name != _NOBODY and source.session_id is not None:
            # Of a run that failed at once nothing but the error is printed.
            reading.changes.sessions.setdefault(source.session_id, SessionChange(session_id=source.session_id))
        return _less_than_rows(reading.changes)


def _less_than_rows(changes: Changes) -> Changes:
    """The same, so that what rows say of sessions and messages holds against it."""
    for session in changes.sessions.values():
        session.position -= _LONG_AGO
    changes.messages = [
        msgspec.structs.replace(change, message=msgspec.structs.replace(change.message, updated_at=None))
        for change in changes.messages
    ]
    return changes


def _event_row(event: Row) -> Row:
    """As the table of events has it. What `run` calls an error is an event too."""
    kind = "session.error" if event["type"] == "error" else event["type"]
    facts: Any = event.get("properties", {name: value for name, value in event.items() if name != "type"})
    return {"type": kind, "data": msgspec.json.encode(facts).decode(), "time_created": event.get("timestamp")}


def _row(info: Row) -> Row:
    return {"id": info.get("id"), "data": msgspec.json.encode(info).decode()}


def _add(changes: Changes, found: Changes) -> None:
    changes.sessions |= found.sessions
    changes.messages += found.messages
    changes.events += found.events
    changes.links += found.links
    changes.diagnostics += found.diagnostics
