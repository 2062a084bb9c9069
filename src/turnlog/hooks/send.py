"""What an agent starts when a hook fires: it hands the event on standard input to turnlog, and is gone.

`python -I -S send.py AGENT FOLDER`. The event goes to the server whose address stands in `FOLDER/server.json`, else as
a line into `FOLDER/hooks/<agent>/<session>.jsonl`, the session's spool, which the next sync reads. It never prints,
never fails and never stays: whatever happens the agent goes on. It imports nothing of turnlog and little else, since
an agent may wait for it; the server spools by the same functions.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time

TYPE_CHECKING = False  # importing `typing` would take as long as all the rest
if TYPE_CHECKING:
    from typing import Any

AGENTS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}
"""What a command line calls an agent -> what ids and the store call it."""

SERVER = "server.json"
SPOOLS = "hooks"

LIMIT = 32 << 20
"""Bytes of an event that are taken at most; a longer one is left to the log."""

SECONDS_IN_ALL = 3
SECONDS_FOR_SERVER = 0.3

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")


def main(arguments: list[str]) -> None:
    """Take one event from standard input to where it belongs."""
    _stop_after(SECONDS_IN_ALL)
    agent, folder = AGENTS[arguments[0]], arguments[1]
    at = time.time() * 1000
    payload = sys.stdin.buffer.read(LIMIT + 1)
    if len(payload) <= LIMIT and not post(folder, agent, at, payload):
        spool(folder, agent, at, payload)


def spool(folder: str, agent: str, at: float, payload: bytes) -> str:
    """Append an event to the spool of its session, which is made for the user alone; return the spool's path.

    Raises ValueError for what is no event (no JSON object that names a session), OSError when it cannot be written.
    """
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
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("the event names no session")
    return name


def post(folder: str, agent: str, at: float, payload: bytes) -> bool:
    """Hand an event to the running server; False when there is none that takes it."""
    try:
        with open(os.path.join(folder, SERVER), "rb") as file:
            server: dict[str, Any] = json.load(file)
        os.kill(server["pid"], 0)
        with socket.create_connection((server["host"], server["port"]), SECONDS_FOR_SERVER) as connection:
            connection.sendall(_request(server, agent, at, payload) + payload)
            return connection.recv(64).startswith(b"HTTP/1.1 202 ")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _request(server: dict[str, Any], agent: str, at: float, payload: bytes) -> bytes:
    host = f"[{server['host']}]" if ":" in server["host"] else server["host"]
    lines = [
        f"POST /api/hooks/{agent}?at={at:.3f} HTTP/1.1",
        f"Host: {host}:{server['port']}",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "Connection: close",
    ]
    if server.get("token"):
        lines.append(f"Authorization: Bearer {server['token']}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _stop_after(seconds: float) -> None:
    """Be gone by then, also where standard input never ends."""
    import signal

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda number, frame: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException:
        pass
    os._exit(0)
