"""What is new in a session's rows since its log was last written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from turnlog.agents.base import RowUpdate
from turnlog.agents.opencode.ids import time_position, whole
from turnlog.agents.opencode.rows import (
    EVENT,
    MESSAGE,
    PROJECT,
    SESSION,
    TO_DOS,
    Line,
    Place,
    decode_line,
    encode_line,
    newest_lines,
    time_of,
)
from turnlog.agents.opencode.snapshot import MessageRows, Rows, Snapshot, listed
from turnlog.agents.opencode.timeline import Copy, Listed, Reverted, place_messages, reverted

Log = dict[tuple[str, str], bytes]


class _Known(NamedTuple):
    """A message in the log."""

    rows: MessageRows
    place: Place
    deleted: bool


def update_of(rows: Rows, pieces: Iterable[bytes]) -> RowUpdate:
    """The lines to append to the log that `pieces` are of; all lines when earlier ones would tell it otherwise.

    That is so when a message came to stand before one that is in the log, which numbers turns anew. A message that is
    gone is as a record of what happened tells it last, else as the log does, which may have seen it half done.
    """
    log = newest_lines(pieces)
    known = {key: _known(line) for (table, key), line in log.items() if table == MESSAGE}
    snapshot = rows.read(max((_sequence(key) for table, key in log if table == EVENT), default=-1))
    present = {message.key for message in snapshot.messages}
    gone = {key: found.rows for key, found in known.items() if key not in present}
    gone |= {message.key: message for message in snapshot.removed}
    messages = {message.key: message for message in (*snapshot.messages, *gone.values())}
    found = [listed(message, deleted=message.key in gone) for message in messages.values()]
    placed = place_messages(
        found, is_subagent=bool(snapshot.info.get("parentID")), copies=_copies(rows, found, snapshot, known)
    )
    newest = max((place.position for _, place in placed), default=0)
    lines = _other_lines(snapshot, reverted(snapshot.info.get("revert"), placed), newest, log)
    for message, place in placed:
        of = messages[message.key]
        line = Line(table=MESSAGE, key=of.key, place=place, deleted=message.deleted, row=of.row, parts=of.parts)
        lines[MESSAGE, of.key] = encode_line(line)
    if any(_moved(known[message.key].place, place) for message, place in placed if message.key in known):
        return RowUpdate(lines=[*(log | lines).values()], anew=True)
    return RowUpdate(lines=[line for key, line in lines.items() if log.get(key) != line])


def _sequence(key: str) -> int:
    """An event's number; -1 for a key that is none, which OpenCode never writes."""
    try:
        return whole(int(key))
    except ValueError:
        return -1


def _known(line: bytes) -> _Known:
    found = decode_line(line)
    return _Known(MessageRows(found.key, found.row, found.parts), found.place or Place(position=0), found.deleted)


def _copies(rows: Rows, messages: list[Listed], snapshot: Snapshot, known: dict[str, _Known]) -> dict[str, Copy]:
    """Which messages a fork copied: what was found once stays, also when the original is gone.

    A copy keeps its time, so it is older than its session.
    """
    copies: dict[str, Copy] = {}
    for key, found in known.items():
        if found.place.copy_of is not None and found.place.copied_from is not None:
            copies[key] = Copy(found.place.copy_of, found.place.copied_from)
    began = time_of(snapshot.info, "created")
    older = [message for message in messages if message.created < began and message.key not in known]
    return copies | rows.find_originals(older, snapshot.info) if older else copies


def _other_lines(snapshot: Snapshot, back: Reverted | None, newest: int, log: Log) -> Log:
    """Lines of all that is no message; `newest` is the position of the last of these."""
    lines: Log = {}
    facts: list[Line] = []
    if snapshot.session is not None:
        leaf, at = back or (None, None)
        restored = back is None and _was_reverted(log.get((SESSION, "")))
        facts.append(Line(table=SESSION, leaf=leaf, leaf_at=at, restored=restored, row=snapshot.session))
    for table, key, row in snapshot.others:
        if table == PROJECT:
            facts.append(Line(table=table, key=key, row=row))
        else:
            lines[table, key] = encode_line(Line(table=table, key=key, row=row))
    if snapshot.todo or (snapshot.todo is not None and (TO_DOS, "") in log):
        facts.append(Line(table=TO_DOS, rows=snapshot.todo))
    changed = [whole(row.get("time_updated")) for row in snapshot.todo or ()]
    times = [time_of(snapshot.info, "updated"), *changed]
    return _numbered(facts, max(newest, time_position(max(times))), log) | lines


def _numbered(facts: list[Line], since: int, log: Log) -> Log:
    """What is told of the session as a whole: what is new holds from `since` on, and behind all that held before."""
    before = {line.table: decode_line(log[line.table, line.key]).at for line in facts if (line.table, line.key) in log}
    now = max(since, 1 + max((at or 0 for at in before.values()), default=0))
    lines: Log = {}
    for line in facts:
        key = (line.table, line.key)
        same = encode_line(msgspec.structs.replace(line, at=before.get(line.table)))
        lines[key] = same if log.get(key) == same else encode_line(msgspec.structs.replace(line, at=now))
    return lines


def _was_reverted(line: bytes | None) -> bool:
    found = decode_line(line) if line else None
    return found is not None and (found.leaf is not None or found.restored)


_LASTING = ("position", "turn", "step", "parent", "copy_of")
"""What of a place a log says once and for all."""


def _moved(before: Place, now: Place) -> bool:
    return any(getattr(before, name) != getattr(now, name) for name in _LASTING)
