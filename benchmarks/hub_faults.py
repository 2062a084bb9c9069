"""Two hub processes over a primary and its standby while people write and read, and processes are killed.

    PYTHONPATH=src:tests python benchmarks/hub_faults.py            # the faults
    PYTHONPATH=src:tests python benchmarks/hub_faults.py --viewers  # 200 live viewers on two processes

A writer counts a message as acknowledged when the hub has answered 200, and sends it again until then. At the end the
database is asked for every message. Everything runs on one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from support.postgres_servers import NOBODY, binaries_of_the_wheel
from turnlog.hub.people.registry import People
from turnlog.store.postgres import visibility
from turnlog.store.postgres.database import Database

USER = NOBODY if os.getuid() == 0 else None
SETTINGS = ("--listen_addresses=", "--max_connections=120", "--wal_level=replica", "--hot_standby=on")


class Server:
    """A PostgreSQL whose processes can be killed."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                *(binaries_of_the_wheel() / "postgres", "-D", self.folder / "data", "-k", self.folder),
                *(*SETTINGS, *self._settings),
            ],
            user=USER,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_for(lambda: psycopg.connect(self.url("postgres"), connect_timeout=2).close() is None)

    def url(self, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&user=tests"

    def kill(self) -> None:
        """All its processes, at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def receiver(self) -> int:
        """The process that receives the changes of the primary."""
        assert self._process is not None
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_child = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == self._process.pid
                if is_child and b"walreceiver" in (folder / "cmdline").read_bytes():
                    return int(folder.name)
        raise RuntimeError("the standby receives nothing")

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            self._process.wait()


class Node:
    """A `turnlog hub serve`."""

    def __init__(self, database: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._command = [sys.executable, "-m", "turnlog", "hub", "serve", "--database", database]
        self._command += ["--blobs", str(folder / "blobs"), "--data", str(folder / str(self.port))]
        self._command += ["--port", str(self.port), "--log-level", "error"]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (folder / f"{self.port}.log").open("ab")

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=self._log)
        wait_for(lambda: ask(self.port, "GET", "/readyz", None, None)[0] == 200)

    def end(self, how: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        assert self._process is not None
        return self._process.pid

    @property
    def megabytes(self) -> float:
        """Resident memory at its highest."""
        assert self._process is not None
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self._process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024


def wait_for(holds: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        with suppress(OSError, psycopg.OperationalError, http.client.HTTPException):
            if holds():
                return
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


def ask(port: int, method: str, path: str, token: str | None, body: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Person(NamedTuple):
    name: str
    token: str


@contextmanager
def cluster() -> Generator[tuple[Server, Server, str, Path]]:
    """A primary that waits for its standby, the standby, and the URL that finds whichever is writable."""
    root = Path(tempfile.mkdtemp(prefix="faults"))
    root.chmod(0o755)
    programs = binaries_of_the_wheel()
    primary = Server(root / "p", "--synchronous_standby_names=ANY 1 (s2)", "--synchronous_commit=on")
    standby = Server(root / "s")

    def run(*command: Any) -> None:
        subprocess.run(list(map(str, command)), user=USER, cwd="/", check=True, capture_output=True)

    try:
        for each in (primary, standby):
            each.folder.mkdir()
            if USER is not None:
                os.chown(each.folder, USER, USER)
        run(
            programs / "initdb", "-D", primary.folder / "data", "-U", "tests", "-A", "trust", "--locale=C", "-E", "UTF8"
        )
        primary.start()
        source = f"host={primary.folder} user=tests application_name=s2"
        run(programs / "pg_basebackup", "-D", standby.folder / "data", "-R", "-d", source)
        standby.start()
        with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE hub")
        hosts = f"host={primary.folder},{standby.folder}"
        yield primary, standby, f"postgresql:///hub?{hosts}&user=tests&target_session_attrs=read-write", root
    finally:
        standby.end()
        primary.end()
        shutil.rmtree(root, ignore_errors=True)


def make_people(url: str, number: int) -> list[Person]:
    """People with tokens, over the tables of the hub."""
    found: list[Person] = []
    with Database(url, create=True) as database:
        with psycopg.connect(url, autocommit=True) as connection:
            visibility.protect(connection, database.name)
        people = People(database)
        for at in range(number):
            invitation = people.secrets.make("invitation", team=1, role="owner" if at == 0 else "member")[0]
            user = people.teams.accept(invitation, f"person {at}")
            assert user is not None
            token = people.secrets.make("personal", team=1, user=user.id, scopes=("read", "push"))[0]
            found.append(Person(user.id, token))
    return found


class Writer(threading.Thread):
    """Writes messages one after the other, each until it is acknowledged."""

    def __init__(self, person: Person, ports: list[int], stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.person, self._ports, self._stop_now = person, ports, stop
        self.acknowledged: list[str] = []
        self.longest = 0.0
        self._at = random.randrange(2)

    def run(self) -> None:
        session = f"turnlog:{self.person.name}"
        self._send("/api/sessions", {"external_id": self.person.name, "title": "x"})
        number = 0
        while not self._stop_now.is_set():
            name = f"{self.person.name}-{number}"
            message = {"id": name, "role": "user", "parts": [{"type": "text", "text": f"words {number} " + "x" * 400}]}
            self._send(f"/api/sessions/{session}/messages", {"messages": [message]})
            self.acknowledged.append(name)
            number += 1

    def _send(self, path: str, body: Any) -> None:
        began = time.monotonic()
        while True:
            with suppress(OSError, http.client.HTTPException):
                status, text = ask(self._ports[self._at], "POST", path, self.person.token, body)
                if status in (200, 201):
                    break
                if status not in (500, 503, 429):
                    raise RuntimeError(f"{path}: {status} {text[:300]!r}")
            self._at = 1 - self._at
            time.sleep(0.1)
        self.longest = max(self.longest, time.monotonic() - began)


class Reader(threading.Thread):
    """Reads a window again and again, and notes when it failed and whether a message that was there went away."""

    def __init__(self, person: Person, ports: list[int], stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._person, self._ports, self._stop_now = person, ports, stop
        self.answers = self.failures = self.went_back = 0
        self.longest = 0.0

    def run(self) -> None:
        known, at, good = 0, 0, time.monotonic()
        while not self._stop_now.is_set():
            try:
                status, text = ask(
                    self._ports[at], "GET", f"/api/sessions/turnlog:{self._person.name}", self._person.token, None
                )
            except (OSError, http.client.HTTPException):
                status, text = 0, b""
            if status in (200, 404):
                self.answers += 1
                self.longest = max(self.longest, time.monotonic() - good)
                good = time.monotonic()
                if status == 200:
                    count = json.loads(text)["session"]["counts"].get("messages", 0)
                    self.went_back += count < known
                    known = max(known, count)
            else:
                self.failures += 1
                at = 1 - at
            time.sleep(0.1)


def faults(seconds: float) -> None:
    with cluster() as (primary, standby, url, folder), ExitStack() as stack:
        people = make_people(url, 20)
        nodes = [Node(url, folder) for _ in range(2)]
        for node in nodes:
            node.start()
            stack.callback(node.end)
        ports, stop = [node.port for node in nodes], threading.Event()
        writers = [Writer(person, ports, stop) for person in people]
        readers = [Reader(person, ports, stop) for person in people]
        for thread in (*writers, *readers):
            thread.start()
        time.sleep(seconds)
        print(f"before: {sum(len(each.acknowledged) for each in writers)} acknowledged in {seconds:.0f} s", flush=True)
        reset(writers, readers)
        nodes[0].end()
        time.sleep(seconds / 2)
        nodes[0].start()
        time.sleep(seconds / 2)
        report("a process of the hub killed, and started again", writers, readers)
        reset(writers, readers)
        # On one machine, a standby that is killed with its primary has everything: only one that lags shows anything.
        receiver = standby.receiver
        os.kill(receiver, signal.SIGSTOP)
        time.sleep(0.6)
        primary.kill()
        time.sleep(0.5)
        os.kill(receiver, signal.SIGCONT)
        subprocess.run(
            [binaries_of_the_wheel() / "pg_ctl", "promote", "-D", standby.folder / "data"],
            user=USER,
            cwd="/",
            check=True,
            capture_output=True,
        )
        time.sleep(seconds)
        report("the standby frozen 0.6 s, the primary killed, the standby promoted 0.5 s later", writers, readers)
        stop.set()
        for thread in (*writers, *readers):
            thread.join(60)
        with psycopg.connect(standby.url("hub")) as connection:
            rows = connection.execute("SELECT external_id FROM turnlog.messages").fetchall()
            places = connection.execute("SELECT count(*) FROM turnlog.memberships").fetchone()
        there = [name for (name,) in rows]
        told = [name for writer in writers for name in writer.acknowledged]
        print(f"acknowledged {len(told)}; lost {len(set(told) - set(there))}; doubled {len(there) - len(set(there))}")
        print(f"places of messages: {places}; counts that went back: {sum(reader.went_back for reader in readers)}")
        print("memory of the processes, MB:", [round(node.megabytes) for node in nodes])


def reset(writers: list[Writer], readers: list[Reader]) -> None:
    for each in (*writers, *readers):
        each.longest = 0.0
    for reader in readers:
        reader.answers = reader.failures = 0


def report(what: str, writers: list[Writer], readers: list[Reader]) -> None:
    waits = [each.longest for each in writers]
    answers, failures = sum(each.answers for each in readers), sum(each.failures for each in readers)
    print(
        f"{what}: longest write {max(waits):.1f} s; readers {answers} answers, {failures} failures,"
        f" longest without an answer {max(each.longest for each in readers):.1f} s",
        flush=True,
    )


# -- viewers


class Viewer:
    """Reads the stream of a session, and notes which messages came, and how late."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.doubled = self.resyncs = 0

    async def watch(self, port: int, person: Person, session: str, ready: asyncio.Semaphore) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        head = f"GET /api/sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {person.token}"
        writer.write(f"{head}\r\n\r\n".encode())
        async for line in reader:
            if line.startswith(b"event: ready"):
                ready.release()
            self.resyncs += line.startswith(b"event: resync")
            for name in set(re.findall(rb'"id":"(live-\d+)"', line)):
                self.doubled += name.decode() in self.seen
                self.seen.setdefault(name.decode(), time.time())


async def watch(people: list[Person], ports: list[int], messages: int, each_second: float) -> None:
    owner, session = people[0], f"turnlog:{people[0].name}"
    viewers = [Viewer() for _ in range(200)]
    ready = asyncio.Semaphore(0)
    tasks = [
        asyncio.create_task(viewer.watch(ports[at % 2], people[at % len(people)], session, ready))
        for at, viewer in enumerate(viewers)
    ]
    for _ in viewers:
        await asyncio.wait_for(ready.acquire(), 120)
    sent: dict[str, float] = {}
    for number in range(messages):
        name = f"live-{number}"
        body = {"messages": [{"id": name, "role": "user", "parts": [{"type": "text", "text": f"words {number}"}]}]}
        status, text = await asyncio.to_thread(
            ask, ports[number % 2], "POST", f"/api/sessions/{session}/messages", owner.token, body
        )
        assert status == 200, text
        sent[name] = time.time()
        await asyncio.sleep(1 / each_second)
    end = time.monotonic() + 20
    while time.monotonic() < end and any(len(viewer.seen) < messages for viewer in viewers):
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    late = sorted(1000 * (at - sent[name]) for viewer in viewers for name, at in viewer.seen.items())
    missing = sum(messages - len(viewer.seen) for viewer in viewers)
    print(
        f"{len(viewers)} viewers, {messages} messages at {each_second} a second: {len(late)} deliveries,"
        f" {missing} missing, {sum(viewer.resyncs for viewer in viewers)} told to read again;"
        f" after the acknowledgement p50 {late[len(late) // 2]:.0f} ms, p99 {late[len(late) * 99 // 100]:.0f} ms"
    )


def viewers() -> None:
    with cluster() as (_, _, url, folder), ExitStack() as stack:
        people = make_people(url, 40)
        nodes = [Node(url, folder) for _ in range(2)]
        for node in nodes:
            node.start()
            stack.callback(node.end)
        ports, owner = [node.port for node in nodes], people[0]
        assert ask(ports[0], "POST", "/api/sessions", owner.token, {"external_id": owner.name})[0] == 201
        path = f"/hub/v1/sessions/turnlog:{owner.name}/sharing"
        assert ask(ports[0], "PUT", path, owner.token, {"visibility": "team"})[0] == 200
        asyncio.run(watch(people, ports, 100, 5))
        print("memory of the processes, MB:", [round(node.megabytes) for node in nodes])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--viewers", action="store_true")
    arguments.add_argument("--seconds", type=float, default=12)
    given = arguments.parse_args()
    viewers() if given.viewers else faults(given.seconds)


if __name__ == "__main__":
    main()
