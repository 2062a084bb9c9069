"""What changes, sent as it changes: with content, from any number on, without a gap and without a double."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from support.event_streams import Event, events, listening
from support.plain_agent import Log
from support.plain_store import at, read_home
from support.server_history import FORK, MAIN, SUBAGENT, answer, prompt, write_history
from turnlog.agents.changes import Link
from turnlog.model import RecordEvent, TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.codec import to_json
from turnlog.server import live
from turnlog.store.sqlite.forget import forget_for_good

pytestmark = pytest.mark.timeout(180)

STREAM = f"/api/sessions/{MAIN}/events"


class Served:
    """A server over a store, and the home that fills it."""

    def __init__(self, folder: Path, address: str, app: FastAPI) -> None:
        self.folder = folder
        self.address = address
        self.topics: live.LiveTopics = app.state.context.live_topics
        self.store = app.state.context.store
        self.main = Log(folder / "home", "main")

    def read(self) -> None:
        """Read what is new, as another process would, and say so, as our own does."""
        read_home(self.folder / "turnlog.db", self.folder / "home")
        self.topics.wake()

    def add(self, *ids: str) -> None:
        for id in ids:
            self.main.message(prompt(id, f"text of {id}", 30), turn=4)
        self.read()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "home").mkdir()
    write_history(tmp_path / "home")
    read_home(tmp_path / "turnlog.db", tmp_path / "home")
    with listening(tmp_path / "turnlog.db") as (address, app):
        yield Served(tmp_path, address, app)


def ids_of(event: Event) -> list[str]:
    return [message["id"] for message in event.data["items"]]


def test_a_stream_begins_with_its_place(served: Served) -> None:
    with events(served.address, STREAM) as stream:
        assert next(stream) == ("ready", served.store.last_change(), {"sequence": served.store.last_change()})


def test_a_message_comes_with_its_place_and_the_summary(served: Served) -> None:
    """R-S39: what the agent wrote is sent as it is written, whole."""
    with events(served.address, STREAM) as stream:
        before = next(stream).id
        served.add("n1")
        event = next(stream)
    assert (event.name, event.id) == ("session", served.store.last_change())
    assert event.id > before
    assert event.data["sequence"] == event.id
    (message,) = event.data["items"]
    assert message["parts"] == [{"type": "text", "text": "text of n1"}]
    assert event.data["rows"][0] | {"position": 0} == {
        "position": 0,
        "message_id": "n1",
        "turn": 4,
        "step": None,
        "fate": "active",
        "fate_cause": None,
        "cost": None,
        "children": {},
        "results": [],
    }
    assert event.data["session"]["id"] == MAIN
    assert event.data["session"]["first_prompt"] == "Please repair the shop window"
    assert event.data["events"] == event.data["children"] == []


def test_a_result_and_an_event_are_reported_as_they_arrive(served: Served) -> None:
    """R-S39: tool calls and results step by step."""
    call = ToolCallPart(
        tool_call_id="n1",
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        input=to_json({"command": "ls"}),
        state=ToolState.INPUT_AVAILABLE,
    )
    with events(served.address, STREAM) as stream:
        next(stream)
        served.main.message(answer("n2", 31, call), turn=4, step=1)
        served.read()
        event = next(stream)
        assert event.data["items"][0]["parts"][0].get("results", []) == []
        served.main.result("n1", ToolResult(id="n1.0", content=(TextPart(text="shop.py"),)), message_id="n2")
        served.main.event(RecordEvent(id="n3", kind="hologram", known=False, created_at=at(32)))
        served.read()
        event = next(stream)
    (part,) = event.data["items"][0]["parts"]
    assert (part["state"], part["results"][0]["content"][0]["text"]) == ("output-available", "shop.py")
    assert [result for result, _ in event.data["rows"][0]["results"]] == ["n1.0"]
    assert [(found["type"], found["kind"]) for found in event.data["events"]] == [("record", "hologram")]


def test_other_sessions_are_not_sent_except_subagents(served: Served) -> None:
    with events(served.address, STREAM) as stream:
        next(stream)
        Log(served.folder / "home", "quiet").message(prompt("q9", "elsewhere", 40), turn=1)
        served.read()
        Log(served.folder / "home", "main.scout").message(prompt("s9", "seen", 41), turn=2)
        served.read()
        event = next(stream)
    assert [child["id"] for child in event.data["children"]] == [SUBAGENT]
    assert event.data["items"] == event.data["rows"] == []


def test_a_new_subagent_is_sent_with_its_parent(served: Served) -> None:
    with events(served.address, STREAM) as stream:
        next(stream)
        child = Log(served.folder / "home", "main.second")
        child.link(
            Link(kind="subagent", parent_session_id=MAIN, child_session_id="plain:main.second", tool_call_id="c2")
        )
        child.message(prompt("t1", "go", 42), turn=1)
        served.read()
        event = next(stream)
    (relationship,) = event.data["children"][0]["relationships"]
    assert (relationship["parent_session_id"], relationship["parent_tool_call_id"]) == (MAIN, "c2")


def test_all_sessions_are_sent_as_summaries(served: Served) -> None:
    with events(served.address, "/api/events") as stream:
        next(stream)
        served.add("n1")
        event = next(stream)
        assert event.name == "sessions"
        assert [item["id"] for item in event.data["items"]] == [MAIN]
        assert event.data["items"][0]["counts"]["messages"] == 6
        served.store.annotate(FORK, starred=True)
        event = next(stream)
        assert [(item["id"], item["annotations"]["starred"]) for item in event.data["items"]] == [(FORK, True)]


def test_what_was_missed_comes_first(served: Served) -> None:
    start = served.store.last_change()
    served.add("n1", "n2")
    served.add("n3")
    with events(served.address, STREAM, last=start) as stream:
        assert ids_of(next(stream)) == ["n1", "n2", "n3"]
        assert next(stream).name == "ready"
        served.add("n4")
        assert ids_of(next(stream)) == ["n4"]


def test_a_page_goes_on_where_it_was_loaded(served: Served) -> None:
    page = httpx2.get(f"{served.address}/api/sessions/{MAIN}", trust_env=False).json()
    listed = httpx2.get(f"{served.address}/api/sessions", trust_env=False).json()
    served.add("n1")
    with events(served.address, f"{STREAM}?after={page['change_sequence']}") as stream:
        assert ids_of(next(stream)) == ["n1"]
    with events(served.address, f"/api/events?after={listed['change_sequence']}") as stream:
        assert [item["id"] for item in next(stream).data["items"]] == [MAIN]
    # A browser that comes back says where it was.
    with events(served.address, f"{STREAM}?after={page['change_sequence']}", last=served.store.last_change()) as stream:
        assert next(stream).name == "ready"


def test_whoever_comes_and_goes_gets_everything_once(served: Served) -> None:
    """Lines are written while readers leave and come back with the id of their last event."""
    wanted = [f"w{number}" for number in range(60)]
    last, found = served.store.last_change(), list[str]()

    def write() -> None:
        for id in wanted:
            served.main.message(prompt(id, id, 50), turn=5)
            read_home(served.folder / "turnlog.db", served.folder / "home")
            served.topics.wake()

    writer = threading.Thread(target=write)
    writer.start()
    while len(found) < len(wanted):
        with events(served.address, STREAM, last=last) as stream:
            for event in stream:
                assert event.name in ("session", "ready")
                last = event.id
                if event.name == "session":
                    found += ids_of(event)
                    if len(found) % 3 == 0:
                        break
                if len(found) >= len(wanted):
                    break
    writer.join()
    assert found == wanted


def test_what_other_processes_write_is_seen_without_a_notice(served: Served) -> None:
    with events(served.address, STREAM) as stream:
        next(stream)
        served.main.message(prompt("n1", "unannounced", 30), turn=4)
        read_home(served.folder / "turnlog.db", served.folder / "home")
        started = time.monotonic()
        assert ids_of(next(stream)) == ["n1"]
    assert time.monotonic() - started < 5


def test_many_readers_share_one_frame(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    make = live.session_frame

    def count(*arguments: Any) -> bytes:
        made.append(make(*arguments))
        return made[-1]

    monkeypatch.setattr(live, "session_frame", count)
    with events(served.address, STREAM) as one, events(served.address, STREAM) as two:
        next(one)
        next(two)
        served.add("n1")
        assert next(one) == next(two)
    assert len(made) == 1


def test_too_much_at_once_must_be_read_anew(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "EVENT_SIZE_LIMIT", 5000)
    with events(served.address, STREAM) as stream:
        next(stream)
        served.main.message(prompt("n1", "x" * 5000, 30), turn=4)
        served.read()
        assert next(stream).name == "resync"


def test_many_sessions_at_once_must_be_read_anew(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SESSION_LIMIT", 1)
    with events(served.address, "/api/events") as stream:
        next(stream)
        Log(served.folder / "home", "quiet").message(prompt("q9", "elsewhere", 40), turn=1)
        served.add("n1")
        assert next(stream).name == "resync"


@pytest.mark.parametrize("last", [10**9, 10**30])
def test_a_place_that_is_none_of_ours_must_read_anew(served: Served, last: int) -> None:
    with events(served.address, STREAM, last=last) as stream:
        assert [next(stream).name, next(stream).name] == ["resync", "ready"]


def test_a_forgotten_session_is_gone(served: Served) -> None:
    with events(served.address, f"/api/sessions/{FORK}/events") as stream, events(served.address, "/api/events") as all:
        next(stream)
        next(all)
        forget_for_good(served.folder / "turnlog.db", FORK)
        assert next(stream).name == "gone"
        assert next(all).name == "resync"


def test_a_session_that_is_not_there_has_no_stream(served: Served) -> None:
    answer = httpx2.get(f"{served.address}/api/sessions/plain:nobody/events", trust_env=False)
    assert answer.status_code == 404


def test_streams_end_with_the_server(served: Served) -> None:
    with events(served.address, STREAM) as stream:
        next(stream)
        served.topics.close()
        assert list(stream) == []


def test_nobody_is_kept_after_the_last_reader(served: Served) -> None:
    with events(served.address, STREAM) as stream:
        next(stream)
    deadline = time.monotonic() + 10
    while served.topics.topics:
        served.add(f"n{time.monotonic_ns()}")
        assert time.monotonic() < deadline
        time.sleep(0.05)
