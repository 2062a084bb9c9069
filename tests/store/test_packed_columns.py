"""Places of messages and JSON of events are read as they were packed, whatever the other columns say."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.plain_agent import Log, session_id
from support.plain_store import at, read_home
from support.store_dump import check_integrity, open_read_only
from turnlog.model import CompactionEvent, HistoryEvent, Message, RecordEvent, RunMetadataEvent
from turnlog.model.codec import decode_event, to_json
from turnlog.store import open_store, zstd
from turnlog.store.packed_columns import (
    PackedEvent,
    event_json,
    pack_event,
    pack_ids,
    pack_parent,
    unpack_data,
    unpack_ids,
)
from turnlog.store.sqlite.forget import forget_for_good

OWN = "064d3527-bec2-433a-baf4-56dbf05f5a64"
UUID = "146c57db-3f35-430c-8e71-82f56c46c1e8"
WORDS = st.sampled_from([OWN, UUID, "msg_01", "#7", "", f"{OWN}:1"])


@given(st.lists(WORDS, unique=True), WORDS)
def test_ids_come_back(ids: list[str], own: str) -> None:
    assert unpack_ids(pack_ids(ids, own), own) == tuple(ids)


@pytest.mark.parametrize(
    ("ids", "size"), [((OWN,), 0), (("not a uuid",), 13), ((UUID, OWN), 33), (("own", "#7"), 6), ((), None)]
)
def test_a_message_does_not_repeat_its_own(ids: tuple[str, ...], size: int | None) -> None:
    packed = pack_ids(ids, "own" if "own" in ids else OWN)
    assert (None if packed is None else len(packed)) == size


def test_ids_of_an_older_version_are_read() -> None:
    """It wrote out the message's own id too."""
    assert unpack_ids(b"W" + msgspec.msgpack.encode((OWN, "#7")), OWN) == (OWN, "#7")
    assert unpack_ids(b"U" + bytes.fromhex(OWN.replace("-", "")), OWN) == (OWN,)


@pytest.mark.parametrize(
    ("parent", "before", "packed"),
    [("a", "a", ""), ("a", "b", "a"), ("a", None, "a"), (None, "a", None), (None, None, None), ("", "", None)],
)
def test_a_parent_that_was_stored_just_before_takes_nothing(
    parent: str | None, before: str | None, packed: str | None
) -> None:
    assert pack_parent(parent, before) == packed


def parents(path: Path, name: str) -> dict[str, str | None]:
    with open_store(path) as store:
        return {placed.message.id: placed.membership.parent_id for placed in store.messages(session_id(name))}


def stored_parents(path: Path) -> list[str | None]:
    with closing(open_read_only(path)) as connection:
        check_integrity(connection)
        return [row[0] for row in connection.execute("SELECT parent_id FROM memberships ORDER BY 1")]


def test_who_loses_the_message_before_still_knows_its_parent(tmp_path: Path) -> None:
    """R-S29: what is forgotten takes nothing from what another session keeps."""
    home, path = tmp_path / "home", tmp_path / "turnlog.db"
    home.mkdir()
    log, fork = Log(home, "one"), Log(home, "two")
    for number in range(4):
        message = Message(id=f"m{number}", role="user")
        parent = {"parent_id": f"m{number - 1}"} if number else {}
        log.message(message, **parent)
        if number > 1:
            fork.message(message, copied=True, **parent)
    fork.message(Message(id="own", role="user"), parent_id="m1")
    read_home(path, home)
    whole = {"m0": None, "m1": "m0", "m2": "m1", "m3": "m2"}
    shared = {"m2": "m1", "m3": "m2", "own": "m1"}
    assert (parents(path, "one"), parents(path, "two")) == (whole, shared)
    assert "" in stored_parents(path)
    forget_for_good(path, session_id("one"))
    assert parents(path, "two") == shared
    stored_parents(path)


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


def test_a_session_and_its_window_have_every_event(tmp_path: Path) -> None:
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
        stored_events = msgspec.json.decode(store.window(session_id("one")).to_json(), type=dict[str, msgspec.Raw])[
            "events"
        ]
    found = msgspec.json.decode(stored_events, type=list[msgspec.Raw])
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
