"""What clients that send half of something may take of a real server, and that nobody else is sent away for it."""

from __future__ import annotations

import json
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from turnlog.hooks import send
from turnlog.server.access import TOKEN_FILE, read_token

pytestmark = pytest.mark.timeout(180)

DESCRIPTORS = 256
"""Of the server; the tests open more connections."""

PROGRAM = """
import sys
from pathlib import Path
from turnlog.server import bodies, connections, serve

for name, value in zip(sys.argv[2::2], sys.argv[3::2]):
    setattr(bodies if hasattr(bodies, name) else connections, name, type(getattr(connections, name, 0))(value))
serve(Path(sys.argv[1]), port=0, sync=False, open_browser=False, announce=lambda link: print(link, flush=True))
"""


class Served:
    """A server, and ways to it."""

    def __init__(self, process: subprocess.Popen[str], link: str, folder: Path) -> None:
        found = re.search(r":(\d+)/", link)
        assert found is not None
        self.process = process
        self.folder = folder
        self.port = int(found[1])
        self.head = f"Host: localhost\r\nAuthorization: Bearer {read_token(folder / TOKEN_FILE)}\r\n".encode()

    def connect(self) -> socket.socket:
        """Over TCP."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def connect_own(self) -> socket.socket:
        """By the socket for hooks."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(str(self.folder / send.SOCKET))
        return connection

    def ask(self, connect: Callable[[], socket.socket], path: str = "/api/status") -> bytes:
        """The first line of the answer to a good request."""
        with connect() as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\n".encode() + self.head + b"\r\n")
            return connection.recv(4096).partition(b"\r\n")[0]

    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()


@contextmanager
def serving(store: Path, **limits: float) -> Generator[Served]:
    named = [str(each) for limit in limits.items() for each in limit]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store), *named],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),
    )
    assert process.stdout is not None
    try:
        yield Served(process, process.stdout.readline(), store.parent)
    finally:
        process.kill()
        _, errors = process.communicate()
    assert "Traceback" not in errors


OK = b"HTTP/1.1 200 OK"


def everything(connection: socket.socket) -> bytes:
    """What comes until the other end closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("way", ["connect", "connect_own"])
def test_half_sent_requests_make_room_for_whole_ones(library: Path, way: str) -> None:
    """C5: whoever has been silent longest goes, and the server always has descriptors left."""
    with serving(library) as served, ExitStack() as opened:
        connect = getattr(served, way)
        stream = opened.enter_context(served.connect())
        stream.sendall(b"GET /api/events HTTP/1.1\r\n" + served.head + b"\r\n")
        assert stream.recv(4096).startswith(OK)
        silent = [opened.enter_context(connect()) for _ in range(300)]
        for each in silent:
            with suppress(ConnectionError):  # it went already
                each.sendall(b"GET / HTTP/1.1\r\n")
        began = time.monotonic()
        assert served.ask(served.connect) == served.ask(served.connect_own) == OK
        assert time.monotonic() - began < 5
        assert served.descriptors() < DESCRIPTORS / 2
        stream.setblocking(False)
        with pytest.raises(BlockingIOError):  # no end: it is still open
            everything(stream)


def test_a_request_that_is_not_sent_in_time_is_given_up(library: Path) -> None:
    with serving(library, HEAD_SECONDS=1, BODY_SECONDS=1) as served, ExitStack() as opened:
        head, body, silent, rested = (opened.enter_context(served.connect()) for _ in range(4))
        head.sendall(b"GET /api/status HTTP/1.1\r\n")
        body.sendall(b"POST /api/hooks/claude HTTP/1.1\r\n" + served.head + b"Content-Length: 9\r\n\r\n{")
        rested.sendall(b"GET /api/status HTTP/1.1\r\n" + served.head + b"\r\n")
        assert rested.recv(9).startswith(b"HTTP/1.1")
        rested.sendall(b"GET /api")
        assert everything(head).startswith(b"HTTP/1.1 408 ")
        assert everything(body).startswith(b"HTTP/1.1 408 ")
        assert b"}HTTP/1.1 408 " in everything(rested)
        assert silent.recv(100) == b""


def test_a_trickle_is_no_progress(library: Path) -> None:
    """Bytes that come, and lead to no end of a head, help nobody to stay."""
    with serving(library, HEAD_SECONDS=1) as served, served.connect() as connection:
        end = time.monotonic() + 15
        with suppress(ConnectionError):
            while time.monotonic() < end:
                connection.sendall(b"\r\n")
                time.sleep(0.1)
        assert time.monotonic() < end


def stored(served: Served, text: bytes) -> str:
    """The path of a large content of this text, once the server has read it."""
    event = b'{"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "%b"}' % text
    with served.connect() as sender:
        lines = b"POST /api/hooks/claude HTTP/1.1\r\n" + served.head + b"Content-Length: %d\r\n\r\n" % len(event)
        sender.sendall(lines + event)
        assert sender.recv(4096).startswith(b"HTTP/1.1 202 ")
    path = f"/api/blobs/{sha256(text).hexdigest()}"
    end = time.monotonic() + 20
    while served.ask(served.connect, path) != OK:  # it is read behind the answer
        assert time.monotonic() < end
        time.sleep(0.2)
    return path


def asking(served: Served, path: str) -> socket.socket:
    """A connection that has asked, and takes little at once."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", served.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\n".encode() + served.head + b"\r\n")
    return connection


def test_a_client_that_reads_nothing_is_cut_off_and_a_slow_one_is_not(own_store: Path) -> None:
    text = b"x" * (12 << 20)
    # The system sends megabytes on its own before more are taken from the server.
    with serving(own_store, READ_SECONDS=6) as served, ExitStack() as opened:
        path = stored(served, text)
        deaf, slow = (opened.enter_context(asking(served, path)) for _ in range(2))
        taken = b""
        for _ in range(20):
            taken += slow.recv(1 << 19, socket.MSG_WAITALL)
            time.sleep(0.5)
        assert (taken + everything(slow)).endswith(b"\r\n\r\n" + text)
        with suppress(ConnectionError):
            assert len(everything(deaf)) < len(text)


def test_streams_and_slow_readers_stay(own_store: Path) -> None:
    """What is being answered has no limit of time, also with the beginning of another request behind it."""
    text = b"x" * (12 << 20)  # more than the system's own buffers hold
    with serving(own_store, HEAD_SECONDS=2, BODY_SECONDS=5) as served, ExitStack() as opened:
        path = stored(served, text)
        stream = opened.enter_context(served.connect())
        stream.sendall(b"GET /api/events HTTP/1.1\r\n" + served.head + b"\r\nGET /api")
        assert stream.recv(4096).startswith(OK)
        slow = opened.enter_context(asking(served, path))
        time.sleep(8)  # longer than a connection that has had its answer may rest
        assert everything(slow).endswith(b"\r\n\r\n" + text)
        stream.settimeout(0.1)
        with pytest.raises(TimeoutError):
            everything(stream)


@pytest.fixture(scope="module")
def shared(library: Path) -> Generator[Served]:
    """A server for tests that leave it as it was."""
    with serving(library) as served:
        yield served


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"


@pytest.mark.parametrize(
    ("beginning", "rest"),
    [
        (b"GET / HTTP/1.1\r\n", b"X: a\r\n" * 10_000),
        (b"GET / HTTP/1.1\r\nX: ", b"a" * 60_000),
        (CHUNKED + b"X: ", b"a" * 60_000),
        (b"", b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000),
    ],
    ids=["headers", "one header", "trailers", "requests in a row"],
)
def test_a_head_has_an_end(shared: Served, beginning: bytes, rest: bytes) -> None:
    """Without a token nobody fills the memory."""
    before = shared.memory()
    with shared.connect() as connection:
        connection.sendall(beginning)
        with pytest.raises(ConnectionError):
            send_for_ever(connection, rest)
    assert shared.ask(shared.connect) == OK
    assert shared.memory() - before < 20 << 20


def send_for_ever(connection: socket.socket, piece: bytes) -> None:
    for _ in range(500):
        connection.sendall(piece)
        time.sleep(0.001)


def test_bodies_under_way_are_bounded_and_their_memory_comes_back(library: Path) -> None:
    """C5: what is too much at once is refused with a time to come back; nothing else waits for it."""
    piece = b"x" * 5_000_000
    with serving(library) as served:
        before = served.memory()
        with ExitStack() as opened:
            answers: list[bytes] = []
            for _ in range(30):
                sender = opened.enter_context(served.connect_own())
                sender.sendall(
                    b"POST /api/hooks/claude HTTP/1.1\r\n" + served.head + b"Content-Length: 5000001\r\n\r\n" + piece
                )
                sender.settimeout(0.05)
                try:
                    answers.append(sender.recv(4096))
                except TimeoutError:
                    answers.append(b"")
            refused = [answer for answer in answers if answer]
            assert len(refused) >= 23
            for answer in refused:
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert b"retry-after: 1\r\n" in answer
                assert b'"type":"busy"' in answer
            assert served.memory() - before < 80 << 20
            assert served.ask(served.connect) == OK
        event = b'{"session_id": "s1", "hook_event_name": "SessionStart"}'
        with served.connect_own() as sender:
            sender.sendall(
                b"POST /api/hooks/claude HTTP/1.1\r\n"
                + served.head
                + b"Content-Length: %d\r\n\r\n" % len(event)
                + event
            )
            assert sender.recv(4096).startswith(b"HTTP/1.1 202 ")
        assert served.memory() - before < 40 << 20


def test_an_event_that_the_server_refuses_waits_in_its_spool(library: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "turnlog.db", MOST_BYTES_UNDER_WAY=1000) as served:
        event = json.dumps({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "x" * 5000}).encode()
        command = [sys.executable, "-I", "-S", send.__file__, "claude-code", str(served.folder)]
        done = subprocess.run(command, input=event, capture_output=True, timeout=20, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (line,) = (tmp_path / "hooks" / "claude-code" / "s1.jsonl").read_bytes().splitlines()
    assert json.loads(line)["event"] == json.loads(event)


def test_every_body_is_bounded(library: Path) -> None:
    """Also that of a route which reads its body by itself."""
    with serving(library, MOST_BYTES=1000) as served, served.connect() as sender:
        sender.sendall(
            b"PATCH /api/sessions/plain:main HTTP/1.1\r\n"
            + served.head
            + b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: 1001\r\n\r\n"
            + b" " * 1001
        )
        answer = everything(sender)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"type":"too_large"' in answer
