"""What the folds of all agents share: decoding one record into a struct, and the context of the current line.

Each field of a record's struct has a default. Fields that the struct does not have are kept in `others`; a field with
another type is left out and reported. `turnlog.agents.jsonl` finds the records in the bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw, UnsetType

from turnlog.agents.changes import Changes, Diagnostic, MessageChange, Placement, SessionChange
from turnlog.model import Message, ToolResult
from turnlog.model.codec import to_json
from turnlog.model.merge import arrival_order

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
"""A plausible number of tokens: a record with any other value counts as damaged."""

Money = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""A plausible amount of money in the currency of the record, which is US dollars for all agents so far."""


StateT = TypeVar("StateT", bound=msgspec.Struct)


def state_codec(kind: type[StateT]) -> tuple[Callable[[StateT], bytes], Callable[[bytes], StateT]]:
    """The encoder and the decoder of a fold's state, which is stored with the cursor of its source."""
    return msgspec.json.Encoder().encode, msgspec.json.Decoder(kind).decode


ValueT = TypeVar("ValueT")

REPLACED = "bytes that are not UTF-8 became U+FFFD"

LARGEST_EVENT_RECORD = 4096
"""Bytes up to which the event of a record also carries the record itself; a larger one is only in the archive."""

_LARGEST_FIELD = 4096
"""Bytes of JSON up to which an unknown field is kept in metadata; of a larger one only the size is kept."""

_MOST_LEVELS = 100


class LineContext:
    """The line that a feed is reading, and the changes of the lines so far."""

    def __init__(self, changes: Changes) -> None:
        """Begin before the first line."""
        self.changes = changes
        self.json = b""
        """The line's JSON."""
        self.position = 0
        """Byte offset of the line in its source."""
        self.length = 0
        self.line_number = 0

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.changes

    def report(self, reason: str, severity: Literal["error", "note"] = "error", json_path: str | None = None) -> None:
        """Add a diagnostic about the current line."""
        self.changes.diagnostics.append(
            Diagnostic(
                offset=self.position,
                length=self.length,
                line=self.line_number,
                reason=reason,
                json_path=json_path,
                severity=severity,
            )
        )

    def report_problems(self, problems: Iterable[DecodingProblem], below: str) -> None:
        """Report what was wrong within the field `below` (`$.data`), which is decoded apart from its line."""
        for problem in problems:
            path = problem.json_path.replace("$", below, 1) if problem.json_path else below
            self.report(problem.reason, problem.severity, path)

    def report_replaced_bytes(self) -> None:
        """Add a note if the line is not UTF-8: the typed decoder does not check that in fields that it skips."""
        if not is_utf8(self.json):
            self.report(REPLACED, "note")


class LogContext(LineContext):
    """The context of a feed of a log that is one session."""

    def __init__(self, session_id: str) -> None:
        """Begin before the first line."""
        super().__init__(Changes())
        self.session_id = session_id

    @property
    def session(self) -> SessionChange:
        """What this feed has found out about the session."""
        change = self.changes.sessions.get(self.session_id)
        if change is None:
            change = self.changes.sessions[self.session_id] = SessionChange(session_id=self.session_id)
        # Of two changes the one with the later position wins, in whatever order they are merged.
        change.position = self.position
        return change

    def extend_times(self, at: datetime | None) -> None:
        """Extend the session's first and last time by that of a record, if it has one."""
        change = self.session
        if at is not None:
            change.first_at = at if change.first_at is None else min(change.first_at, at)
            change.last_at = at if change.last_at is None else max(change.last_at, at)

    def add_to_branch(
        self, message: Message, parent_id: str | None, *, turn: int | None, step: int | None = None
    ) -> None:
        """Add a message that the current record is, behind `parent_id`, and count it."""
        placement = Placement(
            session_id=self.session_id,
            position=self.position,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            parent_id=parent_id,
            turn=turn,
            step=step,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1

    def finish_branched(self, leaf: str | None, *, is_branched: bool) -> Changes:
        """Everything that this feed has found; `leaf` is the newest message of the active branch."""
        change = self.changes.sessions.get(self.session_id)
        # Without a branch the newest message is the leaf; naming it each time would make the store compute fates for
        # nothing.
        if change is not None and is_branched:
            change.has_branches = True
            change.active_leaf = leaf or ""
        return self.changes


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def aware(moment: datetime) -> datetime:
    """The time in UTC, which is assumed if it has no zone; the nearest time that Python has if UTC leaves its years."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return _FIRST if moment.year == _FIRST.year else _LAST


def branch_of(name: str | None) -> str | None:
    """The git branch that a record names; None for `HEAD`, which is what git says where no branch is checked out."""
    return name if name and name != "HEAD" else None


def names_of(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the fields of a record type, as they are in JSON."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind))


def other_fields(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The fields of a record that are not in `known`, as metadata (R-C11): `{"other_fields": {…}}`, or an empty dict.

    A value of more than 4 KB is replaced by `{"bytes": size}`, as `value_of` does; the archive has all of it.
    """
    others = {name: _small(value) for name, value in fields.items() if name not in known}
    found = {name: value for name, value in others.items() if value is not None}
    return {"other_fields": found} if found else {}


def _small(value: Any) -> Any:
    json = value if isinstance(value, Raw) else msgspec.json.encode(value)
    size = len(memoryview(json))
    return {"bytes": size} if size > _LARGEST_FIELD else value_of(json)


def value_of(json: bytes | Raw) -> Any:
    """Decode JSON; `{"bytes": size}` for a number that Python cannot hold or for deep nesting."""
    try:
        value = msgspec.json.decode(clean_json(bytes(json)))
    except (msgspec.DecodeError, RecursionError):
        return {"bytes": len(bytes(json))}
    return value if _levels(value) <= _MOST_LEVELS else {"bytes": len(bytes(json))}


def json_of(value: Any) -> Raw:
    """Exact JSON of a decoded value; `{"bytes": size}` for nesting that is too deep to be written."""
    try:
        return to_json(value)
    except RecursionError:
        return Raw(msgspec.json.encode({"bytes": len(msgspec.json.encode(value))}))


def _levels(value: Any) -> int:
    """How deeply a value is nested; counting stops one level above the maximum."""
    inside = [value]
    for level in range(_MOST_LEVELS + 1):
        if not inside:
            return level
        inside = [inner for each in inside for inner in _items(each)]
    return _MOST_LEVELS + 1


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def object_of(value: object) -> dict[str, Any]:
    """A value of JSON that should be an object; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """A value of JSON that should be an array; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """A value of JSON that should be a text and not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def in_order_of_arrival(results: Sequence[ToolResult]) -> list[ToolResult]:
    """Results in the order of their times; those without a time come last."""
    return sorted(results, key=arrival_order)


def keep_newest(window: dict[str, ValueT], key: str, value: ValueT, size: int) -> str | None:
    """Add an entry to a dict of limited size, and return the key of the oldest entry if that was dropped for it."""
    window[key] = value
    if len(window) <= size:
        return None
    oldest = next(iter(window))
    del window[oldest]
    return oldest


RecordT = TypeVar("RecordT", bound=msgspec.Struct)


class DecodingProblem(NamedTuple):
    """A part of a record that does not have the expected type: where it is, and what is wrong."""

    reason: str
    json_path: str | None
    severity: Literal["error", "note"]


class LosslessDecoder(Generic[RecordT]):
    """Decodes records and keeps fields that their struct does not declare. See `turnlog.agents.jsonl.JsonLines`."""

    def __init__(self, kind: type[RecordT], complete: type[RecordT], *, strict: bool = True) -> None:
        self._decode_complete = msgspec.json.Decoder(complete, strict=strict).decode
        self._decode_lenient = msgspec.json.Decoder(kind, strict=strict).decode
        self._names = names_of(complete)

    def decode(self, text: bytes | msgspec.Raw) -> RecordT:
        """Decode a valid record. Raises what `msgspec` raises for any other text."""
        try:
            return self._decode_complete(text)
        # Undeclared fields are rare, so a record is decoded a second time only if it has one.
        except msgspec.ValidationError:
            return self.with_others(self._decode_lenient(text), text)

    def with_others(self, record: RecordT, text: bytes | msgspec.Raw) -> RecordT:
        """The record with the JSON of its undeclared fields in `others`."""
        return msgspec.structs.replace(record, others=other_fields(fields_of(text), self._names) or None)


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def fields_of(json: bytes | Raw | UnsetType) -> dict[str, Raw]:
    """The fields of an object as exact JSON, valid UTF-8; none when it is no object."""
    try:
        return {} if isinstance(json, UnsetType) else _decode_fields(clean_json(bytes(json)))
    except (msgspec.MsgspecError, RecursionError):
        return {}


def small_object(json: bytes | Raw | UnsetType) -> dict[str, Any] | None:
    """The fields of a small, shallow object, as `value_of` has each; None for anything else.

    One decoding in the place of one for each field: most objects are small.
    """
    if isinstance(json, UnsetType):
        return {}
    text = bytes(json)
    if len(text) > _LARGEST_FIELD or text.count(b"{") + text.count(b"[") > _MOST_LEVELS:
        return None
    try:
        value = msgspec.json.decode(clean_json(text))
    except msgspec.DecodeError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def clean_json(text: bytes) -> bytes:
    """JSON that the typed decoder has skipped, made valid UTF-8 so that it can be decoded or stored.

    The decoder checks the grammar of what it skips, escapes included, but not that the bytes are UTF-8.
    """
    # Nearly all lines are ASCII, which is quick to check.
    return text if text.isascii() or is_utf8(text) else text.decode(errors="replace").encode()


_PIECE: Final = 1 << 16
"""Bytes that are checked at a time: a text of many megabytes would be written to fresh memory, and dropped."""


def is_utf8(text: bytes) -> bool:
    """Whether bytes are valid UTF-8."""
    if text.isascii():
        return True
    try:
        if len(text) <= _PIECE:
            text.decode()
            return True
        decode = codecs.getincrementaldecoder("utf-8")().decode
        for start in range(0, len(text), _PIECE):
            decode(text[start : start + _PIECE], start + _PIECE >= len(text))
    except UnicodeDecodeError:
        return False
    return True


MISSING: Any = object()
"""Returned for a value that does not fit at all."""


def salvage(
    data: bytes | msgspec.Raw, kind: Any, path: str, problems: list[DecodingProblem], *, strict: bool = True
) -> Any:
    """Decode as much of `data` as fits `kind`; report each field or item that does not, and leave it out.

    Unless it is `strict`, texts of numbers and floats without a fraction are numbers.
    """
    try:
        return msgspec.json.decode(data, type=kind, strict=strict)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
    first = bytes(data).lstrip()[:1]
    struct = _option(kind, msgspec.Struct)
    if struct is not None and first == b"{":
        return _salvage_struct(data, struct, path, problems, strict=strict)
    value = _value_of_names(kind)
    if value is not None and first == b"{":
        return _salvage_values(data, value, path, problems, strict=strict)
    item = _list_item(kind)
    if item is not None and first == b"[":
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
        read = [salvage(raw, item, f"{path}[{index}]", problems, strict=strict) for index, raw in enumerate(items)]
        # An item that does not fit keeps its place if possible: blocks and results are identified by their index.
        empty = _option(item, msgspec.Struct)
        return [empty() if value is MISSING and empty else value for value in read if value is not MISSING or empty]
    problems.append(DecodingProblem(reason, path, "error"))
    return MISSING


def _salvage_struct(
    data: bytes | msgspec.Raw, struct: Any, path: str, problems: list[DecodingProblem], *, strict: bool
) -> Any:
    raw_fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    values: dict[str, Any] = {}
    for field in _fields(struct):
        if field.encode_name in raw_fields:
            place = f"{path}.{field.encode_name}"
            values[field.name] = salvage(raw_fields[field.encode_name], field.type, place, problems, strict=strict)
    return struct(**{name: value for name, value in values.items() if value is not MISSING})


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    # msgspec evaluates all annotations anew at every call, which takes longer than decoding the record.
    return msgspec.structs.fields(struct)


def _salvage_values(
    data: bytes | msgspec.Raw, kind: Any, path: str, problems: list[DecodingProblem], *, strict: bool
) -> dict[str, Any]:
    raw_values = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    read = {name: salvage(raw, kind, f"{path}.{name}", problems, strict=strict) for name, raw in raw_values.items()}
    return {name: value for name, value in read.items() if value is not MISSING}


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType, Annotated) else (kind,)


def _option(kind: Any, base: type) -> Any:
    return next((option for option in _options(kind) if isinstance(option, type) and issubclass(option, base)), None)


def _value_of_names(kind: Any) -> Any:
    """The type of the values where `kind` is an object with any names."""
    return next((get_args(option)[1] for option in _options(kind) if get_origin(option) is dict), None)


def _list_item(kind: Any) -> Any:
    lists = [option for option in _options(kind) if get_origin(option) is list]
    return get_args(lists[0])[0] if lists else None


def raw_at(record: bytes | msgspec.Raw, *path: str | int) -> msgspec.Raw:
    """The exact JSON at a path in a record, which must exist."""
    raw = msgspec.Raw(clean_json(bytes(record)))
    for step in path:
        if isinstance(step, str):
            raw = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[step]
        else:
            raw = msgspec.json.decode(raw, type=list[msgspec.Raw])[step]
    return raw
