"""What the row of an event keeps of it, and the event's JSON again.

Most events are small records, of which the columns of the row say all but the record's own JSON: only that is kept
then, as `data`, in a zstd frame where it is smaller so. Of any other event all JSON is kept, as a frame in `body`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET

from turnlog.model import HistoryEvent, RecordEvent, RunMetadataEvent
from turnlog.model.base import RawJson
from turnlog.model.codec import encode
from turnlog.store import zstd
from turnlog.store.rows import milliseconds, moment


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
