"""The lines of a log as records, and the payload in each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from turnlog.agents.changes import Changes
from turnlog.agents.codex.records import (
    FIRST_KEYS,
    Communication,
    Compacted,
    CompleteItem,
    Event,
    Item,
    Line,
    Meta,
    TurnContext,
    UsageRecord,
)
from turnlog.agents.decoding import KeepingDecoder, clean_json
from turnlog.agents.jsonl import UNREADABLE, JsonLines

PayloadT = TypeVar("PayloadT", bound=msgspec.Struct)

Tell: TypeAlias = Callable[[str, Literal["error", "note"], str | None], None]
"""Takes a problem: what, how bad, where in the record."""


def _is_record(record: Line) -> bool:
    return bool(record.type or record.record_type) or (record.id is not None and record.timestamp is not None)


read_lines = JsonLines(Line, first_keys=FIRST_KEYS, plausible=_is_record).read
"""Reads records out of bytes: see `turnlog.agents.jsonl.JsonLines.read`."""

decode_line = msgspec.json.Decoder(Line).decode


class Payload(Generic[PayloadT]):
    """Decodes the payload of one family of records."""

    def __init__(self, kind: type[PayloadT], complete: type[PayloadT] | None = None) -> None:
        self._kind = kind
        self.decode = (msgspec.json.Decoder(kind) if complete is None else KeepingDecoder(kind, complete)).decode
        """Decodes a sound payload, and raises one of `UNREADABLE` for any other: where every call counts."""
        self._tolerant = JsonLines(kind, first_keys=("type",), plausible=lambda record: True, complete=complete)

    def read(self, raw: Raw | bytes, tell: Tell) -> PayloadT:
        """The payload; what of it cannot be read is told and left out."""
        try:
            return self.decode(raw)
        except UNREADABLE:
            return self.salvage(raw, tell)

    def salvage(self, raw: Raw | bytes, tell: Tell) -> PayloadT:
        """What can be read of a payload that is not sound."""
        found = self._tolerant.decode(bytes(raw))
        if isinstance(found, str):
            tell(found, "error", "$.payload")
            return self._kind()
        for problem in found.problems:
            path = problem.json_path
            tell(problem.reason, problem.severity, None if path is None else f"$.payload{path.removeprefix('$')}")
        return found.record


ITEMS = Payload(Item, CompleteItem)
EVENTS = Payload(Event)
decode_item = ITEMS.decode
decode_event = EVENTS.decode
read_item = ITEMS.read
read_usage_record = Payload(UsageRecord).read
read_meta = Payload(Meta).read
read_turn_context = Payload(TurnContext).read
read_compacted = Payload(Compacted).read
read_communication = Payload(Communication).read

_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def clean(raw: Raw) -> Raw:
    """JSON that was passed over when its record was decoded, fit to be kept."""
    data = bytes(raw)
    cleaned = clean_json(data)
    return raw if cleaned is data else Raw(cleaned)


def fields_of(json: bytes | Raw) -> dict[str, Raw]:
    """The fields of an object as exact JSON; none when it is no object."""
    try:
        return _decode_fields(clean_json(bytes(json)))
    except msgspec.MsgspecError:
        return {}


def thread_named_in(data: bytes) -> str | None:
    """The thread that the first record names which names one."""
    for record, *_ in read_lines(data, 0, 1, Changes()):
        if record.type == "session_meta" and isinstance(record.payload, Raw):
            try:
                return msgspec.json.decode(record.payload, type=Meta).id
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
        if not record.type and record.id is not None:
            return record.id
    return None
