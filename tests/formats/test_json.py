"""Our own JSON comes back equal."""

import json

from hypothesis import given
from hypothesis import strategies as st

from support.model_values import values_of
from turnlog.formats.json import to_json, to_json_lines
from turnlog.history import decode_lines
from turnlog.model import HistoryEvent, Session
from turnlog.model.codec import decode_event, decode_session, encode

EVENTS = st.lists(values_of(HistoryEvent), max_size=3)


@given(values_of(Session), EVENTS)
def test_a_document_holds_everything(session: Session, events: list[HistoryEvent]) -> None:
    document = b"".join(to_json(session, events))
    read = json.loads(document)
    assert list(read) == ["session", "events"]
    assert len(read["events"]) == len(events)
    assert encode(session) in document
    assert all(encode(event) in document for event in events)


@given(EVENTS)
def test_lines_come_back_equal(events: list[HistoryEvent]) -> None:
    assert list(decode_lines(b"".join(to_json_lines(events))).events) == [decode_event(encode(e)) for e in events]


def test_an_empty_session_is_a_document() -> None:
    session = Session(id="a:s", agent="a", external_id="s")
    read = json.loads(b"".join(to_json(session, [])))
    assert decode_session(json.dumps(read["session"]).encode()) == session
    assert read["events"] == []
