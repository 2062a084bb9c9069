"""Traces are sent to a receiver in batches, and again where it is busy; what it refuses is an error."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import call
from support.otel_receiver import OtelReceiver, attributes, receiving
from support.plain_agent import Log
from support.plain_history import OTHER, SESSION, answer, prompt, write_history
from support.plain_store import read_home
from turnlog.errors import TurnlogError
from turnlog.exports import export_session, otel_push
from turnlog.exports.otel_push import Receiver, push, send
from turnlog.model import FilePart, SessionTotal, TextPart, Usage
from turnlog.store import open_store

KEY = "sk-ant-" + "api03-" + "Zq8vTn2LxWc5RbYp7KdJmHs4Gf9Qe1Ua3Vi6Ow0" * 2 + "AA"


@pytest.fixture
def double() -> Generator[OtelReceiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "plain").mkdir()
    write_history(tmp_path / "plain")
    read_home(tmp_path / "turnlog.db", tmp_path / "plain")
    return tmp_path / "turnlog.db"


def receiver(double: OtelReceiver, *, as_json: bool = False) -> Receiver:
    return Receiver(double.address, {"X-Key": "k"}, as_json)


def test_every_span_is_sent_once_whatever_the_batches(
    store: Path, double: OtelReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(store) as opened:
        whole = push(opened, [SESSION, OTHER], receiver(double))
        sent = double.ids()
        double.requests.clear()
        monkeypatch.setattr(otel_push, "BATCH", 3)
        parts = push(opened, [SESSION, OTHER], receiver(double))
    assert (whole.sessions, whole.requests, whole.rejected) == (2, 1, 1)
    assert parts.requests == -(-whole.spans // 3) == parts.rejected
    assert double.ids() == sent
    assert len(set(sent)) == len(sent) == whole.spans
    assert set(double.heads) == {"/v1/traces application/x-protobuf gzip k"}


def test_a_busy_receiver_is_asked_again_when_it_says(store: Path, double: OtelReceiver) -> None:
    double.answers += [503, 429]
    waits: list[float] = []
    with open_store(store) as opened:
        assert push(opened, [OTHER], receiver(double, as_json=True), sleep=waits.append).requests == 1
    assert waits == [7, 2]
    assert double.heads[-1] == "/v1/traces application/json gzip k"
    assert [span.name for span in double.spans()].count("invoke_agent plain") == 1


@pytest.mark.parametrize("status", [400, 302])
def test_what_is_refused_is_an_error_and_not_tried_again(store: Path, double: OtelReceiver, status: int) -> None:
    double.answers += [status]
    with open_store(store) as opened, pytest.raises(TurnlogError, match=str(status)):
        push(opened, [OTHER], receiver(double))
    assert len(double.heads) == 1


def test_a_receiver_that_is_away_is_an_error_in_the_end() -> None:
    waits: list[float] = []
    with pytest.raises(TurnlogError, match="does not answer"):
        send(Receiver("http://127.0.0.1:9", {}, as_json=True), b"{}", waits.append)
    assert waits == [1, 2, 4, 8]


def test_where_nothing_listens_a_push_by_hand_fails_at_once(store: Path) -> None:
    waits: list[float] = []
    with open_store(store) as opened, pytest.raises(TurnlogError, match="does not answer"):
        push(opened, [OTHER], Receiver("http://127.0.0.1:9", {}, as_json=True), sleep=waits.append)
    assert waits == []


def test_requests_have_a_size_that_receivers_take(
    store: Path, double: OtelReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel_push, "LARGEST", 1_500)
    with open_store(store) as opened:
        pushed = push(opened, [SESSION, OTHER], receiver(double))
    assert 1 < pushed.requests == len(double.requests) < pushed.spans == len(set(double.ids()))
    assert all(request.ByteSize() < 3_000 for request in double.requests)


def test_texts_are_sent_only_on_request_and_without_secrets(tmp_path: Path, double: OtelReceiver) -> None:
    (tmp_path / "plain").mkdir()
    log = Log(tmp_path / "plain", "s")
    log.message(prompt("u", f"my walnut is {KEY}", 1), turn=1)
    log.message(answer("a", 2, TextPart(text="a cedar")), turn=1)
    read_home(tmp_path / "turnlog.db", tmp_path / "plain")
    with open_store(tmp_path / "turnlog.db") as opened:
        push(opened, ["plain:s"], receiver(double))
        without = double.requests[0].SerializeToString()
        push(opened, ["plain:s"], receiver(double), content=True)
    assert b"walnut" not in without
    assert b"cedar" not in without
    found = attributes(double.spans()[2])
    assert "my walnut is [REDACTED:" in found["gen_ai.input.messages"]
    assert "a cedar" in found["gen_ai.output.messages"]
    assert KEY.encode() not in double.requests[1].SerializeToString()


def test_a_push_says_what_traces_have_no_place_for(tmp_path: Path, double: OtelReceiver) -> None:
    (tmp_path / "plain").mkdir()
    for name in ("s", "t"):
        log = Log(tmp_path / "plain", name)
        log.session(totals={"": SessionTotal(model="m", usage=Usage(input=7, output=1))})
        log.message(prompt(f"{name}u", "a walnut", 1), turn=1)
        log.message(answer(f"{name}a", 2, FilePart(media_type="image/png", data=b"x")), turn=1)
    read_home(tmp_path / "turnlog.db", tmp_path / "plain")
    with open_store(tmp_path / "turnlog.db") as opened:
        plain = push(opened, ["plain:s", "plain:t"], receiver(double)).losses
        said = push(opened, ["plain:s", "plain:t"], receiver(double), content=True).losses
        document = export_session(opened, "plain:s", "otel").losses
    events, total = (
        "events: what happened besides messages and results",
        "session total: plain:s has tokens of no single",
    )
    assert plain == ("content: prompts, answers, inputs and outputs", events, f"{total} call (and 1 more)")
    assert said == (events, f"{total} call (and 1 more)", "file: message sa (and 1 more)")
    assert document == (*plain[:2], f"{total} call")


@pytest.mark.parametrize(
    ("endpoint", "headers"),
    [
        *(
            (each, {})
            for each in ("http://[", "http://", "http://a b/", "http://a:x", "http://a:99999", "http://u:p@a")
        ),
        *((each, {}) for each in (f"http://{'a' * 64}.invalid", "http://a..invalid:4318/v1/traces")),
        *(("http://a", {name: value}) for name, value in (("X", "a\r\nB: c"), ("X", "€"), ("ä", ""), ("X Y", ""))),
        ("ftp://a", {}),
    ],
)
def test_what_http_cannot_send_is_an_error_that_shows_no_secret(endpoint: str, headers: dict[str, str]) -> None:
    with pytest.raises(TurnlogError, match=r"http://|header") as caught:
        Receiver(endpoint, headers, as_json=True).check()
    assert not headers or "B: c" not in str(caught.value)
    assert "u:p" not in str(caught.value)


def test_a_receiver_that_does_not_speak_http_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TurnlogError, match="does not answer as HTTP does"):
            send(Receiver(f"http://127.0.0.1:{port}", {}, as_json=True), b"{}", lambda _: None)
        thread.join()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"])
def test_an_answer_that_comes_a_byte_at_a_time_is_given_up(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_push, "TRIES", 1)
    monkeypatch.setattr(otel_push, "_LONGEST_TRY", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(answer)
                while not is_over.wait(0.05):
                    connection.sendall(b"x" if answer else b"")

        is_over = threading.Event()
        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        try:
            with pytest.raises(TurnlogError, match="does not answer: its answer was not whole"):
                send(Receiver(f"http://127.0.0.1:{port}", {}, as_json=True), b"{}", time.sleep)
            assert time.monotonic() - began < 3
        finally:
            is_over.set()
            thread.join()


def test_a_name_that_nobody_finds_is_given_up_and_nothing_is_sent_later(
    double: OtelReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel_push, "TRIES", 1)
    monkeypatch.setattr(otel_push, "_LONGEST_TRY", 0.3)
    is_found, found = threading.Event(), socket.getaddrinfo

    def look_up(*arguments: Any, **named: Any) -> Any:
        assert is_found.wait(20)
        return found("127.0.0.1", *arguments[1:], **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    began = time.monotonic()
    endpoint = f"http://nowhere.example:{double.server_port}"
    with pytest.raises(TurnlogError, match="does not answer: there was no connection after"):
        send(Receiver(endpoint, {}, as_json=True), b'{"resourceSpans": []}', time.sleep)
    assert time.monotonic() - began < 10
    is_found.set()
    for thread in threading.enumerate():
        if thread.name == "otel request":
            thread.join()
    assert double.heads == []


def test_a_request_is_not_tried_for_ever(double: OtelReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_push, "_LONGEST", 1.5)
    double.answers += [429] * 9
    waits: list[float] = []
    with pytest.raises(TurnlogError, match="answered 429"):
        send(receiver(double), b'{"resourceSpans": []}', waits.append)
    assert waits == [1]


def test_the_command_says_that_it_waits(store: Path, double: OtelReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    double.answers += [503]
    result = call("otel", "push", "--no-sync", "--json", "--store", str(store), "--endpoint", double.address)
    assert result.exit_code == 0, result.stderr
    assert "does not answer: it is tried again in 7 seconds" in result.stderr
    assert waits == [7]
