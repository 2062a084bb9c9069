"""Packed columns of memberships and events: places of records, record ids, JSON of events.

A membership keeps byte ranges as MessagePack, and record ids as 16 bytes each if they are UUIDs. The parent of most
messages is the message stored before them, and their only record id is their own; both are then left out.

Most events are small records. The columns of the row have everything but the record's own JSON, so only that is kept,
as `data`, in a zstd frame if that is smaller. For any other event, `body` keeps all JSON, as a frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from turnlog.agents.changes import RecordRef
from turnlog.model import HistoryEvent, RecordEvent, RunMetadataEvent
from turnlog.model.base import RawJson
from turnlog.model.codec import encode
from turnlog.store import zstd
from turnlog.store.rows import milliseconds, moment

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[RecordRef, ...])
_decoder_of_many = msgspec.msgpack.Decoder(list[tuple[RecordRef, ...]])
_ARRAY = b"\xdd"
_NOTHING = b"\x90"
"""MessagePack: the prefix of an array with a four-byte length, and an empty array."""

_BEFORE = ""
"""The parent is the message with the previous key; keys are never reused."""

PARENT_ID = (
    "CASE s.parent_id WHEN '' THEN (SELECT external_id FROM messages WHERE key = s.message_key - 1)"
    " ELSE s.parent_id END"
)
"""SQL for the parent's id of a membership `s`."""

_OWN = b""
"""There is one record id: that of the message itself."""

_UUIDS = b"U"
_WORDS = b"W"
_UUID_LENGTH = 36
_ALL_UUIDS = re.compile("(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})+")


def pack_records(records: Iterable[RecordRef]) -> bytes:
    """The value of `memberships.records` for the records of a message in one session."""
    return _encoder.encode(records)


def unpack_records(packed: bytes | None) -> tuple[RecordRef, ...]:
    """The inverse of `pack_records`; empty for NULL."""
    return _decoder.decode(packed) if packed else ()


def unpack_many(packed: Sequence[bytes | None]) -> list[tuple[RecordRef, ...]]:
    """`unpack_records` for many values, in one call."""
    return _decoder_of_many.decode(
        _ARRAY + len(packed).to_bytes(4, "big") + b"".join([records or _NOTHING for records in packed])
    )


def pack_parent(parent_id: str | None, before: str | None) -> str | None:
    """The value of `memberships.parent_id`, given the id of the message with the previous key."""
    if not parent_id:
        return None
    return _BEFORE if parent_id == before else parent_id


def pack_ids(ids: Sequence[str], message_id: str) -> bytes | None:
    """The value of `memberships.record_ids`."""
    if not ids:
        return None
    if len(ids) == 1 and ids[0] == message_id:
        return _OWN
    joined = "".join(ids)
    if _ALL_UUIDS.fullmatch(joined) and len(joined) == _UUID_LENGTH * len(ids):
        return _UUIDS + bytes.fromhex(joined.replace("-", ""))
    return _WORDS + _encoder.encode([None if word == message_id else word for word in ids])


def unpack_ids(packed: bytes | None, message_id: str) -> tuple[str, ...]:
    """The inverse of `pack_ids`; empty for NULL."""
    if packed is None:
        return ()
    if packed == _OWN:
        return (message_id,)
    if packed[:1] == _WORDS:
        words = msgspec.msgpack.decode(packed[1:], type=list[str | None])
        return tuple([message_id if word is None else word for word in words])
    digits = packed.hex()
    return tuple(
        [
            f"{digits[i : i + 8]}-{digits[i + 8 : i + 12]}-{digits[i + 12 : i + 16]}-{digits[i + 16 : i + 20]}"
            f"-{digits[i + 20 : i + 32]}"
            for i in range(2, len(digits), 32)
        ]
    )


PLAIN_TYPES: dict[str, type[RecordEvent | RunMetadataEvent]] = {
    "record": RecordEvent,
    "run-metadata": RunMetadataEvent,
}
"""Kinds of events whose columns are enough if they have no body."""


class PackedEvent(NamedTuple):
    """The packed columns of a row of `events`. If both are empty, the other columns have everything."""

    body: bytes | None = None
    data: bytes | None = None


def pack_event(event: HistoryEvent) -> PackedEvent:
    """What to keep of an event in addition to its columns."""
    if not isinstance(event, RecordEvent | RunMetadataEvent):
        return PackedEvent(body=zstd.compress(encode(event)))
    if event.data is UNSET:
        return PackedEvent()
    # Columns have no place for unknown fields, or for a time with more than milliseconds.
    if not event.id or event.extra or moment(milliseconds(event.created_at)) != event.created_at:
        return PackedEvent(body=zstd.compress(encode(event)))
    data = bytes(event.data)
    return PackedEvent(data=min(data, zstd.compress(data), key=len))


def unpack_data(data: bytes | None) -> RawJson:
    """The JSON that a row keeps as `data`; UNSET if it has none."""
    if data is None:
        return UNSET
    return msgspec.Raw(zstd.decompress(data) if zstd.is_frame(data) else data)


def event_json(columns_json: str | None, body: bytes | None, data: bytes | None) -> bytes:
    """The JSON of an event, made from `said`, the values of its columns, if it has no body."""
    if body is not None:
        return zstd.decompress(body)
    columns = (columns_json or "").encode()
    record = unpack_data(data)
    return columns if record is UNSET else b'%b,"data":%b}' % (columns[:-1], bytes(record))
