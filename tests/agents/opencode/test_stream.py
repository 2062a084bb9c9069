"""What OpenCode prints while it runs, alone and beside the rows of the same session."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.opencode_files import AGENT, DATA, read_rows, recorded, write_database
from turnlog.agents import detect
from turnlog.agents.base import SourceKind
from turnlog.agents.changes import Changes, LineCounts
from turnlog.logs import extract_tool_calls, read_session
from turnlog.model import Message, RecordEvent, TextPart, UnknownPart
from turnlog.model.merge import merge_messages
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.importing import import_file, import_stream
from turnlog.sync.syncer import sync

STREAMS = sorted((DATA / "streams").iterdir())
RUN = DATA / "streams" / "basic-chat.jsonl"
SERVED = DATA / "streams" / "serve.sse"
SESSION = "opencode:ses_e041b9458ffepAqpwq1JX2Qyc7"

every_stream = pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)


def read(path: Path, data: bytes | None = None) -> Changes:
    found = detect(path)
    assert found.source is not None
    return AGENT.fold(found.source).feed(path.read_bytes() if data is None else data, 0)


def messages_of(changes: Changes) -> dict[str, Message]:
    return {change.message.id: change.message for change in changes.messages}


@every_stream
def test_a_stream_is_recognised_by_its_content(path: Path) -> None:
    """R-S21, R-S43: only the server says its version."""
    found = detect(path)
    assert (found.agent, found.version) == ("opencode", "1.18.33" if path == SERVED else None)
    assert found.source is not None
    assert found.source.kind is SourceKind.STREAM


@every_stream
def test_every_line_is_accounted_for_and_understood(path: Path) -> None:
    """R-S34, R-S43"""
    changes = read(path)
    assert sum(getattr(changes.counts, field) for field in LineCounts.__struct_fields__) == len(
        path.read_bytes().splitlines()
    )
    assert changes.diagnostics == []
    assert [part for message in messages_of(changes).values() for part in message.parts if _is_unknown(part)] == []
    events = [change.event for change in changes.events]
    assert [event for event in events if isinstance(event, RecordEvent) and not event.known] == []


def _is_unknown(part: object) -> bool:
    return isinstance(part, UnknownPart)


def test_the_stream_of_a_run_has_what_its_rows_have(tmp_path: Path) -> None:
    """R-S43: calls, results, texts, tokens, costs and times of every answer."""
    rows = read_rows(recorded("1.18.33", "basic-chat"), tmp_path).messages
    printed = messages_of(read(RUN))
    assert len(printed) == 9
    for message_id, message in printed.items():
        stored = rows[message_id]
        assert (message.role, message.usage, message.cost) == ("assistant", stored.usage, stored.cost)
        assert message.stop_reason == stored.stop_reason
        assert message.created_at is not None
        assert stored.created_at is not None
        assert abs(message.created_at - stored.created_at) < timedelta(milliseconds=100)
        assert texts(message) == texts(stored)
        for one, other in zip(extract_tool_calls([message]), extract_tool_calls([stored]), strict=True):
            assert (one.tool_name, one.state, one.input) == (other.tool_name, other.state, other.input)
            assert [result.content for result in one.results] == [result.content for result in other.results]


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def test_what_rows_say_of_a_message_holds(tmp_path: Path) -> None:
    """R-S43: whichever was read first."""
    rows = read_rows(recorded("1.18.33", "basic-chat"), tmp_path).messages
    for message_id, message in messages_of(read(RUN)).items():
        assert merge_messages(rows[message_id], message) == rows[message_id]
        assert merge_messages(message, rows[message_id]) == rows[message_id]


def test_the_events_of_a_server_have_the_whole_session() -> None:
    """R-S43: prompts, answers, the title, and where a turn begins."""
    changes = read(SERVED)
    assert [(change.message.role, change.placement.turn) for change in changes.messages] == [
        ("user", 1),
        *[("assistant", 1)] * (len(changes.messages) - 1),
    ]
    (session,) = changes.sessions.values()
    assert session.titles["generated"] == "served"
    assert session.agent_version == "1.18.33"


def test_pieces_of_a_text_that_never_ended_are_kept() -> None:
    """R-S43: a stream that breaks off behind a piece (delta) has what was printed so far."""
    lines = SERVED.read_bytes().splitlines(keepends=True)
    *_, last, _ = (number for number, line in enumerate(lines) if b'"message.part.delta"' in line)
    begun = messages_of(read(SERVED, b"".join(lines[: last + 1]))).values()
    found = {text for message in begun for text in texts(message)}
    whole = {text for message in messages_of(read(SERVED)).values() for text in texts(message)}
    assert found - whole <= {text[:length] for text in whole for length in range(len(text))}
    assert found - whole


def test_events_of_all_projects_stand_in_an_envelope(tmp_path: Path) -> None:
    """R-S21: as `/global/event` sends them; comments and names of events tell nothing."""
    lines = [b": keep-alive\n", b"event: message\n"]
    for line in SERVED.read_bytes().splitlines():
        if line:
            envelope = {"directory": "/home/dev/project", "payload": json.loads(line.removeprefix(b"data:"))}
            lines.append(b"data: " + json.dumps(envelope).encode() + b"\n\n")
    path = tmp_path / "global.sse"
    path.write_bytes(b"".join(lines))
    assert messages_of(read(path)) == messages_of(read(SERVED))
    assert read(path).diagnostics == []


def test_a_line_that_is_no_event_becomes_a_diagnostic() -> None:
    """R-S34: with its place, and nothing else is lost."""
    data = RUN.read_bytes()
    first = data.index(b"\n") + 1
    changes = read(RUN, data[:first] + b'{"type": "te\n' + data[first:])
    assert [(found.offset, found.line) for found in changes.diagnostics] == [(first, 2)]
    assert messages_of(changes) == messages_of(read(RUN))


@pytest.mark.parametrize("first", ["stream", "database"])
def test_a_stream_beside_the_database_changes_nothing(tmp_path: Path, first: str) -> None:
    """R-S43: nothing is there twice, or paid for twice."""
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    store.parent.mkdir()
    write_database(recorded("1.18.33", "basic-chat"), home / "opencode.db")
    sync(tmp_path / "only.db", roots=[home], agents=[AGENT])
    if first == "stream":
        assert import_stream(store, io.BytesIO(RUN.read_bytes())).messages == 9
    sync(store, roots=[home], agents=[AGENT])
    if first == "database":
        assert import_file(store, RUN).messages == 0
    assert contents_of(store) == contents_of(tmp_path / "only.db")


def contents_of(store: Path) -> Any:
    with open_store(store) as opened:
        sessions = [
            (session.id, session.title, session.counts, session.usage, session.cost)
            for session in opened.sessions(SessionFilter()).items
        ]
        placed = [(item.message, item.membership.turn, item.membership.position) for item in opened.messages(SESSION)]
    return json.loads(msgspec.json.encode((sessions, placed)))


@pytest.mark.parametrize("kind", [{}, [], None, 5])
def test_parts_of_a_kind_that_is_no_text_cost_only_themselves(kind: Any) -> None:
    """R-S34: what they hold is kept as it is."""
    events = [json.loads(line) for line in RUN.read_bytes().splitlines()]
    for event in events:
        if event.get("part", {}).get("type") == "text":
            event["part"]["type"] = kind
    changes = read(RUN, b"".join(json.dumps(event).encode() + b"\n" for event in events))
    assert changes.diagnostics == []
    assert set(messages_of(changes)) == set(messages_of(read(RUN)))
    unknown = [part for message in messages_of(changes).values() for part in message.parts if _is_unknown(part)]
    assert {part.kind for part in unknown if isinstance(part, UnknownPart)} == {str(kind)}


def test_a_run_that_failed_at_once_is_a_session_with_its_error(tmp_path: Path) -> None:
    """R-S34: nothing else was printed."""
    printed = {"type": "error", "timestamp": 1795333429968, "sessionID": SESSION.removeprefix("opencode:")}
    path = tmp_path / "out.jsonl"
    path.write_bytes(json.dumps({**printed, "error": {"name": "APIError", "data": {"message": "no"}}}).encode() + b"\n")
    history = read_session(path)
    assert history.session.id == SESSION
    assert [event.kind for event in history.events if isinstance(event, RecordEvent)] == ["session.error"]
