"""What a machine says while a hub cannot answer, and when it gives up: the hub's reason, no numbers of the system."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TypeAlias

import pytest

from turnlog.errors import StoreBusyError
from turnlog.hub.blobs import NO_BLOBS
from turnlog.hub.machine import client as machine_client
from turnlog.hub.machine.client import HubClient, HubUnreachableError

Answer: TypeAlias = Callable[[BaseHTTPRequestHandler], None]


def not_now(message: str, status: int = 503) -> Answer:
    """An answer of a hub that may do it later; the body of the request is not read."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = json.dumps({"error": {"type": "unavailable", "message": message}}).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Retry-After", "5")
        request.end_headers()
        request.wfile.write(body)

    return answer


def reset(request: BaseHTTPRequestHandler) -> None:
    """No answer: the connection ends at once."""
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    request.connection.close()


@contextmanager
def hub_that(*answers: Answer) -> Generator[str]:
    """A hub that gives these answers, the last one again and again; its address."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            (left.pop(0) if len(left) > 1 else left[0])(self)

        do_GET = do_PUT

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

        def finish(self) -> None:
            if self.connection.fileno() >= 0:
                super().finish()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda request, client_address: None
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@contextmanager
def waiting(url: str, monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[HubClient, list[str]]]:
    """A client whose time passes as it sleeps, and what it says."""
    now, said = [0.0], list[str]()
    monkeypatch.setattr(machine_client.time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with HubClient(url, "token", sleep=sleep, announce=said.append) as client:
        yield client, said


def test_each_cause_of_waiting_is_said_once_with_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = [not_now(f"too many requests: wait {seconds} seconds", 429) for seconds in (3, 2)]
    with (
        hub_that(*[not_now(NO_BLOBS)] * 3, *wait, not_now(NO_BLOBS)) as url,
        waiting(url, monkeypatch) as (client, said),
        pytest.raises(StoreBusyError) as failure,
    ):
        client.push_blob("a" * 64, b"walnut")
    assert str(failure.value) == f"the hub {url} cannot do this now: {NO_BLOBS}"
    assert said == [
        f"the hub {url} cannot do this now: {NO_BLOBS}; tried again for 60 seconds",
        f"the hub {url} cannot do this now: too many requests: wait 3 seconds; tried again for 45 seconds",
    ]


def test_what_the_hub_has_said_is_the_reason_also_if_it_closes_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        hub_that(not_now(NO_BLOBS), reset) as url,
        waiting(url, monkeypatch) as (client, said),
        pytest.raises(StoreBusyError) as failure,
    ):
        client.get("/x")
    assert str(failure.value) == f"the hub {url} cannot do this now: {NO_BLOBS}"
    assert len(said) == 1


def test_an_answer_is_heard_also_before_all_of_the_body_was_sent() -> None:
    with (
        hub_that(not_now(NO_BLOBS)) as url,
        HubClient(url, "token", seconds=0) as client,
        pytest.raises(StoreBusyError, match="large contents"),
    ):
        client.push_blob("a" * 64, os.urandom(16 << 20))


def test_a_hub_that_never_answers_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        hub_that(reset) as url,
        waiting(url, monkeypatch) as (client, said),
        pytest.raises(HubUnreachableError, match=r"closed the connection before it had answered$"),
    ):
        client.get("/x")
    assert said == [
        f"cannot reach the hub {url}: it closed the connection before it had answered; tried again for 59 seconds"
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "nothing answers there"),
        (socket.gaierror(-2, "Name or service not known"), "its name is not known, or names cannot be looked up now"),
        (TimeoutError("timed out"), "it does not answer in time"),
        (TimeoutError(110, "Connection timed out"), "it does not answer in time"),
        (http.client.RemoteDisconnected("x"), "it closed the connection before it had answered"),
        (http.client.BadStatusLine("SSH-2.0"), "what answers does not speak HTTP"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version"), "what answers does not speak https"),
        (OSError(101, "Network is unreachable"), "Network is unreachable"),
    ],
)
def test_the_numbers_of_the_system_are_not_shown(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(HubClient, "_once", fail)
    client = HubClient("https://hub.example", seconds=0)
    with pytest.raises(HubUnreachableError) as failure:
        client.get("/x")
    assert str(failure.value) == f"cannot reach the hub https://hub.example: {reason}"
