"""Turns go to a receiver as they end: each once, whatever the receiver answers meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.cli_runner import command
from support.otel_receiver import OtelReceiver, attributes, receiving
from support.plain_agent import Log
from support.plain_history import call
from support.plain_store import read_home
from turnlog import paths
from turnlog.agents.changes import Link
from turnlog.errors import TurnlogError
from turnlog.exports import otel_live, otel_push
from turnlog.exports.otel_live import LiveExport
from turnlog.exports.otel_push import Receiver
from turnlog.formats.otel import OtelConversation, resource_spans, span_id
from turnlog.model import CompactionEvent, Message, Origin, Part, TextPart, ToolResult, ToolState, Usage
from turnlog.store import open_store

OLD = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Generator[OtelReceiver]:
    monkeypatch.setattr(otel_live, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(otel_live, "AGAIN_SECONDS", 0.02)
    with receiving() as receiver:
        yield receiver


class Home:
    """A home of the plain agent, with logs that grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "plain"
        self.folder.mkdir()
        self.store = folder / "turnlog.db"

    def log(self, name: str = "s") -> Log:
        return Log(self.folder, name)

    def ask(self, turn: int, time: datetime | None = None, log: str = "s") -> None:
        message = Message(
            id=f"{log}.u{turn}",
            role="user",
            origin=Origin.PROMPT,
            created_at=time or datetime.now(UTC),
            parts=(TextPart(text=f"walnut {turn}"),),
        )
        self.log(log).message(message, turn=turn)

    def answer(self, turn: int, *parts: Part, time: datetime | None = None, log: str = "s", number: int = 1) -> None:
        message = Message(
            id=f"{log}.a{turn}.{number}",
            role="assistant",
            created_at=time or datetime.now(UTC),
            model="large",
            usage=Usage(input=100, output=turn),
            parts=parts or (TextPart(text="cedar"),),
        )
        self.log(log).message(message, turn=turn, step=number)

    def read(self) -> None:
        read_home(self.store, self.folder)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.ask(1, OLD)
    made.answer(1, time=OLD + timedelta(seconds=5))
    made.read()
    return made


@contextmanager
def exporting(home: Home, double: OtelReceiver, printed: list[str] | None = None) -> Generator[None]:
    receiver = Receiver(double.address, {"X-Key": "k"}, as_json=False)
    export = LiveExport(home.store, receiver, announce=(printed if printed is not None else []).append)
    export.start()
    try:
        yield
    finally:
        export.stop()


def wait_for_place(home: Home, double: OtelReceiver) -> None:
    double.wait_until(paths.live_export_path(home.store).exists)


def turns(double: OtelReceiver) -> list[int]:
    """The turns whose spans came, in their order."""
    return [attributes(span)["turnlog.turn"] for span in double.spans() if span.name == "invoke_agent plain"]


def test_a_turn_is_sent_when_it_has_ended_and_as_an_export_has_it(home: Home, double: OtelReceiver) -> None:
    with exporting(home, double):
        wait_for_place(home, double)
        home.ask(2)
        home.read()
        home.answer(2, call("c", "Bash", {}, ToolState.INPUT_AVAILABLE))
        home.read()
        assert not double.requests
        home.log().result("c", ToolResult(id="r", status="success"), message_id="s.a2.1")
        home.answer(2, number=2)
        home.read()
        double.wait_until(lambda: set(turns(double)) == {2})
        home.ask(3)
        home.answer(3)
        home.read()
        double.wait_until(lambda: set(turns(double)) == {2, 3})
    # A turn that is read in two transactions is sent again, as the same spans.
    assert len(set(double.ids())) == 6
    with open_store(home.store) as store:
        placed = [(each.message, each.membership, each.cost) for each in store.messages("plain:s")]
        printed = OtelConversation(store.session("plain:s"), placed)
        (whole,) = resource_spans([printed], "plain:s", "1", content=False)
    exported = {span["spanId"]: span for span in whole["scopeSpans"][0]["spans"]}
    for span in double.spans():
        its = exported[span.span_id.hex()]
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
            int(its["startTimeUnixNano"]),
            int(its["endTimeUnixNano"]),
        )
        assert span.parent_span_id.hex() == its.get("parentSpanId", "")
        assert len(span.attributes) == len(its["attributes"])
    assert b"walnut" not in b"".join(request.SerializeToString() for request in double.requests)


def test_what_ends_while_no_server_runs_is_sent_by_the_next_one(home: Home, double: OtelReceiver) -> None:
    with exporting(home, double):
        wait_for_place(home, double)
        home.ask(2)
        home.answer(2)
        home.read()
        double.wait_until(lambda: turns(double) == [2])
    home.ask(3)
    home.answer(3)
    home.read()
    with exporting(home, double):
        double.wait_until(lambda: turns(double) == [2, 3])


def test_a_subagent_is_below_the_call_that_started_it(home: Home, double: OtelReceiver) -> None:
    with exporting(home, double):
        wait_for_place(home, double)
        home.ask(2)
        home.answer(2, call("c", "Agent", {}, ToolState.INPUT_AVAILABLE))
        home.log("child").link(
            Link(
                child_session_id="plain:child",
                parent_session_id="plain:s",
                kind="subagent",
                message_id="s.a2.1",
                tool_call_id="c",
            )
        )
        home.ask(1, log="child")
        home.answer(1, log="child")
        home.read()
        double.wait_until(lambda: turns(double) == [1])
        home.log().result("c", ToolResult(id="r", status="success"), message_id="s.a2.1")
        home.answer(2, number=2)
        home.read()
        double.wait_until(lambda: turns(double) == [1, 2])
    assert double.spans()[0].parent_span_id.hex() == span_id("plain:s", "s.a2.1", "c")
    assert len({span.trace_id for span in double.spans()}) == 1


def test_a_late_result_sends_its_turn_again_and_a_compaction_none(home: Home, double: OtelReceiver) -> None:
    with exporting(home, double):
        wait_for_place(home, double)
        home.ask(2)
        home.answer(2, call("c", "Bash", {}, ToolState.INPUT_AVAILABLE))
        home.answer(2, number=2)
        home.ask(3)
        home.answer(3)
        home.read()
        double.wait_until(lambda: turns(double) == [2, 3])
        home.log().result("c", ToolResult(id="r", status="success"), message_id="s.a2.1")
        home.read()
        double.wait_until(lambda: turns(double) == [2, 3, 2])
        home.log().event(CompactionEvent(id="z", position=0, trigger="auto"))
        home.ask(4)
        home.answer(4)
        home.read()
        double.wait_until(lambda: 4 in turns(double))
    assert turns(double) == [2, 3, 2, 4]


def test_a_receiver_that_is_away_gets_everything_when_it_is_back(
    home: Home, double: OtelReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel_push, "TRIES", 1)
    port, printed = double.server_port, list[str]()
    double.answers += [502] * 2
    with exporting(home, double, printed):
        wait_for_place(home, double)
        home.ask(2)
        home.answer(2)
        home.read()
        double.wait_until(lambda: len(double.heads) == 3)
        double.wait_until(lambda: len(printed) == 2)
    assert turns(double) == [2]
    assert printed == [
        f"http://127.0.0.1:{port}/v1/traces answered 502 Bad Gateway",
        f"http://127.0.0.1:{port}/v1/traces takes traces again",
    ]


def test_a_refused_request_is_skipped_and_a_wrong_key_waits(home: Home, double: OtelReceiver) -> None:
    printed: list[str] = []
    double.answers += [400, 401]
    with exporting(home, double, printed):
        wait_for_place(home, double)
        home.ask(2)
        home.answer(2)
        home.read()
        double.wait_until(lambda: len(printed) == 1)
        home.ask(3)
        home.answer(3)
        home.read()
        double.wait_until(lambda: turns(double) == [3])
    assert printed[0].endswith("answered 400 Bad Request: 2 spans are left out")
    assert printed[1].endswith("answered 401 Unauthorized")


def test_a_server_that_ends_does_not_wait_for_a_busy_receiver(home: Home, double: OtelReceiver) -> None:
    double.answers += [503] * 9
    with exporting(home, double):
        wait_for_place(home, double)
        home.ask(2)
        home.answer(2)
        home.read()
        double.wait_until(lambda: bool(double.heads))
        began = datetime.now(UTC)
    assert datetime.now(UTC) - began < timedelta(seconds=4)


def test_an_address_of_another_protocol_is_refused(home: Home) -> None:
    with pytest.raises(TurnlogError, match="does not begin with http"):
        LiveExport(home.store, Receiver("ftp://127.0.0.1", {}, as_json=False))


RECORD = (
    '{{"type":"{type}","uuid":"{id}","parentUuid":null,"sessionId":"11111111-1111-4111-8111-111111111111",'
    '"timestamp":"{time}","cwd":"/work/shop","version":"2.1.329","message":{message}}}\n'
)


def test_serve_sends_what_an_agent_has_done_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server, and a log that grows."""
    monkeypatch.setenv("TURNLOG_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    settings = tmp_path / "config.toml"
    monkeypatch.setenv("TURNLOG_CONFIG", str(settings))
    folder = tmp_path / "claude" / "projects" / "shop"
    folder.mkdir(parents=True)

    def line(type: str, id: str, message: str) -> str:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return RECORD.format(type=type, id=id, time=time, message=message)

    with receiving() as double:
        settings.write_text(f'[otel]\nendpoint = "{double.address}"\ncontent = true\n[otel.headers]\nX-Key = "k"\n')
        log = folder / "11111111-1111-4111-8111-111111111111.jsonl"
        log.write_text(line("user", "u1", '{"role":"user","content":"walnut"}'))
        store = tmp_path / "data" / "turnlog.db"
        served = subprocess.Popen(
            command("serve", "--no-browser", "--no-token", "--port", "0", "--store", str(store)),
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ.copy(),
        )
        assert served.stdout is not None
        try:
            address = served.stdout.readline().removeprefix("turnlog is at ").strip()
            double.wait_until(paths.live_export_path(store).exists)
            answer = '{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"text","text":"cedar"}],'
            usage = '"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":3}}'
            with log.open("a") as file:
                file.write(line("assistant", "a1", answer + usage))
            double.wait_until(lambda: bool(double.requests))
            # It still answers.
            assert urlopen(f"{address}api/status", timeout=10).status == 200
        finally:
            served.send_signal(signal.SIGTERM)
            served.communicate(timeout=20)
    assert double.heads == ["/v1/traces application/x-protobuf gzip k"]
    chat = attributes(next(span for span in double.spans() if span.name == "chat claude-x"))
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (7, 3)
    assert "walnut" in chat["gen_ai.input.messages"]
    assert "cedar" in chat["gen_ai.output.messages"]
