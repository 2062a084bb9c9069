"""The piece of a session that a browser gets, made of frames as they are stored."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.agents.changes import Link
from turnlog.errors import NotFoundError
from turnlog.model import (
    CompactionEvent,
    Message,
    Origin,
    RecordEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    Usage,
)
from turnlog.model.codec import encode
from turnlog.store import bodies, open_store
from turnlog.store.base import Store
from turnlog.store.window import FrameWindow


def read(window: FrameWindow) -> dict[str, Any]:
    """The document, after a look that both of its forms are the same."""
    unpacked = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(window.to_zstd()), read_across_frames=True).read()
    assert unpacked == window.to_json()
    return msgspec.json.decode(unpacked)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    log = Log(home, "one")
    log.event(RecordEvent(id="start", kind="mode", created_at=at(0)))
    for number in range(10):
        prompt = Message(id=f"p{number}", role="user", origin=Origin.PROMPT, parts=(TextPart(text=f"Ä{number} 你好"),))
        part = ToolCallPart(tool_call_id=f"t{number}", tool_name="Task", kind=ToolKind.SUBAGENT)
        answer = Message(
            id=f"a{number}", role="assistant", model="large", parts=(part,), usage=Usage(input=1, output=1)
        )
        log.message(prompt, turn=number + 1)
        log.message(answer, turn=number + 1, step=1)
        log.result(f"t{number}", ToolResult(id=f"t{number}:1", content=(TextPart(text="x" * 70_000),)))
    log.event(CompactionEvent(id="end", trigger="manual"))
    for number in (3, 5):
        child = f"plain:one.{number}"
        log.link(
            Link(kind="subagent", parent_session_id="plain:one", child_session_id=child, tool_call_id=f"t{number}")
        )
    Log(home, "empty").event(RecordEvent(id="only", kind="mode"))
    fork = Log(home, "two")
    fork.message(Message(id="a0", role="assistant", model="large", usage=Usage(input=1, output=1)), copied=True)
    read_home(tmp_path / "turnlog.db", home)
    return tmp_path / "turnlog.db"


def test_it_is_the_messages_their_places_and_the_events_between(path: Path) -> None:
    """R-S40."""
    with open_store(path) as store:
        window = store.window("plain:one")
        document = read(window)
        messages = store.messages("plain:one", resolve_blobs=False)
        assert document["items"] == [msgspec.json.decode(encode(stored(placed.message))) for placed in messages]
        assert [(row["position"], row["message_id"], row["turn"], row["step"]) for row in document["rows"]] == [
            (placed.membership.position, placed.message.id, placed.membership.turn, placed.membership.step)
            for placed in messages
        ]
        assert [event["id"] for event in document["events"]] == ["start", "end"]
        assert (document["has_before"], document["has_after"]) == (False, False)


def stored(message: Message) -> Message:
    """A message without what the session adds to it: that is in the window's rows."""
    parts = tuple(
        msgspec.structs.replace(
            part,
            child_session_id=None,
            results=tuple(msgspec.structs.replace(result, sequence=None) for result in part.results),
        )
        if isinstance(part, ToolCallPart)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def test_a_row_says_what_the_session_adds(path: Path) -> None:
    with open_store(path) as store:
        rows = read(store.window("plain:one"))["rows"]
        answer = store.messages("plain:one")[7]
        call = answer.message.parts[0]
        assert isinstance(call, ToolCallPart)
        assert rows[7] == {
            "position": answer.membership.position,
            "message_id": "a3",
            "turn": 4,
            "step": 1,
            "fate": "active",
            "fate_cause": None,
            "cost": 0.002,
            "children": {"t3": "plain:one.3"},
            "results": [["t3:1", call.results[0].sequence]],
        }
        assert [number for number, row in enumerate(rows) if row["children"]] == [7, 11]
        assert (rows[0]["cost"], rows[0]["results"]) == (None, [])


def test_the_extent_is_from_the_first_message_to_the_last(path: Path) -> None:
    with open_store(path) as store:
        positions = [row["position"] for row in read(store.window("plain:one", limit=100))["rows"]]
        assert store.extent("plain:one") == (positions[0], positions[-1])
        assert len(positions) == 20
        with pytest.raises(NotFoundError):
            store.extent("plain:nobody")


def test_a_copy_costs_nothing_in_the_session_that_does_not_pay(path: Path) -> None:
    with open_store(path) as store:
        assert [row["cost"] for row in read(store.window("plain:two"))["rows"]] == [0]


def test_events_say_what_their_row_says_or_all_that_they_say(path: Path) -> None:
    with open_store(path) as store:
        start, end = read(store.window("plain:one"))["events"]
        assert start == {
            "type": "record",
            "position": 0,
            "id": "start",
            "kind": "mode",
            "created_at": "2026-11-02T09:00:00.000Z",
        }
        assert (end["type"], end["trigger"]) == ("compaction", "manual")


def test_windows_side_by_side_hold_everything_once(path: Path) -> None:
    with open_store(path) as store:
        whole = read(store.window("plain:one", limit=100))
        for limit in (1, 3, 7):
            forwards, backwards = walk(store, limit, "after"), walk(store, limit, "before")
            for name in ("items", "rows", "events"):
                assert [item for window in forwards for item in window[name]] == whole[name]
                assert [item for window in reversed(backwards) for item in window[name]] == whole[name]


def walk(store: Store, limit: int, direction: str) -> list[dict[str, Any]]:
    edge = {"after": -1, "before": 1 << 40}[direction]
    windows: list[dict[str, Any]] = []
    while True:
        window = read(store.window("plain:one", limit=limit, **{direction: edge}))
        windows.append(window)
        if not window["has_after" if direction == "after" else "has_before"]:
            return windows
        edge = window["rows"][-1 if direction == "after" else 0]["position"]


def test_a_window_around_a_place_has_something_on_both_sides(path: Path) -> None:
    with open_store(path) as store:
        middle = store.messages("plain:one")[9].membership.position
        window = read(store.window("plain:one", around=middle, limit=4))
        assert [row["message_id"] for row in window["rows"]] == ["a3", "p4", "a4", "p5"]
        assert (window["has_before"], window["has_after"]) == (True, True)


def test_a_session_without_messages_is_an_empty_window(path: Path) -> None:
    with open_store(path) as store:
        window = read(store.window("plain:empty"))
        assert (window["items"], window["rows"], window["has_before"], window["has_after"]) == ([], [], False, False)
        assert [event["id"] for event in window["events"]] == ["only"]


def test_no_message_is_decoded_for_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes it fast: frames go out as they were stored."""

    def refuse(data: object) -> Message:
        raise AssertionError("a message was decoded")

    monkeypatch.setattr(bodies, "decode", refuse)
    with open_store(path) as store:
        window = store.window("plain:one")
        assert len(window.frames) == 20
        assert all(frame in window.to_zstd() for frame in window.frames)
