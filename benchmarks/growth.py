"""What a large store costs beside a small one: the same questions to both, in turn, in one run.

    python benchmarks/growth.py SMALL LARGE [--work DIR] [--rounds 10] [--only commands server]

SMALL and LARGE are homes of the same kind of sessions, such as a tree of 1 GB and one of 10 GB. Each is read into a
store of its own in DIR, unless that has one already. A session is added to each home for lines that are appended, and
removed at the end; the sessions that `forget` is measured with are gone from the stores.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from append import ten_lines
from live import Stream
from measure import bare_environment, find_turnlog, process_tree, run

from turnlog.model import Session
from turnlog.store import open_store
from turnlog.store.base import SessionFilter

BOUND = 2.0
"""Times that a figure of the large store may be of the small one."""

FREQUENCIES = ("common", "rare", "absent")

TYPICAL_MESSAGES = 120
"""Messages of the session that is opened, restored or forgotten."""

Attempt: TypeAlias = Callable[[], float]
"""What is measured, once: seconds."""


@dataclass(frozen=True)
class Installation:
    """A home and the store of its sessions."""

    home: Path
    data: Path
    turnlog: Path
    sessions: list[Session]
    """Of about the same size in every installation."""
    words: dict[str, str]
    """Words to search for, by how frequent they are."""

    @property
    def environment(self) -> dict[str, str]:
        return bare_environment(self.home, TURNLOG_DATA_DIR=self.data)

    def command(self, *words: str) -> float:
        return run([str(self.turnlog), *words], self.environment, watch_memory=False).wall


def install(turnlog: Path, home: Path, data: Path, words: Sequence[str], rounds: int) -> Installation:
    """Read the home into its store, where that is not there yet."""
    if not (data / "turnlog.db").exists():
        took = run([str(turnlog), "sync"], bare_environment(home, TURNLOG_DATA_DIR=data))
        print(f"read {home} in {took.wall:.0f} s ({took.cpu:.0f} s of CPU), peak {(took.peak_rss or 0) / 1e6:.0f} MB")
    with open_store(data / "turnlog.db") as store:
        sessions, cursor = list[Session](), None
        while True:
            page = store.sessions(SessionFilter(), limit=200, cursor=cursor)
            sessions += page.items
            if (cursor := page.next_cursor) is None:
                break
    print(f"{data}: {len(sessions):,} sessions, {folder_size(data) / 1e9:.2f} GB", flush=True)
    sessions.sort(key=lambda session: abs(session.counts.messages - TYPICAL_MESSAGES))
    return Installation(home, data, turnlog, sessions[: 3 + rounds], dict(zip(FREQUENCIES, words, strict=True)))


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# -- commands


def commands_of(installed: Installation) -> dict[str, Attempt]:
    opened, *_, restored = installed.sessions
    waiting = iter(installed.sessions[1:-1])

    def restore() -> float:
        with tempfile.TemporaryDirectory(dir=installed.data) as folder:
            return installed.command("restore", restored.id, "--to", folder)

    return {
        "sync, nothing new": lambda: installed.command("sync"),
        "sessions": lambda: installed.command("sessions"),
        "sessions, not looking for new logs": lambda: installed.command("sessions", "--no-sync"),
        "show": lambda: installed.command("show", opened.id, "--no-sync"),
        "search, as a command": lambda: installed.command("search", installed.words["rare"], "--no-sync"),
        "usage, as a command": lambda: installed.command("usage", "--no-sync"),
        "restore": restore,
        "forget": lambda: installed.command("forget", next(waiting).id, "--yes"),
    }


# -- the server


class Server:
    """`turnlog serve` of an installation, on a free port."""

    def __init__(self, installed: Installation) -> None:
        self.installed = installed
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [str(installed.turnlog), "serve", "--port", "0", "--no-token", "--no-browser"],
            env=installed.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline().split()[-1]
        self.told = time.perf_counter() - self._started
        self.port = int(address.rstrip("/").rpartition(":")[2])
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def since_start(self) -> float:
        return time.perf_counter() - self._started

    def ask(self, path: str) -> bytes:
        try:
            self._connection.request("GET", path, headers={"Accept-Encoding": "identity"})
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:
            # It was idle while the other store was asked.
            self._connection.close()
            return self.ask(path)
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body)
        return body

    def time_of(self, path: str) -> float:
        begun = time.perf_counter()
        self.ask(path)
        return time.perf_counter() - begun

    def memory(self) -> tuple[int, int]:
        """Resident bytes of the server and of the processes that it started, each page counted once."""
        sizes = [proportional_size(pid) for pid in process_tree(self._process.pid)]
        return sizes[0], sum(sizes[1:])

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait()


def proportional_size(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


@contextmanager
def serving(installed: Installation) -> Generator[Server]:
    server = Server(installed)
    try:
        yield server
    finally:
        server.close()


def measure_starts(installed: Mapping[str, Installation], rounds: int) -> dict[str, dict[str, list[float]]]:
    found = {name: dict[str, list[float]]() for name in ("serve, its address", "its page", "its first list")}
    for _ in range(rounds):
        for size, each in installed.items():
            with serving(each) as server:
                found["serve, its address"].setdefault(size, []).append(server.told)
                for name, path in (("its page", "/"), ("its first list", "/api/sessions?limit=50")):
                    server.ask(path)
                    found[name].setdefault(size, []).append(server.since_start())
    return found


def requests_of(server: Server) -> dict[str, Attempt]:
    session = quote(server.installed.sessions[0].id, safe="")
    paths = {
        "list": "/api/sessions?limit=50",
        "window of a session": f"/api/sessions/{session}/window?limit=100",
        "usage by day": "/api/usage",
        "usage by project": "/api/usage?by=project",
        "usage by model": "/api/usage?by=model",
        "insights": "/api/insights",
        "projects": "/api/projects",
        "status": "/api/status",
    }
    for name, word in server.installed.words.items():
        paths[f"search, {name} word"] = f"/api/search?q={quote(word)}"
    return {name: lambda path=path: server.time_of(path) for name, path in paths.items()}


class LiveSession:
    """A session that an agent is at work on."""

    def __init__(self, server: Server) -> None:
        self.id = str(uuid.uuid4())
        self.path = server.installed.home / ".claude" / "projects" / "-growth" / f"{self.id}.jsonl"
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(b"".join(ten_lines(self.id, "begun")))
        session = quote(f"claude-code:{self.id}", safe="")
        end = time.monotonic() + 60
        while self.id.encode() not in server.ask("/api/sessions?limit=50"):
            assert time.monotonic() < end, "the new session is not read"
            time.sleep(0.1)
        self._stream = Stream(server.port, f"/api/sessions/{session}/events")

    def append(self) -> float:
        """Seconds from a line in the log to the event with its content."""
        time.sleep(random.uniform(0.1, 0.3))
        word = f"live{time.monotonic_ns()}"
        line = ten_lines(self.id, word)[0]
        self._stream.forget()
        with self.path.open("ab", buffering=0) as file:
            begun = time.perf_counter()
            file.write(line)
        arrived = self._stream.wait(word)
        assert arrived is not None, "the line was lost"
        return arrived - begun

    def remove(self) -> None:
        shutil.rmtree(self.path.parent)


def measure_server(installed: Mapping[str, Installation], rounds: int) -> dict[str, dict[str, list[float]]]:
    found = measure_starts(installed, max(3, rounds // 3))
    small, large = installed
    with serving(installed[small]) as first, serving(installed[large]) as second:
        servers = {small: first, large: second}
        for server in servers.values():
            while json.loads(server.ask("/api/status"))["sync"]["passes"] == 0:
                time.sleep(0.2)
        found |= in_turn({size: requests_of(server) for size, server in servers.items()}, 3 * rounds)
        sessions = {size: LiveSession(server) for size, server in servers.items()}
        found |= in_turn({size: {"line to event": each.append} for size, each in sessions.items()}, 3 * rounds)
        for size, server in servers.items():
            for name, amount in zip(("server, MB", "its processes, MB"), server.memory(), strict=True):
                # Printed as milliseconds are.
                found.setdefault(name, {})[size] = [amount / 1e9]
            sessions[size].remove()
    return found


# -- in turn


def in_turn(attempts: Mapping[str, Mapping[str, Attempt]], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of each attempt in each store, the stores in turn."""
    found: dict[str, dict[str, list[float]]] = {}
    names = next(iter(attempts.values()))
    for name in names:
        for number in range(rounds + 1):
            for size, known in attempts.items():
                seconds = known[name]()
                # The first fills caches.
                if number:
                    found.setdefault(name, {}).setdefault(size, []).append(seconds)
    return found


def print_table(found: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    print(f"\n{'ms: least (median)':36}  {'small':>19}  {'large':>19}  least / least")
    for name, times in found.items():
        small, large = times.values()
        ratio = min(large) / min(small)
        cells = "  ".join(f"{min(each) * 1e3:9.1f} ({statistics.median(each) * 1e3:7.1f})" for each in (small, large))
        print(f"{name:36}  {cells}  {ratio:5.2f}{'' if ratio <= BOUND else '  MORE THAN TWICE'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what grows with a store.")
    parser.add_argument("small", type=Path)
    parser.add_argument("large", type=Path)
    parser.add_argument("--work", type=Path, help="folder for the two stores; a temporary one when not given")
    parser.add_argument("--turnlog", type=Path, default=find_turnlog(), help="the command to measure")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=("commands", "server"), default=("server", "commands"))
    parser.add_argument("--words", nargs=3, default=("value", "zyzzyva", "qqxnever"), help="common, rare, absent")
    options = parser.parse_args()
    if options.turnlog is None:
        parser.error("turnlog is not installed beside this Python; give --turnlog")
    with tempfile.TemporaryDirectory(prefix="turnlog-benchmark-") as temporary:
        work: Path = (options.work or Path(temporary)).resolve()
        installed = {
            size: install(options.turnlog.absolute(), home.resolve(), work / size, options.words, options.rounds)
            for size, home in (("small", options.small), ("large", options.large))
        }
        if "server" in options.only:
            print_table(measure_server(installed, options.rounds))
        if "commands" in options.only:
            print_table(in_turn({size: commands_of(each) for size, each in installed.items()}, options.rounds))


if __name__ == "__main__":
    main()
