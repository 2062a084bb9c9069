"""`play`: a player behind HTTP on 127.0.0.1, at a free port: requests in, recorded answers or errors out.

Knows no API by name. A refusal is a 400, which no SDK tries again. An answer that broke off on its way counts as not
given, so that the same request may come again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from turnlog.cassette.apis import Api, api_of, openai_chat
from turnlog.cassette.player import Player
from turnlog.cassette.tape import Cassette, load_cassette
from turnlog.providers.body import Json


@contextmanager
def play(cassette: Cassette | Path | str, *, ignore: Sequence[str] = (), aside: str | None = None) -> Generator[Player]:
    """Serve a cassette, or the file of one, at `Player.url` until the block is left.

    Raises:
        SourceError: The file cannot be read, or is no cassette (FormatError).
    """
    name = "in memory" if isinstance(cassette, Cassette) else Path(cassette).name
    tape = cassette if isinstance(cassette, Cassette) else load_cassette(cassette)
    player = Player(tape, name, ignore=ignore, aside=aside)
    with _serving(player):
        yield player


@contextmanager
def _serving(player: Player) -> Generator[None]:
    """Listen until the block is left, and tell the player where."""
    server = _Server(player)
    player.url = f"http://127.0.0.1:{server.server_address[1]}"
    # Asked whether to stop every 20 ms: tests end as soon as they are done.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="cassette", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, player: Player) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.player = player


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A client that keeps its connection open must not keep the test from ending.
    timeout = 10

    @property
    def player(self) -> Player:
        """Whose answers are served."""
        return cast("_Server", self.server).player

    def handle(self) -> None:
        """Answer what comes over one connection, until it breaks."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: failures are the fixture's to tell."""

    def do_GET(self) -> None:
        """Nothing is to be fetched."""
        self._fail(openai_chat, f"no such address: GET {self.path}", 404)

    def do_POST(self) -> None:
        """Answer a request of any API."""
        path = self.path.partition("?")[0]
        api = api_of(path)
        if api is None:
            self._fail(openai_chat, f"no such address: POST {path}", 404)
            return
        try:
            body: Any = json.loads(self._read())
        except (ValueError, RecursionError) as error:
            # Where the body ends is not known, or it is not JSON: nothing more is read from here.
            self.close_connection = True
            self._fail(api, f"the request is not JSON: {error}", 400)
            return
        self._answer(api, cast("Json", body) if isinstance(body, dict) else {})

    def _answer(self, api: Api, body: Json) -> None:
        message = self.player.answer(api, body)
        if message is None:
            self._fail(api, self.player.failures[-1], 400)
            return
        try:
            if api.wants_stream(body, self.path):
                self._stream(api.events(message, body))
            else:
                self._send(api.answer(message, body), 200)
        except ConnectionError:
            self.player.take_back(message)
            raise

    def _read(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            length = int(self.headers.get("Content-Length") or 0)
            if length < 0:
                raise ValueError(f"a length of {length}")
            return self.rfile.read(length)
        pieces: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _fail(self, api: Api, reason: str, status: int) -> None:
        self._send(api.failure(reason, status), status)

    def _send(self, body: Any, status: int) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Json | str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self._write_chunk(_event_lines(event))
        self._write_chunk(b"")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def _event_lines(event: Json | str) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()
