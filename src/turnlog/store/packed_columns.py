"""What columns of memberships and events keep packed: places of records, ids of records, JSON of events.

A membership keeps byte ranges as MessagePack, and record ids as 16 bytes each when they are UUIDs. Most messages hang
under the one that was stored before them, and have one record id, their own: neither is repeated.

Most events are small records, of which the columns of the row say all but the record's own JSON: only that is kept
then, as `data`, in a zstd frame where it is smaller so. Of any other event all JSON is kept, as a frame in `body`.
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
"""MessagePack: an array whose length follows in four bytes, and an empty one."""

_BEFORE = ""
"""The parent is the message whose key is one less: keys are never used twice."""

PARENT_ID = (
    "CASE s.parent_id WHEN '' THEN (SELECT external_id FROM messages WHERE key = s.message_key - 1)"
    " ELSE s.parent_id END"
)
"""Id of the parent, of a membership `s`."""

_OWN = b""
"""One record id, that of the message itself."""

_UUIDS = b"U"
_WORDS = b"W"
_UUID_LENGTH = 36
_ALL_UUIDS = re.compile("(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})+")


def pack_records(records: Iterable[RecordRef]) -> bytes:
    """Records of a message in one session, as `memberships.records` holds them."""
    return _encoder.encode(records)


def unpack_records(packed: bytes | None) -> tuple[RecordRef, ...]:
    """The inverse of `pack_records`; nothing for NULL."""
    return _decoder.decode(packed) if packed else ()


def unpack_many(packed: Sequence[bytes | None]) -> list[tuple[RecordRef, ...]]:
    """`unpack_records` of each, in one call."""
    return _decoder_of_many.decode(
        _ARRAY + len(packed).to_bytes(4, "big") + b"".join([records or _NOTHING for records in packed])
    )


def pack_parent(parent_id: str | None, before: str | None) -> str | None:
    """A parent's id as `memberships.parent_id` holds it, given the id of the message whose key is one less."""
    if not parent_id:
        return None
    return _BEFORE if parent_id == before else parent_id


def pack_ids(ids: Sequence[str], message_id: str) -> bytes | None:
    """Record ids of a message as `memberships.record_ids` holds them."""
    if not ids:
        return None
    if len(ids) == 1 and ids[0] == message_id:
        return _OWN
    joined = "".join(ids)
    if _ALL_UUIDS.fullmatch(joined) and len(joined) == _UUID_LENGTH * len(ids):
        return _UUIDS + bytes.fromhex(joined.replace("-", ""))
    return _WORDS + _encoder.encode([None if word == message_id else word for word in ids])


def unpack_ids(packed: bytes | None, message_id: str) -> tuple[str, ...]:
    """The inverse of `pack_ids`; nothing for NULL."""
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


class PackedEvent(NamedTuple):
    """Columns of a row of `events`; with neither, the other columns say it all."""

    body: bytes | None = None
    data: bytes | None = None


def pack_event(event: HistoryEvent) -> PackedEvent:
    """What is kept of an event beside what is told in columns."""
    if not isinstance(event, RecordEvent | RunMetadataEvent):
        return PackedEvent(body=zstd.compress(encode(event)))
    if event.data is UNSET:
        return PackedEvent()
    # Columns have no place for unknown fields, nor for a time finer than a millisecond.
    if not event.id or event.extra or moment(milliseconds(event.created_at)) != event.created_at:
        return PackedEvent(body=zstd.compress(encode(event)))
    data = bytes(event.data)
    return PackedEvent(data=min(data, zstd.compress(data), key=len))


def unpack_data(data: bytes | None) -> RawJson:
    """The JSON that a row keeps as `data`; UNSET where there is none."""
    if data is None:
        return UNSET
    return msgspec.Raw(zstd.decompress(data) if zstd.is_frame(data) else data)


def event_json(said: str | None, body: bytes | None, data: bytes | None) -> bytes:
    """The JSON of an event, of which its columns say `said` where it has no body."""
    if body is not None:
        return zstd.decompress(body)
    columns = (said or "").encode()
    record = unpack_data(data)
    return columns if record is UNSET else b'%b,"data":%b}' % (columns[:-1], bytes(record))
