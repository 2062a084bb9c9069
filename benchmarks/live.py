"""How long a line that an agent writes takes until a browser that watches the session has it, beside agentsview.

    python benchmarks/live.py HOME [--rounds 60] [--agentsview PATH]

Works on copies of two Claude Code logs of HOME, one of about the median size and the largest. Starts each server in
turn over them, follows the session's event stream, and appends a line about every 100 ms. Ours brings the message
itself; agentsview's stream says that something changed, so its API is asked until the message is there. Lines during
which the machine itself stood still (`stalls`) are told apart: start it with `chrt -r 5` on one that others use too.
"""

from __future__ import annotations

import argparse
import http.client
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

from append import ten_lines
from measure import bare_environment
from stalls import Stalls

SERVER = """
import sys
from pathlib import Path
from turnlog.server import serve

serve(Path(sys.argv[1]), port=int(sys.argv[2]), use_token=False, open_browser=False, announce=lambda address: None)
"""
"""Without an access token: the peer has none either."""

PATIENCE = 20.0
"""Seconds after which a line counts as lost."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a line from the log to the browser.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--agentsview", type=Path, default=shutil.which("agentsview"))
    options = parser.parse_args()
    logs = sorted((options.home / ".claude" / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        copies = [copy_of(log, home) for log in (logs[len(logs) // 2], logs[-1])]
        command = [sys.executable, "-c", SERVER, str(home / "turnlog.db")]
        with serving(command, bare_environment(home), "/api/status") as port:
            for log in copies:
                wait_for(lambda log=log: ask(port, f"/api/sessions/{ours(log)}").status == 200)
                path = f"/api/sessions/{ours(log)}/events"
                tell("turnlog, line to event with its content", log, rounds(log, options.rounds, Stream(port, path)))
        if options.agentsview is None:
            print("agentsview is not installed: only turnlog was measured")
            return
        environment = bare_environment(home) | {
            "AGENTSVIEW_DATA_DIR": str(home / "agentsview"),
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "AGENTSVIEW_NO_DAEMON": "1",
            "DO_NOT_TRACK": "1",
        }
        command = [str(options.agentsview), "serve", "--no-browser", "--no-update-check", "--port"]
        with serving(command, environment, "/api/v1/sessions") as port:
            for log in copies:
                path = f"/api/v1/sessions/{log.stem}/watch"
                noticed = rounds(log, options.rounds, Stream(port, path, b"session_updated"))
                tell("agentsview, line to event without content", log, noticed)
                tell("agentsview, line to its API", log, rounds(log, options.rounds, Asked(port, log.stem)))


def ours(log: Path) -> str:
    return quote(f"claude-code:{log.stem}", safe="")


def copy_of(log: Path, home: Path) -> Path:
    copy = home / ".claude" / "projects" / log.parent.name / log.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(log, copy))


@contextmanager
def serving(command: list[str], environment: dict[str, str], path: str) -> Generator[int]:
    """A server on a free port, once it answers; its output goes nowhere."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, str(port)], env=environment, stdout=quiet, stderr=quiet)
    try:
        wait_for(lambda: answers(port, path))
        yield port
    finally:
        process.terminate()
        process.wait()


def answers(port: int, path: str) -> bool:
    try:
        return ask(port, path).status == 200
    except OSError:
        return False


def ask(port: int, path: str, token: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    return connection.getresponse()


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("the server does not get there")
        time.sleep(0.05)


class Watched(Protocol):
    """Where a line is looked for."""

    def forget(self) -> None:
        """Begin to look: what came before does not count."""

    def wait(self, word: str) -> float | None:
        """When the word was there, by `time.perf_counter`; None if it does not come."""


class Stream:
    """Lines of an event stream with the time at which each arrived. `sign`: what an event has, else the line's word."""

    def __init__(self, port: int, path: str, sign: bytes | None = None, token: str | None = None) -> None:
        self._answer = ask(port, path, token)
        self._sign = sign
        self._arrived: list[tuple[float, bytes]] = []
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        time.sleep(1)

    def _read(self) -> None:
        for line in self._lines():
            with self._news:
                self._arrived.append((time.perf_counter(), line))
                self._news.notify()

    def _lines(self) -> Iterator[bytes]:
        while line := self._answer.readline():
            yield line

    def forget(self) -> None:
        with self._news:
            self._arrived.clear()

    def wait(self, word: str) -> float | None:
        """When the word arrived; None when it did not."""
        sign = self._sign or word.encode()
        end = time.perf_counter() + PATIENCE
        with self._news:
            while time.perf_counter() < end:
                for at, line in self._arrived:
                    if sign in line:
                        return at
                self._news.wait(end - time.perf_counter())
        return None


class Asked:
    """The newest message of a session, asked for again and again."""

    def __init__(self, port: int, session: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._path = f"/api/v1/sessions/{session}/messages?limit=1&direction=desc"

    def forget(self) -> None:
        """Nothing is kept."""

    def wait(self, word: str) -> float | None:
        end = time.perf_counter() + PATIENCE
        while time.perf_counter() < end:
            self._connection.request("GET", self._path)
            if word.encode() in self._connection.getresponse().read():
                return time.perf_counter()
            time.sleep(0.005)
        return None


class Round(NamedTuple):
    """A line."""

    seconds: float | None
    """None when it did not arrive."""
    stalled: bool
    """Whether the machine stood still meanwhile."""


def rounds(log: Path, count: int, watched: Watched) -> list[Round]:
    """Append so many lines, one after the other."""
    found: list[Round] = []
    pauses = random.Random(1)
    with Stalls() as stalls:
        for number in range(count):
            time.sleep(pauses.uniform(0.05, 0.15))
            word = f"live{time.monotonic_ns()}x{number}"
            line = ten_lines(log.stem, word)[0]
            watched.forget()
            with log.open("ab", buffering=0) as file:
                started = time.perf_counter()
                file.write(line)
            at = watched.wait(word)
            # A stall is noted when it is over.
            time.sleep(0.02)
            stalled = stalls.during(started, time.perf_counter() if at is None else at)
            found.append(Round(None if at is None else at - started, stalled))
    return found


def tell(what: str, log: Path, found: list[Round]) -> None:
    undisturbed = [each for each in found if not each.stalled]
    print(f"{what}, session of {log.stat().st_size / 1e6:.1f} MB: {figures(found)}")
    if len(undisturbed) < len(found):
        print(f"    while the machine did not stand still: {figures(undisturbed)}", flush=True)


def figures(found: list[Round]) -> str:
    times = sorted(each.seconds * 1e3 for each in found if each.seconds is not None)
    lost = f", {len(found) - len(times)} lost" if len(times) < len(found) else ""
    if not times:
        return "nothing arrived"
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    p50 = statistics.median(times)
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, at most {times[-1]:.1f} ms, {len(times)} lines{lost}"


if __name__ == "__main__":
    main()
