"""What clients that say nothing, or half of something, may take of a hub: others are answered as usual."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from turnlog.platforms.processes import raise_descriptors

pytestmark = pytest.mark.timeout(240)  # its own PostgreSQL starts

PROGRAM = """
import sys
from turnlog.cli.main import main
from turnlog.server import connections

for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    setattr(connections, name, float(value))
sys.argv[1:] = ["hub", "serve"]
main()
"""

POST = b"POST /hub/v1/invitations/accept HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

SILENCES = {
    "nothing": b"",
    "half a head": b"GET /readyz HTTP/1.1\r\nHost: loc",
    "half a body": POST + b'Content-Length: 900\r\n\r\n{"code"',
    "half a chunk": POST + b'Transfer-Encoding: chunked\r\n\r\n400\r\n{"code"',
}


@contextmanager
def hub(descriptors: int | None = None, **limits: float) -> Generator[int]:
    """The port of a hub with these limits."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    with tempfile.TemporaryDirectory(prefix="turnlog-hub-") as folder:
        # PostgreSQL refuses root: then it runs as somebody else, who must be able to go through the folder.
        Path(folder).chmod(0o711)
        more = {"TURNLOG_HUB_POSTGRES_USER": "nobody"} if os.getuid() == 0 else {}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *(str(each) for limited in limits.items() for each in limited)],
            env={**os.environ, "TURNLOG_DATA_DIR": folder, "TURNLOG_HUB_PORT": "0", "HOME": folder, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=limit,
        )
        try:
            assert process.stdout is not None
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found is not None
            yield int(found[1])
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()
            process.communicate()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def everything(connection: socket.socket) -> bytes:
    """All bytes until the end, which must come."""
    pieces: list[bytes] = []
    with suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def seconds_of(port: int) -> float:
    """How long a good request takes."""
    began = time.monotonic()
    with connect(port) as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    return time.monotonic() - began


@pytest.mark.parametrize("descriptors", [1024, None])
def test_fifteen_hundred_silent_connections_keep_no_one_waiting(descriptors: int | None) -> None:
    raise_descriptors(8192)
    with hub(descriptors) as port, ExitStack() as opened:
        seconds_of(port)
        # Those that have a whole head are asked who they are, which every address may be only so often.
        for number in range(1500):
            beginning = list(SILENCES.values())[number % (2 if number < 1450 else 4)]
            each = opened.enter_context(connect(port))
            with suppress(ConnectionError):  # it went already
                each.sendall(beginning)
        assert max(seconds_of(port) for _ in range(5)) < 1


def test_what_is_not_sent_in_time_is_given_up() -> None:
    limits = {"HEAD_SECONDS": 2, "BODY_SECONDS": 2, "BODY_BYTES_A_SECOND": 1000}
    with hub(**limits) as port, ExitStack() as opened:
        silent = {name: opened.enter_context(connect(port)) for name in SILENCES}
        for name, connection in silent.items():
            connection.sendall(SILENCES[name])
        trickle, steady = opened.enter_context(connect(port)), opened.enter_context(connect(port))
        trickle.sendall(b"GET /readyz HTTP/1.1\r\n")
        body = b'{"code": "' + b"x" * 9000
        steady.sendall(POST + b"Content-Length: %d\r\n\r\n" % (len(body) + 2))
        for at in range(0, len(body), 300):
            with suppress(ConnectionError):
                trickle.sendall(b"X: y\r\n")
            # Longer than a body may rest, and faster than the slowest that may be.
            steady.sendall(body[at : at + 300])
            time.sleep(0.1)
        assert everything(silent["nothing"]) == b""
        for name in ("half a head", "half a body", "half a chunk"):
            assert everything(silent[name]).startswith(b"HTTP/1.1 408 "), name
        assert everything(trickle).startswith((b"HTTP/1.1 408 ", b""))
        steady.sendall(b'"}')
        assert steady.recv(4096).startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 422 ", b"HTTP/1.1 400 "))
