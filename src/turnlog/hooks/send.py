"""What an agent starts when a hook fires: it hands the event on standard input to turnlog, and is gone.

`python -I -S send.py AGENT FOLDER`. The event goes to the server that `FOLDER/server` names, else as a line into
`FOLDER/hooks/<agent>/<session>.jsonl`, the session's spool, which the next sync reads. It never prints, never fails and
never stays: whatever happens the agent goes on. It imports nothing of turnlog and next to nothing else, since an agent
may wait for it (`socket` and `json` alone would take longer than all that it does); the server spools by the same
functions.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # importing `typing` takes its time too
if TYPE_CHECKING:
    from typing import Any

SERVER = "server"
"""The file that says where the server is: its host, port, process id and token, a line each."""

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
        with open(os.path.join(folder, SERVER)) as file:
            host, port, process, token = file.read().split("\n")[:4]
        os.kill(int(process), 0)
        return _exchange(host, int(port), _request(host, port, token, agent, at, payload)).startswith(b"HTTP/1.1 202 ")
    except (OSError, ValueError, OverflowError):
        return False


def _exchange(host: str, port: int, request: bytes) -> bytes:
    """Send a request; the beginning of what comes back."""
    import _socket  # what `socket` is made of: the same, without what that imports

    family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
    connection = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        connection.settimeout(SECONDS_FOR_SERVER)
        connection.connect((host, port))
        connection.sendall(request)
        return connection.recv(64)
    finally:
        connection.close()


def _request(host: str, port: str, token: str, agent: str, at: float, payload: bytes) -> bytes:
    name = f"[{host}]" if ":" in host else host
    lines = [
        f"POST /api/hooks/{agent}?at={at:.3f} HTTP/1.1",
        f"Host: {name}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "Connection: close",
    ]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode() + payload


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException:
        pass
    os._exit(0)
