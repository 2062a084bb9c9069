"""An event is told as it was, whatever of it its row has in columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from support.plain_agent import Log, session_id
from support.plain_store import at, read_home
from support.store_dump import check_integrity, open_read_only
from turnlog.model import CompactionEvent, HistoryEvent, RecordEvent, RunMetadataEvent
from turnlog.model.codec import decode_event, to_json
from turnlog.store import open_store, zstd
from turnlog.store.stored_events import PackedEvent, event_json, pack_event, unpack_data

SMALL = to_json({"durationMs": 52805})
LARGE = to_json({"words": ["the same words again"] * 100})

IN_COLUMNS: list[HistoryEvent] = [
    RecordEvent(id="a", kind="mode", created_at=at(0)),
    RecordEvent(id="b", kind="new", known=False, created_at=at(1), data=SMALL),
    RunMetadataEvent(id="c", kind="turn", data=LARGE),
    RunMetadataEvent(id="d", kind="turn", created_at=datetime(1, 1, 1, tzinfo=UTC), data=to_json(None)),
]

WHOLE: list[HistoryEvent] = [
    CompactionEvent(id="e", trigger="manual", created_at=at(2)),
    RunMetadataEvent(id="f", kind="turn", created_at=at(3) + timedelta(microseconds=7), data=SMALL),
    RecordEvent(id="g", kind="turn", data=SMALL, extra={"more": msgspec.Raw(b"1")}),
    RecordEvent(id="", kind="turn", data=SMALL),
]


def without_places(event: HistoryEvent) -> HistoryEvent:
    return msgspec.structs.replace(event, position=0, records=())


@pytest.mark.parametrize("event", IN_COLUMNS)
def test_a_record_is_no_more_than_its_json(event: RecordEvent | RunMetadataEvent) -> None:
    packed = pack_event(event)
    assert packed.body is None
    assert unpack_data(packed.data) == event.data


def test_the_smaller_form_is_kept() -> None:
    assert pack_event(RecordEvent(id="x", kind="k", data=SMALL)).data == bytes(SMALL)
    assert len(pack_event(RecordEvent(id="x", kind="k", data=LARGE)).data or b"") < 100


@pytest.mark.parametrize("event", WHOLE)
def test_what_columns_do_not_hold_is_kept_whole(event: HistoryEvent) -> None:
    packed = pack_event(event)
    assert packed.data is None
    assert decode_event(event_json(None, *packed)) == event


def test_a_session_and_its_window_tell_every_event(tmp_path: Path) -> None:
    """R-K11: nothing of an event is lost on its way through the store."""
    home, path = tmp_path / "home", tmp_path / "turnlog.db"
    home.mkdir()
    log = Log(home, "one")
    events = [*IN_COLUMNS[:3], *WHOLE[:3]]
    for event in events:
        log.event(event)
    read_home(path, home)
    with open_store(path) as store:
        assert [without_places(event) for event in store.events(session_id("one"))] == events
        told = msgspec.json.decode(store.window(session_id("one")).to_json(), type=dict[str, msgspec.Raw])["events"]
    found = msgspec.json.decode(told, type=list[msgspec.Raw])
    for event, json in zip(events, found, strict=True):
        fields = msgspec.json.decode(json)
        if not isinstance(event, RecordEvent):
            fields.pop("known", None)
        assert without_places(decode_event(msgspec.json.encode(fields))) == event
    with open_read_only(path) as connection:
        check_integrity(connection)


def test_a_row_of_an_older_version_is_read(tmp_path: Path) -> None:
    """It has all of the event in its body."""
    event = RecordEvent(id="b", kind="new", known=False, created_at=at(1), data=SMALL)
    json = b'{"type":"record","id":"b"}'
    assert event_json(None, zstd.compress(json), None) == json
    assert event_json('{"id":"b"}', *PackedEvent(data=bytes(SMALL))) == b'{"id":"b","data":{"durationMs":52805}}'
    assert event_json('{"id":"b"}', *pack_event(event)) == b'{"id":"b","data":{"durationMs":52805}}'
