"""The program that an agent starts for a hook: it passes the event on standard input to turnlog and exits.

`python -I -S send.py AGENT FOLDER [FIELD]`; `FIELD` is that of the event that names the session, if it is not
`session_id`; `outer.inner` is one of an object. `TURNLOG_TASK` names the task of the session. The event goes to the
server that listens on `FOLDER/server.sock`, otherwise as a line into `FOLDER/hooks/<agent>/<session>.jsonl`, the
session's spool, which the next sync reads. It does not use a port: only the user can create that socket, and a socket
without its server accepts nothing, but anybody may listen on a port that a server has left. The program never prints,
fails or blocks, so the agent is never disturbed. It imports nothing of turnlog and hardly anything else, because an
agent may wait for it (`socket` and `json` alone would take longer than all its work); the server spools with the same
functions.
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
"""The Unix socket next to the store on which the server listens, accessible to the user alone."""

LONGEST_ADDRESS = 103
"""Maximum bytes in the path of a socket: 107 on Linux, 103 on macOS (`sun_path` of sys/un.h)."""

SPOOLS = "hooks"

TASK_VARIABLE = "TURNLOG_TASK"

LONGEST_TASK = 200

SESSION_FIELD = "session_id"
"""The field of an event that names its session, for most agents."""

LIMIT = 32 << 20
"""Maximum bytes of an event; the log has a longer one."""

SECONDS_FOR_INPUT = 3
SECONDS_FOR_SERVER = 0.3

_ONLY_FILES = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A link is not followed, a pipe that nobody reads keeps nobody waiting, and Windows leaves the line ends alone."""

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_LONGEST_NAME = 151


def main(arguments: list[str]) -> None:
    """Deliver one event from standard input."""
    agent, folder, *field = arguments
    at = time.time() * 1000
    task = task_of(os.environ.get(TASK_VARIABLE, ""))  # noqa: TID251 - nothing of turnlog is imported here
    payload = read_input(0, SECONDS_FOR_INPUT)
    if payload and not post(folder, agent, at, payload, task):
        spool(folder, agent, at, payload, task, *field)


def task_of(text: str) -> str:
    """The id of a task: one line without control characters; empty for none."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST_TASK]


def read_input(descriptor: int, seconds: float) -> bytes:
    """All of the input; empty if it is too large or does not end in time."""
    if os.name == "nt":
        return _read_in_thread(descriptor, seconds)
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


def _read_in_thread(descriptor: int, seconds: float) -> bytes:
    """The same where the system waits for sockets only, and not for pipes."""
    from threading import Thread

    found: list[bytes] = []

    def read() -> None:
        pieces: list[bytes] = []
        size = 0
        while size <= LIMIT:
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                found.append(b"".join(pieces))
                return
            pieces.append(piece)
            size += len(piece)

    reader = Thread(target=read, daemon=True)
    reader.start()
    reader.join(seconds)
    return found[0] if found else b""


def spool(folder: str, agent: str, at: float, payload: bytes, task: str = "", field: str = SESSION_FIELD) -> str:
    """Append an event to the spool of its session, which only the user may read; return the spool's path.

    Raises ValueError for anything but a JSON object that names a session, OSError if the spool cannot be written.
    """
    import json

    try:
        event = json.loads(payload)
    except RecursionError as error:
        raise ValueError("the event is nested too deep") from error
    name = session_of(event, field)
    if b"\n" in payload or b"\r" in payload:
        payload = json.dumps(event).encode()
    place = os.path.join(folder, SPOOLS, agent)
    os.makedirs(place, mode=0o700, exist_ok=True)
    path = os.path.join(place, name + ".jsonl")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _ONLY_FILES, 0o600)
    try:
        # One write, so that events of parallel calls do not mix.
        named = b'"task":%b,' % json.dumps(task).encode() if task else b""
        os.write(descriptor, b'{"at":%.3f,%b"event":%b}\n' % (at, named, payload))
    finally:
        os.close(descriptor)
    return path


def session_of(event: Any, field: str = SESSION_FIELD) -> str:
    """The external id of an event's session, usable as a file name. Raises ValueError if the event names none."""
    name: Any = event
    try:
        for each in field.split("."):
            name = name[each]
    except (KeyError, TypeError):
        name = None
    if not isinstance(name, str) or not 0 < len(name) < _LONGEST_NAME:
        raise ValueError("the event names no session")
    if name[0] not in _LETTERS or set(name) - _LETTERS - {".", "_", "-"}:
        raise ValueError("the event names no session")
    return name


def post(folder: str, agent: str, at: float, payload: bytes, task: str = "") -> bool:
    """Send an event to the running server; False if none accepts it."""
    try:
        connection = connect(folder, SECONDS_FOR_SERVER)
        try:
            connection.sendall(_request(agent, at, payload, task))
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
    # If others may write to the folder, one of them could listen here.
    if os.lstat(address).st_uid not in (os.geteuid(), 0):
        raise PermissionError("the socket is another user's")
    connection.connect(address)


def at_address(folder: str, name: str, use: Callable[[str], None]) -> None:
    """Use the path of a socket in a folder; for a path that is too long, from within the folder."""
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


def _request(agent: str, at: float, payload: bytes, task: str) -> bytes:
    # Not by `urllib`: importing it would take longer than the rest.
    named = "&task=" + "".join(f"%{byte:02X}" for byte in task.encode()) if task else ""
    lines = (
        f"POST /api/hooks/{agent}?at={at:.3f}{named} HTTP/1.1",
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
