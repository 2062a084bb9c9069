"""The lines in which a session's rows are kept, the kinds and values of rows, and the positions made from them.

A line is one version of one row: `table` and `key` say which row, and `row` holds the columns (SQLite) or the file
(JSON storage) exactly. A message's line holds its parts too, because a message is read as a whole. It also has what
follows from the other rows of the session: a message's timeline entry, and where the session was reverted.

`docs/formats/opencode.md` describes every kind of row, part and event, which a test compares with the tables here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, cast

import msgspec

from turnlog.agents.decoding import object_of
from turnlog.agents.opencode import NAME
from turnlog.model.codec import to_json
from turnlog.model.lenient_json import parse_json

Row = dict[str, Any]
"""Columns by name; of a file `file`, `text`, `mode` and `mtime_ns`.

Text that is not UTF-8 is `{"$text": …}` and binary data `{"$blob": …}`, both in base64.
"""

MESSAGE, SESSION, TO_DOS, PROJECT, EVENT = "message", "session", "todo", "project", "event"


# -- lines


_Number = Annotated[int, msgspec.Meta(ge=-(1 << 60), le=1 << 60)]
"""A position, or the number of a turn or step, which a store keeps in 64 bits; OpenCode's times give smaller ones."""

_LINE_NAMES = {"entry": "place", "reverted_from": "leaf_at", "position": "at", "stored_in": "in"}


class RowVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_LINE_NAMES):
    """One version of a row."""

    table: str
    key: str = ""
    entry: TimelineEntry | None = None
    """Of a message."""
    leaf: str | None = None
    """Of a reverted session: the last message that still counts; "" when none does."""
    reverted_from: _Number | None = None
    """Of a reverted session: the position of the first message that no longer counts."""
    restored: bool = False
    """Of a session that was reverted once and is no longer."""
    position: _Number | None = None
    """Of the session, its project and its to-do list: the position from which on this version holds. A later version
    has a greater one even where OpenCode leaves the row's time unchanged, as 1.18 does for a new title."""
    deleted: bool = False
    """The row was deleted; `row` is its last version."""
    row: Row = {}
    parts: tuple[Row, ...] = ()
    rows: tuple[Row, ...] = ()
    """Of a list that is one line (`todo`)."""
    stored_in: str | None = None
    """The table that has the row, if it is not `table`: a session of 2.x is in another one."""


# The row logs of all versions stay readable, so the names in them do not change with those in the code.


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"is_over": "over"}):
    """What follows for a message from the other messages of its session; see `timeline`."""

    position: _Number
    turn: _Number | None = None
    step: _Number | None = None
    parent: str | None = None
    """Id of the message before it."""
    origin: str | None = None
    """A `turnlog.model.Origin`, which the role alone does not decide."""
    is_over: bool = False
    """The agent has written another message since: what is unfinished in this one stays unfinished."""
    compacts: _Number | None = None
    """Of a summary: the position before which the context is compacted, …"""
    automatic: bool | None = None
    kept: tuple[str, ...] = ()
    """… except for these messages."""
    copy_of: str | None = None
    """Of a message that a fork copied: the id of the original, …"""
    copied_from: str | None = None
    """… and the session that it belongs to."""
    own_id: str | None = None
    """The message's id in the model, where the one in its row may mean several: see `own_id`."""
    since: _Number | None = None
    """From when on it is as it is here (Unix milliseconds), where its rows have no later time than a version in the log
    that says something else."""

    def id_of(self, key: str) -> str:
        """The id of the message in the model; `key` is the one in its row."""
        return self.copy_of or self.own_id or key


_encoder = msgspec.json.Encoder()

_line_decoder = msgspec.json.Decoder(RowVersion)


def encode_line(line: RowVersion) -> bytes:
    """The line with its newline."""
    return _encoder.encode(line) + b"\n"


def decode_line(data: bytes) -> RowVersion:
    """The inverse of `encode_line`. Raises `msgspec.MsgspecError` for anything that is no such line."""
    return _line_decoder.decode(data)


class _Key(msgspec.Struct):
    table: str
    key: str = ""


_key_decoder = msgspec.json.Decoder(_Key)


def newest_lines(log: Iterable[bytes]) -> dict[tuple[str, str], bytes]:
    """The last version of every row in a log, by table and key, in the order in which the rows first appeared."""
    newest: dict[tuple[str, str], bytes] = {}
    for line in split_lines(log):
        try:
            found = _key_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        newest[found.table, found.key] = line
    return newest


def split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a log with their newlines, from blocks that end anywhere."""
    pending = b""
    for block in blocks:
        *lines, pending = (pending + block).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if pending:
        yield pending


# -- kinds of rows, parts and events


TABLES: dict[str, str] = {
    "message": "message",
    "session": "session",
    "project": "session",
    "todo": "session",
    "event": "event",
    "event_sequence": "nothing",
    "session_v2": "session",
    "session_message": "message",
    "session_input": "record",
    "session_inbox": "record",
    "session_pending": "record",
    "session_context_epoch": "record",
    "session_diff": "record",
}
"""Table -> outcome of its rows. `part` rows are in the line of their message. `session_message` rows that are messages
have lines of `message`, a row of `session_v2` has one of `session`."""

PARTS: dict[str, str] = {
    "text": "text",
    "reasoning": "reasoning",
    "file": "file",
    "tool": "tool call",
    "step-start": "message",
    "step-finish": "message",
    "snapshot": "data",
    "patch": "data",
    "agent": "data",
    "subtask": "data",
    "retry": "data",
    "compaction": "data",
}
"""Type of a part -> outcome; `message` for facts about the message itself."""

_NEXT = (
    *("agent.switched", "model.switched", "prompt.admitted", "prompted", "step.started", "step.ended"),
    *("text.started", "text.ended", "reasoning.started", "reasoning.ended"),
    *("tool.input.started", "tool.input.ended", "tool.called", "tool.success", "tool.failed"),
)

_NEWER = (
    *("agent.selected", "model.selected", "input.admitted", "input.promoted", "inbox.enqueued", "inbox.delivered"),
    *("step.started", "step.streamed", "step.ended", "step.failed", "text.started", "text.delta", "text.ended"),
    *("reasoning.started", "reasoning.delta", "reasoning.ended", "tool.input.started", "tool.input.delta"),
    *("tool.input.ended", "tool.called", "tool.progress", "tool.success", "tool.failed", "synthetic"),
    *("skill.activated", "shell.started", "shell.ended", "message.content.updated"),
    *("compaction.admitted", "compaction.started", "compaction.delta", "compaction.ended", "compaction.failed"),
)
"""What 2.x writes into `session_message` and the tables of what waits, after `session.`."""

EVENTS: dict[str, str] = {
    **{f"session.next.{name}": "row" for name in _NEXT},
    **{f"session.{name}": "row" for name in _NEWER},
    "session.renamed": "duplicate",
    "session.moved": "duplicate",
    "session.forked": "duplicate",
    "session.usage.updated": "duplicate",
    "session.usage.recorded": "duplicate",
    "session.viewed": "record",
    "session.created": "duplicate",
    "session.updated": "duplicate",
    "session.deleted": "duplicate",
    "message.updated": "duplicate",
    "message.removed": "duplicate",
    "message.part.updated": "duplicate",
    "message.part.removed": "duplicate",
    "message.part.delta": "duplicate",
    "todo.updated": "duplicate",
    "session.status": "record",
    "session.idle": "record",
    "session.error": "record",
    "session.compacted": "record",
    "session.diff": "record",
    "command.executed": "record",
    "file.edited": "record",
    "file.watcher.updated": "record",
    "permission.asked": "record",
    "permission.replied": "record",
    "permission.updated": "record",
    "question.asked": "record",
    "question.rejected": "record",
    "question.replied": "record",
    "vcs.branch.updated": "record",
}
"""Kind of an event, without its version -> outcome. Rows have what a `duplicate` says. A `row` became a row of
`session_message` or `session_input`; it is an event where there are no rows (in a stream)."""

_KNOWN_PREFIXES = (
    "session.next.",
    "session.execution.",
    "session.inbox.",
    "session.instructions.",
    "session.retry.",
    "session.revert.",
    "permission.",
    "question.",
    "server.",
    "plugin.",
    "catalog.",
    "integration.",
    "reference.",
)

RUN_KINDS: dict[str, str] = {
    "step_start": "message",
    "reasoning": "message",
    "text": "message",
    "tool_use": "message",
    "step_finish": "message",
    "error": "record",
}
"""Kind of an event that `opencode run --format json` prints -> outcome."""

_EVENT_VERSION = re.compile(r"\.\d+$")


def event_kind(name: str) -> str:
    """The kind of an event: its type without the version at the end."""
    return _EVENT_VERSION.sub("", name)


def outcome_of(kind: str) -> str | None:
    """The outcome of events of a kind; None if the kind is not known."""
    if kind.startswith(_KNOWN_PREFIXES):
        return EVENTS.get(kind, "record")
    return EVENTS.get(kind)


# -- ids, times and positions
#
# `msg_` and `prt_` ids begin with 12 hex digits: milliseconds times 4096 plus a counter, modulo 2^48. OpenCode orders
# messages by (time created, id); a fork's copies have new ids and the old times. So a position is made of the time,
# with the id's counter for messages of the same millisecond.


_TIME_AND_COUNTER = re.compile(r"[a-z]+_([0-9a-f]{12})")

_MADE_BY_OPENCODE = re.compile(r"(?:ses|msg)_[0-9a-f]{12}(?P<random>[0-9A-Za-z]{12,})")

_FEWEST_LETTERS = 5
"""How many different letters the random end of an id has at least. One with fewer was typed: `AAAAAAAAAAAAAA`."""

_REDACTED = re.compile(r"(?i)redact|[^0-9a-z_-]|_(?:(.)\1{3,})?\Z")
_COUNTER_SIZE = 1 << 12

_ID_SPAN = 1 << 48

_EPOCH = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""The time of position 0, so that the positions of this century are exact in JSON numbers."""

_LARGEST_EXACT = (1 << 53) - 1


def session_id(external: str, agent: str = NAME) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{agent}:{external.replace('/', '_')}"


def own_id(session: str, key: str, *, is_shared: bool = False) -> str:
    """The id of a message in the model: the one in its row, if OpenCode gives it to no other message.

    Any other id counts in its own session only, because the store takes messages of one id for one message. An id that
    this function has returned stays as it is.

    Args:
        session: The external id of the message's session.
        key: The id in its row.
        is_shared: Whether another session may have a message of this id, although it looks like one of OpenCode's.
    """
    prefix = f"{session.replace('/', '_')}:"
    return key if (is_unique(key) and not is_shared) or key.startswith(prefix) else prefix + key


def is_unique(identifier: str) -> bool:
    """Whether an id was made by OpenCode, from the time and at random, so that it means one message or session.

    Clients, tools and people name messages `msg_1` or `msg_user`, in one session as in the other.
    """
    match = _MADE_BY_OPENCODE.fullmatch(identifier)
    return match is not None and len(set(match["random"])) >= _FEWEST_LETTERS and not is_redacted(identifier)


def is_redacted(identifier: str) -> bool:
    """Whether an id was redacted, so that it may mean many: `msg_REDACTED`, `[id]`, `ses_xxxx`."""
    return not identifier or _REDACTED.search(identifier) is not None


def message_position(created: int, message_id: str, *, is_shared: bool = False) -> int:
    """The position of a message in its session, from its time (Unix milliseconds) and its id.

    Another message of the session may have the same time and number, if this one may not keep its id (`is_shared`, see
    `own_id`). The other comes first, whichever was read first: the next number is that of its first part.
    """
    return _bounded(time_position(created) + (_id_number(message_id) or 0) % _COUNTER_SIZE + is_shared)


def time_position(milliseconds: int) -> int:
    """The first position of a millisecond (Unix time)."""
    return _bounded((milliseconds - _EPOCH) * _COUNTER_SIZE)


def time_at(position: int) -> int:
    """The millisecond (Unix time) of a position."""
    return position // _COUNTER_SIZE + _EPOCH


def part_position(message_position: int, message_id: str, part_id: str, number: int) -> int:
    """The position of a part: as far after its message as its id is; otherwise right after it, by its index."""
    part, message = _id_number(part_id), _id_number(message_id)
    if part is not None and message is not None and 0 < (part - message) % _ID_SPAN < _ID_SPAN // 2:
        return _bounded(message_position + (part - message) % _ID_SPAN)
    return _bounded(message_position + number + 1)


def to_datetime(milliseconds: object) -> datetime | None:
    """A time from Unix milliseconds; None for anything that is no time."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def bad_times(values: Row) -> Iterator[str]:
    """The names of what should be times in a row or in its JSON, and are numbers that are none."""
    times = {name: value for name, value in values.items() if name.startswith("time_")}
    times |= {f"time.{name}": value for name, value in object_of(values.get("time")).items()}
    for name, value in times.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and to_datetime(value) is None:
            yield name


def to_int(value: object) -> int:
    """A number of JSON, such as a time in milliseconds, as an integer; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_EXACT:
        return 0
    return int(value)


def time_of_id(name: str, near: int) -> int:
    """When an id was made: the last time up to `near` that it fits (Unix milliseconds); `near` when it has no time."""
    number = _id_number(name)
    return near if number is None else near - ((near - number // _COUNTER_SIZE) % (_ID_SPAN // _COUNTER_SIZE))


def time_near(name: str, near: int) -> int:
    """When an id was made: the time nearest to `near` that it fits (Unix milliseconds); `near` when it has no time.

    The id of a session has the inverse of its time, so that the newest session comes first.
    """
    number = _id_number(name)
    if number is None:
        return near
    span = _ID_SPAN // _COUNTER_SIZE
    made = (_ID_SPAN - 1 - number if name.startswith("ses_") else number) // _COUNTER_SIZE
    distance = (made - near) % span
    return near + (distance if distance < span // 2 else distance - span)


def time_of_later_id(name: str, since: int) -> int | None:
    """When an id was made: the first time from `since` on that it fits (Unix milliseconds); None without one."""
    number = _id_number(name)
    return None if number is None else since + (number // _COUNTER_SIZE - since) % (_ID_SPAN // _COUNTER_SIZE)


def _id_number(name: str) -> int | None:
    match = _TIME_AND_COUNTER.match(name)
    return int(match[1], 16) if match else None


def _bounded(position: int) -> int:
    return min(max(position, 0), _LARGEST_EXACT)


# -- values


_TEXT, _BLOB = "$text", "$blob"


def as_text(data: bytes) -> str | dict[str, str]:
    """The value in a row for the bytes of a text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {_TEXT: base64.b64encode(data).decode()}


def as_blob(data: bytes) -> dict[str, str]:
    """The value in a row for binary data."""
    return {_BLOB: base64.b64encode(data).decode()}


def bytes_of(value: object) -> bytes | None:
    """The inverse of `as_text` and `as_blob`; None for any other value."""
    if isinstance(value, str):
        return value.encode()
    encoded = _encoded_value(value)
    return None if encoded is None else base64.b64decode(encoded[1])


def is_blob(value: object) -> bool:
    """Whether a value is binary data, from `as_blob`."""
    encoded = _encoded_value(value)
    return encoded is not None and encoded[0] == _BLOB


def _encoded_value(value: object) -> tuple[str, str] | None:
    """The kind and the base64 of a value that is no plain JSON."""
    found = object_of(value)
    names = found.keys() & {_TEXT, _BLOB}
    if len(found) != 1 or not names:
        return None
    name = names.pop()
    return (name, found[name]) if isinstance(found[name], str) else None


def time_of(document: Mapping[str, Any], name: str) -> int:
    """A time in an object's `time` (Unix milliseconds); 0 when it is missing."""
    return to_int(object_of(document.get("time")).get(name))


def document_of(row: Mapping[str, Any]) -> Row:
    """The JSON object in a row: in its `data` column, or in the text of its file.

    Raises:
        ValueError: The row has no JSON object.
    """
    data = bytes_of(row.get("data", row.get("text")))
    if data is None:
        raise ValueError("no JSON text")
    try:
        found: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = msgspec.json.decode(to_json(parse_json(data.decode(errors="replace"))))
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return cast("Row", found)
