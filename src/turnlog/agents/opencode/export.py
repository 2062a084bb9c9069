"""What `opencode export` prints: `{info, messages: [{info, parts}]}`, read through the same lines as rows are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, Diagnostic
from turnlog.agents.opencode.fold import Reading
from turnlog.agents.opencode.ids import moment, session_id
from turnlog.agents.opencode.rows import Row, document_of, list_of, object_of, time_of
from turnlog.agents.opencode.snapshot import MessageRows, Snapshot
from turnlog.agents.opencode.timeline import Copy, Listed
from turnlog.agents.opencode.update import update_of

_BEGINNING = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses')

_LEFT_OUT = "[redacted:"


class ExportFold:
    """Reads one export, whole. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`. Every record is the whole file: no part of it has a place of its own."""
        try:
            export = parse_export(data)
        except (ValueError, RecursionError) as error:
            changes = Changes()
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), reason=f"not an export: {error}"))
            changes.counts.unreadable = 1
            return changes
        rows = ExportRows(export)
        external = str(rows.info.get("id") or "")
        source = msgspec.structs.replace(self._source, session_id=session_id(external))
        reading = Reading(source, "")
        for line in update_of(rows, ()).lines:
            reading.read(line, (0, len(data)))
        if copies := rows.older_than_session():
            _count_without(reading.changes, copies, moment(time_of(rows.info, "created")))
        return reading.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""


class ExportRows:
    """The rows that an export tells of. See `snapshot.Rows`."""

    def __init__(self, export: Row) -> None:
        """Take an export apart. What is left out of a sanitized one of its session (title, folder) is not known."""
        info = object_of(export.get("info"))
        self.info = {name: value for name, value in info.items() if not str(value).startswith(_LEFT_OUT)}
        self._messages = [object_of(message) for message in list_of(export.get("messages"))]

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.Rows.read`."""
        return Snapshot(
            session=_row(self.info),
            info=self.info,
            messages=[
                MessageRows(
                    str(object_of(message.get("info")).get("id") or ""),
                    _row(object_of(message.get("info"))),
                    tuple(_row(object_of(part)) for part in list_of(message.get("parts"))),
                )
                for message in self._messages
            ],
        )

    def older_than_session(self) -> set[str]:
        """Ids of the messages that a fork copied: they keep their time."""
        infos = [object_of(message.get("info")) for message in self._messages]
        return {str(info.get("id")) for info in infos if time_of(info, "created") < time_of(self.info, "created")}

    def find_originals(self, messages: Sequence[Listed], session: Row) -> dict[str, Copy]:
        """An export tells of one session only."""
        return {}


def is_export(head: bytes) -> bool:
    """Whether a file begins as an export does."""
    return _BEGINNING.match(head) is not None


def parse_export(data: bytes) -> Row:
    """The JSON of an export. Raises ValueError for anything else."""
    found = document_of({"text": data.decode(errors="replace")})
    if not isinstance(found.get("info"), dict) or not isinstance(found.get("messages"), list):
        raise ValueError("it has no info and messages")
    return found


def _count_without(changes: Changes, copies: set[str], began: datetime | None) -> None:
    """Leave to the session that made them what a fork's copies tell: when it began, and the subagents of calls."""
    changes.links = [link for link in changes.links if link.message_id not in copies]
    for session in changes.sessions.values():
        session.first_at = began


def _row(info: Row) -> Row:
    return {"id": info.get("id"), "data": msgspec.json.encode(info).decode()}
