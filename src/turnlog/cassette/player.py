"""Plays a cassette over HTTP: gives each request the recorded answer, or says where it leaves the recording.

`play` serves a `Player` on 127.0.0.1, at a free port; only `apis` knows the APIs' forms. A refusal is a 400, which no
SDK tries again. An answer that broke off on its way counts as not given, so that the same request may come again.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, cast

from turnlog.cassette.apis import Api, api_of, openai_chat
from turnlog.cassette.conversation import Mismatch, PlayedConversation, compare
from turnlog.cassette.tape import Cassette, EarlierAnswer, Entry, Exchange, Track, load_cassette, requests_of
from turnlog.model import Message, TextPart
from turnlog.providers.body import Json, word


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
    """Listen until the block is left, and give the player the address."""
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


class Player:
    """A cassette that is being played. Several threads may use it."""

    def __init__(self, cassette: Cassette, name: str, *, ignore: Sequence[str] = (), aside: str | None = None) -> None:
        """Rewind the cassette.

        Args:
            cassette: What is played.
            name: What it is called in failures.
            ignore: Regular expressions (`.` is any character) of what is not compared in any text.
            aside: The answer to requests that offer no tools and are not recorded, such as one for a title.
        """
        self.url = ""
        """Where it is served: `http://127.0.0.1:<port>`."""
        self.requests: list[Json] = []
        """The bodies of all requests so far, asides and wrong ones too."""
        self.failures: list[str] = []
        """Why requests were refused."""
        self._name = name
        self._ignored = [re.compile(pattern, re.DOTALL) for pattern in ignore]
        self._aside = aside
        self._tracks = [_Playing(track) for track in cassette.tracks]
        self._contexts: dict[str, tuple[Entry, ...]] = {}
        self._lock = threading.Lock()

    def answer(self, api: Api, body: Json) -> Message | None:
        """The recorded answer to a request; None where it is refused, and the last of `failures` says why."""
        with self._lock:
            self.requests.append(body)
            sent, unknown = self._conversation(api, body)
            attempts: list[_Attempt] = []
            # Subagents ask in any order, so every track may be the one; each is compared with its own next exchange
            # only.
            for playing in [each for each in self._tracks if each.left]:
                context, exchange = playing.next()
                mismatch = compare(context, sent, self._ignored)
                if mismatch is None:
                    playing.played += 1
                    return self._given(context, exchange.answer)
                attempts.append(_Attempt(playing, mismatch))
            # Requests without tools, such as one for a title, are in no log.
            if self._aside is not None and not body.get("tools"):
                return Message(id="aside", role="assistant", parts=(TextPart(text=self._aside),))
            self.failures.append(self._refusal(attempts, unknown))
            return None

    def take_back(self, answer: Message) -> None:
        """Undo an answer: the client did not get all of it, and may ask again."""
        with self._lock:
            for playing in self._tracks:
                if playing.played and playing.track.exchanges[playing.played - 1].answer is answer:
                    playing.played -= 1

    def unplayed(self) -> list[str]:
        """What of the cassette was not requested."""
        return [
            f"cassette {self._name}: {each.left} of {len(each.track.exchanges)} answers of {each.track.session} "
            "were not asked for"
            for each in self._tracks
            if each.left
        ]

    def _conversation(self, api: Api, body: Json) -> tuple[PlayedConversation, str | None]:
        """The conversation of a request, after the response that it continues, and the id of an unknown response."""
        sent = PlayedConversation(self._ignored)
        previous = word(body.get("previous_response_id"))
        for entry in self._contexts.get(previous or "", ()):
            sent.add(entry)
        api.read(body, sent)
        return sent, previous if previous not in self._contexts else None

    def _given(self, context: tuple[Entry, ...], answer: Message) -> Message:
        self._contexts[answer.response_id or answer.id] = (*context, EarlierAnswer(parts=answer.parts))
        return answer

    def _refusal(self, attempts: list[_Attempt], unknown: str | None) -> str:
        place_of_request = f"cassette {self._name}: request {len(self.requests)}"
        if unknown is not None:
            return f"{place_of_request} goes on from the response {unknown}, which was not given here"
        if not attempts:
            return f"{place_of_request} is one too many: all recorded answers were given"
        # The track that agrees the longest is most likely the intended one.
        playing, mismatch = max(attempts, key=lambda attempt: attempt.mismatch.turn)
        track = playing.track
        place = f"exchange {playing.played + 1} of {len(track.exchanges)} of {track.session}"
        return f"{place_of_request} is not the recorded one ({place})\n{mismatch.diff}"


class _Playing:
    """One track, and how far it was played."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self._requests = list(requests_of(track))
        self.played = 0

    @property
    def left(self) -> int:
        return len(self._requests) - self.played

    def next(self) -> tuple[tuple[Entry, ...], Exchange]:
        return self._requests[self.played]


class _Attempt(NamedTuple):
    """A request compared with the next exchange of one track."""

    playing: _Playing
    mismatch: Mismatch


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
        """Say nothing: failures are reported by the fixture."""

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
            # The client may ask again, and then gets the same answer.
            self.player.take_back(message)
            raise

    def _read(self) -> bytes:
        # `http.server` decodes no chunked bodies, which some clients send.
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
        # An empty chunk ends the body.
        self._write_chunk(b"")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def _event_lines(event: Json | str) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()
