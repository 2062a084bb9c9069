"""How long `serve` over an empty store takes to answer, and to show the newest session, with a year of logs.

    python benchmarks/first_minute.py HOME [--rounds 3] [--limit 60] [--agentsview PATH]

HOME has logs of Claude Code or Codex. The newest session is found by reading their last records, not by asking. Each
round starts from an empty data folder; agentsview, which answers when it has imported everything, runs in turn.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from measure import bare_environment, find_turnlog

FIRST_ANSWER_SECONDS = 1.0
NEWEST_SESSION_SECONDS = 2.0

_TIME = re.compile(rb'"timestamp":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"')
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_TAIL = 64 << 10


class Server(NamedTuple):
    """A program that serves logs, and where it lists sessions. Its port is the last argument."""

    name: str
    command: list[str]
    environment: dict[str, str]
    data: Path
    path: str


def newest_session(home: Path) -> str:
    """The id of the session whose last record is the newest."""
    newest = ("", "")
    for path in home.rglob("*.jsonl"):
        found = _ID.findall(path.stem)
        if not found or "subagents" in path.parts:
            continue
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            newest = max(newest, (max(_TIME.findall(file.read()), default=b"").decode(), found[-1]))
    if not newest[1]:
        raise SystemExit(f"no session of Claude Code or Codex in {home}")
    return newest[1]


def measure(server: Server, session_id: str, limit: float) -> tuple[float | None, float | None]:
    """Seconds from the start until the first answer, and until the list has the session; None where it took longer."""
    shutil.rmtree(server.data, ignore_errors=True)
    server.data.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*server.command, str(port)],
        env=server.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    answered: float | None = None
    try:
        while (now := time.perf_counter() - began) < limit:
            body = ask(port, server.path)
            if body is not None:
                now = time.perf_counter() - began
                answered = answered or now
                if session_id.encode() in body:
                    return answered, now
            time.sleep(0.02)
        return answered, None
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def ask(port: int, path: str) -> bytes | None:
    """The body of an answer; None if there is none yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    except OSError:
        return None
    finally:
        connection.close()


def main() -> None:
    """Measure turnlog, and agentsview where it is installed."""
    parser = argparse.ArgumentParser(description="Measure the start of serve over an empty store.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds to wait for the newest session")
    parser.add_argument("--agentsview", type=Path, default=shutil.which("agentsview"))
    options = parser.parse_args()
    turnlog = find_turnlog()
    if turnlog is None:
        raise SystemExit("turnlog is not installed beside this Python")
    home = options.home.absolute()
    session_id = newest_session(home)
    with tempfile.TemporaryDirectory() as work:
        ours, theirs = Path(work) / "turnlog", Path(work) / "agentsview"
        command = [str(turnlog), "serve", "--no-token", "--no-browser", "--port"]
        environment = bare_environment(home, TURNLOG_DATA_DIR=ours)
        servers = [Server("turnlog", command, environment, ours, "/api/sessions?limit=50")]
        if options.agentsview is None:
            print("agentsview is not installed: only turnlog is measured")
        else:
            command = [str(options.agentsview), "serve", "--no-browser", "--no-update-check", "--port"]
            environment = bare_environment(
                home,
                AGENTSVIEW_DATA_DIR=theirs,
                AGENTSVIEW_NO_DAEMON="1",
                AGENTSVIEW_TELEMETRY_ENABLED="0",
                DO_NOT_TRACK="1",
            )
            servers.append(Server("agentsview", command, environment, theirs, "/api/v1/sessions"))
        print(f"first answer (at most {FIRST_ANSWER_SECONDS:.0f} s), newest session ({NEWEST_SESSION_SECONDS:.0f} s)")
        for _ in range(options.rounds):
            for server in servers:
                times = measure(server, session_id, options.limit)
                first, newest = ("later" if each is None else f"{each:.2f} s" for each in times)
                print(f"{server.name}: {first}, {newest}; load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
