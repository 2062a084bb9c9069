"""What an agent starts when a hook fires: it hands the event on standard input to turnlog, and is gone.

`python -I -S send.py AGENT FOLDER`. The event goes to the server that listens on `FOLDER/server.sock`, else as a line
into `FOLDER/hooks/<agent>/<session>.jsonl`, the session's spool, which the next sync reads. It goes to no port: only
the user can make that socket, and one whose server is gone takes nothing, but anybody may listen on a port that a
server has left. It never prints, never fails and never stays: whatever happens the agent goes on. It imports nothing
of turnlog and next to nothing else, since an agent may wait for it (`socket` and `json` alone would take longer than
all that it does); the server spools by the same functions.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # importing `typing` takes its time too
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SOCKET = "server.sock"
"""The Unix socket beside the store on which the server listens, for the user alone."""

LONGEST_ADDRESS = 103
"""Bytes that the path of a socket may have: 107 on Linux, 103 on macOS (`sun_path` of sys/un.h)."""

SPOOLS = "hooks"

LIMIT = 32 << 20
"""Bytes of an event that are taken at most; a longer one is left to the log."""

SECONDS_FOR_INPUT = 3
SECONDS_FOR_SERVER = 0.3

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_LONGEST_NAME = 151


def main(arguments: list[str]) -> None:
    """Take one event from standard input to where it belongs."""
    agent, folder = arguments[:2]
    at = time.time() * 1000
    payload = read_input(0, SECONDS_FOR_INPUT)
    if payload and not post(folder, agent, at, payload):
        spool(folder, agent, at, payload)


def read_input(descriptor: int, seconds: float) -> bytes:
    """All that comes; nothing when it is too much, or does not end in time."""
    import select

    end = time.monotonic() + seconds
    pieces: list[bytes] = []
    size = 0
    while size <= LIMIT and select.select([descriptor], [], [], max(0, end - time.monotonic()))[0]:
        piece = os.read(descriptor, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    return b""


def spool(folder: str, agent: str, at: float, payload: bytes) -> str:
    """Append an event to the spool of its session, which is made for the user alone; return the spool's path.

    Raises ValueError for what is no event (no JSON object that names a session), OSError when it cannot be written.
    """
    import json

    try:
        event = json.loads(payload)
    except RecursionError as error:
        raise ValueError("the event is nested too deep") from error
    name = session_of(event)
    if b"\n" in payload or b"\r" in payload:
        payload = json.dumps(event).encode()
    place = os.path.join(folder, SPOOLS, agent)
    os.makedirs(place, mode=0o700, exist_ok=True)
    path = os.path.join(place, name + ".jsonl")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        # One write, so that events of calls that run side by side do not mix.
        os.write(descriptor, b'{"at":%.3f,"event":%b}\n' % (at, payload))
    finally:
        os.close(descriptor)
    return path


def session_of(event: Any) -> str:
    """The external id of the session that an event is of, fit for a file's name; ValueError when it names none."""
    try:
        name: Any = event["session_id"]
    except (KeyError, TypeError):
        name = None
    if not isinstance(name, str) or not 0 < len(name) < _LONGEST_NAME:
        raise ValueError("the event names no session")
    if name[0] not in _LETTERS or set(name) - _LETTERS - {".", "_", "-"}:
        raise ValueError("the event names no session")
    return name


def post(folder: str, agent: str, at: float, payload: bytes) -> bool:
    """Hand an event to the running server; False when there is none that takes it."""
    try:
        connection = connect(folder, SECONDS_FOR_SERVER)
        try:
            connection.sendall(_request(agent, at, payload))
            return connection.recv(64).startswith(b"HTTP/1.1 202 ")
        finally:
            connection.close()
    except (OSError, AttributeError):  # AttributeError: a platform without Unix sockets
        return False


def connect(folder: str, seconds: float) -> Any:
    """A connection to the server that listens in a folder, with a time limit.

    Raises OSError when there is none, AttributeError on a platform without Unix sockets.
    """
    import _socket  # what `socket` is made of: the same, without what that imports

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        at_address(folder, SOCKET, lambda address: _connect(connection, address))
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(connection: Any, address: str) -> None:
    # In a folder that others may write to, one of them could wait here.
    if os.lstat(address).st_uid not in (os.geteuid(), 0):
        raise PermissionError("the socket is another user's")
    connection.connect(address)


def at_address(folder: str, name: str, use: Callable[[str], None]) -> None:
    """Use the path of a socket in a folder; one that is too long, from within the folder."""
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        use(path)
        return
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        use(name)
    finally:
        os.fchdir(here)
        os.close(here)


def _request(agent: str, at: float, payload: bytes) -> bytes:
    lines = (
        f"POST /api/hooks/{agent}?at={at:.3f} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + payload


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException:
        pass
    os._exit(0)
