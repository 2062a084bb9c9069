"""What a machine says while a hub cannot answer, and when it gives up: the hub's reason, no numbers of the system."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import pytest

from support.cli_runner import call
from support.toy_store import ToyStore
from turnlog.errors import StoreBusyError, StoreError
from turnlog.hub.blobs import NO_BLOBS
from turnlog.hub.machine import client as machine_client
from turnlog.hub.machine.client import HubClient, HubUnreachableError
from turnlog.hub.machine.state import HubConnection, MachineState

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

        do_GET = do_POST = do_PUT

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


def sends(body: bytes, length: int | None = None) -> Answer:
    """An answer of something that is, or says that it is, a hub."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)
        request.close_connection = True

    return answer


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


@pytest.mark.parametrize(
    "command", [("hub", "push", "--no-sync"), ("why", "--hub", "https://github.com/ada/shop/pull/3")]
)
def test_commands_say_why_they_wait(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(machine_client, "HubClient", partial(HubClient, sleep=interrupt))
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"hello"}\n')
    with hub_that(not_now("the database does not answer")) as url:
        with MachineState(toy.path) as state:
            state.connect(HubConnection(url, "token", "1", "ana", "laptop"))
        said = call(*command, "--store", str(toy.path)).output
    assert (
        f"turnlog: the hub {url} cannot do this now: the database does not answer; tried again for 60 seconds" in said
    )


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


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "the hub answers with something else than was asked for: Expected `object`, got `array`"),
        (b'"x"', "the hub answers with something else than was asked for"),
        (b"{}", "the hub answers with something else than was asked for: Object missing required field `sessions`"),
        (b'{"sessions": null}', "Expected `array`, got `null` - at `$.sessions`"),
        (b'{"sessions": [["claude-code:1"]]}', "Expected `str`, got `array` - at `$.sessions[0]`"),
        (b'{"sessions": [], "others": 5}', "Expected `array`, got `int` - at `$.others`"),
        (b"<html>hello</html>", "the hub answers with something that is no JSON"),
        (b'{"sessions": ["claude-co', "the hub answers with something that is no JSON"),
        (b'{"sessions": ["\xff"]}', "the hub answers with something that is no JSON"),
        (b'{"more": ' + b"[" * 100_000, "the hub answers with something that is no JSON"),
        (b"", "the hub answers with something that is no JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_odd_answers_are_errors_of_one_line(tmp_path: Path, body: bytes, said: str) -> None:
    with hub_that(sends(body)) as url:
        with MachineState(tmp_path / "turnlog.db") as state:
            state.connect(HubConnection(url, "token", "1", "ana", "laptop"))
        options = ("--to", str(tmp_path / "to"), "--store", str(tmp_path / "turnlog.db"))
        for what in ("--all", "claude-code:1"):
            found = call("hub", "pull", what, *options)
            assert isinstance(found.exception, SystemExit), found.exception
            assert found.output.count("\n") == 1, found.output
        assert said in call("hub", "pull", "--all", *options).output


ODD = (b"[]", b"{}", b"5", b'{"position": 5, "generation": "x", "missing": [5], "refused": 5, "ends": {"a": [1]}}')


@pytest.mark.parametrize("body", ODD, ids=str)
def test_odd_answers_while_pushing_are_errors(body: bytes) -> None:
    with hub_that(sends(body)) as url, HubClient(url, "token", seconds=0) as client:
        for ask in (
            lambda: client.position("s"),
            lambda: client.push("s", b""),
            client.missing_blobs,
            lambda: client.archived_sizes(["a"]),
            client.budgets,
            lambda: client.begin_device("laptop", "linux"),
            lambda: client.poll_device("code"),
        ):
            with pytest.raises(StoreError, match=r"^(the hub answers|.* is not a hub)"):
                ask()


@pytest.mark.parametrize("field", ['"interval": "soon"', '"interval": null', '"expires_in": []', '"user_code": 7'])
def test_an_odd_code_for_a_machine_is_an_error(field: str) -> None:
    rest = b'{"user_code": "A-B", "verification_uri": "http://h", "device_code": "d", ' + field.encode() + b"}"
    refused = pytest.raises(StoreError, match=r"^the hub answers with something else than was asked for")
    with hub_that(sends(rest)) as url, HubClient(url, seconds=0) as client, refused:
        client.begin_device("laptop", "linux")


def test_all_missing_contents_are_requested_from_hubs_without_pages() -> None:
    first, second = [f"{number:064x}" for number in (1, 2)], [f"{number:064x}" for number in (3, 4)]

    def page(hashes: list[str]) -> Answer:
        return sends(json.dumps({"missing": hashes}).encode())

    with hub_that(page(first), page(second), page([])) as url, HubClient(url, "token", seconds=0) as client:
        assert client.missing_blobs() == [*first, *second]
    with hub_that(page(first)) as url, HubClient(url, "token", seconds=0) as client:
        assert client.missing_blobs() == first
