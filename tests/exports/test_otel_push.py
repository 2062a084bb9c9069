"""Traces are sent to a receiver in batches, and again where it is busy; what it refuses is an error."""

from __future__ import annotations

import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from support.plain_history import OTHER, SESSION, write_history
from support.plain_store import read_home
from turnlog.errors import TurnlogError
from turnlog.exports import otel_push
from turnlog.exports.otel_push import Receiver, push
from turnlog.store import open_store


class Double(HTTPServer):
    """A receiver that gives the answers of a list, then takes everything."""

    answers: list[int]
    bodies: list[bytes]
    paths: list[str]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        double = cast(Double, self.server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        double.paths.append(f"{self.path} {self.headers['Content-Type']} {self.headers['X-Key']}")
        status = double.answers.pop(0) if double.answers else 200
        answer = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=1))
        if status == 200:
            double.bodies.append(body)
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "7")
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(answer.SerializeToString() if status == 200 else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def double() -> Generator[Double]:
    with Double(("127.0.0.1", 0), Handler) as server:
        server.answers, server.bodies, server.paths = [], [], []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "plain").mkdir()
    write_history(tmp_path / "plain")
    read_home(tmp_path / "turnlog.db", tmp_path / "plain")
    return tmp_path / "turnlog.db"


def receiver(double: Double, *, as_json: bool = False) -> Receiver:
    return Receiver(f"http://127.0.0.1:{double.server_port}", {"X-Key": "k"}, as_json)


def ids(bodies: list[bytes]) -> list[bytes]:
    requests = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    return [span.span_id for each in requests for found in each.resource_spans for span in found.scope_spans[0].spans]


def test_every_span_is_sent_once_whatever_the_batches(
    store: Path, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(store) as opened:
        whole = push(opened, [SESSION, OTHER], receiver(double))
        sent = ids(double.bodies)
        double.bodies.clear()
        monkeypatch.setattr(otel_push, "BATCH", 3)
        parts = push(opened, [SESSION, OTHER], receiver(double))
    assert (whole.sessions, whole.requests, whole.rejected) == (2, 1, 1)
    assert parts.requests == -(-whole.spans // 3) == parts.rejected
    assert ids(double.bodies) == sent
    assert len(set(sent)) == len(sent) == whole.spans
    assert set(double.paths) == {"/v1/traces application/x-protobuf k"}


def test_a_busy_receiver_is_asked_again_when_it_says(store: Path, double: Double) -> None:
    double.answers += [503, 429]
    waits: list[float] = []
    with open_store(store) as opened:
        assert push(opened, [OTHER], receiver(double, as_json=True), sleep=waits.append).requests == 1
    assert waits == [7, 2]
    assert double.bodies[0].startswith(b'{"resourceSpans"')


@pytest.mark.parametrize("status", [400, 302])
def test_what_is_refused_is_an_error_and_not_tried_again(store: Path, double: Double, status: int) -> None:
    double.answers += [status]
    with open_store(store) as opened, pytest.raises(TurnlogError, match=str(status)):
        push(opened, [OTHER], receiver(double))
    assert len(double.paths) == 1


def test_a_receiver_that_is_away_is_an_error_in_the_end(store: Path) -> None:
    waits: list[float] = []
    with open_store(store) as opened, pytest.raises(TurnlogError, match="does not answer"):
        push(opened, [OTHER], Receiver("http://127.0.0.1:9", {}, as_json=True), sleep=waits.append)
    assert waits == [1, 2, 4, 8]
