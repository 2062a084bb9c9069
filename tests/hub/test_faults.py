"""A push that is killed at either end goes on where it ended: nothing is lost and nothing is there twice."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from support.hub_double import hub_process
from support.postgres_stores import PostgresDatabases
from support.toy_store import ToyStore
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.store import open_store

PUSH = """
import sys
from pathlib import Path
from turnlog.hub.machine import pusher
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import MachineState

pusher.MANY_MESSAGES = 40
with MachineState(Path(sys.argv[1])) as state:
    connection = state.connection()
    with HubClient(connection.url, connection.token, seconds=60) as client:
        pusher.StorePusher(Path(sys.argv[1]), state, client).push()
"""

HALF = """
import http.client, sys, time

send = http.client.HTTPConnection.send

def half(self, data):
    if len(data) < 40_000:
        return send(self, data)
    send(self, data[: len(data) // 2])
    open(f"{sys.argv[1]}.half", "w").close()
    time.sleep(600)

http.client.HTTPConnection.send = half
"""
"""Before a push: of the first large content, half is sent."""

SAID = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n'


def fill(toy: ToyStore, sessions: int, messages: int) -> None:
    for session in range(sessions):
        lines = [
            SAID % (name, name, b"words %d " % number + b"x" * (80_000 if number == 3 else 500))
            for number in range(messages)
            for name in [b"s%d-%d" % (session, number)]
        ]
        toy.write(f"s{session}.log", *lines)
    toy.read(*[f"s{session}.log" for session in range(sessions)])


def start_push(store_path: Path, before: str = "") -> subprocess.Popen[bytes]:
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", before + PUSH, str(store_path)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(f"SELECT count(*) FROM turnlog.{table}".encode()).fetchone()
    assert row is not None
    return row[0]


def test_kills_at_both_ends_lose_and_double_nothing(databases: PostgresDatabases, tmp_path: Path) -> None:
    sessions, messages = 25, 24
    url, chance = databases.url(), random.Random(7)
    with ToyStore(tmp_path) as toy:
        fill(toy, sessions, messages)
    with hub_process(url) as hub:
        with MachineState(toy.path) as state:
            state.connect(HubConnection(hub.url, "ana/laptop", "1", "ana", "laptop"))
            state.set_level("/", "full")
        kills = 0
        push = start_push(toy.path)
        while kills < 8 and push.poll() != 0:
            if push.poll() is not None:
                # A push that begins while the hub is away fails at once.
                push = start_push(toy.path)
            before = count(url, "messages")
            until = time.monotonic() + 20
            while count(url, "messages") == before and push.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.05)
            if kills % 2:
                hub.end()
                hub.start()
            else:
                push.kill()
                push.wait()
                push = start_push(toy.path)
            kills += 1
        assert kills >= 4
        push.wait(150)
        assert start_push(toy.path).wait(100) == 0
    assert (count(url, "messages"), count(url, "memberships")) == (sessions * messages,) * 2
    assert (count(url, "frames"), count(url, "sessions"), count(url, "sources")) == (600, sessions, sessions)
    assert (count(url, "blobs"), count(url, "blob_uses"), count(url, "blob_claims")) == (1, sessions, 0)
    with open_store(toy.path) as here, open_store(url) as there:
        for number in range(sessions):
            session_id = f"toy:s{number}"
            assert [each.message for each in here.messages(session_id)] == [
                each.message for each in there.messages(session_id)
            ]


def test_a_machine_killed_in_a_large_content_sends_it_again(databases: PostgresDatabases, tmp_path: Path) -> None:
    url, blobs = databases.url(), tmp_path / "blobs"
    texts = {name: os.urandom(60_000).hex().encode() for name in (b"u1", b"u2")}
    with ToyStore(tmp_path) as toy:
        toy.write("s.log", *[SAID % (name, name, text) for name, text in texts.items()])
        toy.read("s.log")
    with hub_process(url, str(blobs)) as hub:
        with MachineState(toy.path) as state:
            state.connect(HubConnection(hub.url, "ana/laptop", "1", "ana", "laptop"))
        killed = start_push(toy.path, HALF)
        until = time.monotonic() + 60
        while not Path(f"{toy.path}.half").exists():
            assert killed.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        killed.kill()
        killed.wait()
        assert [path for path in blobs.rglob("*") if path.is_file()] == []
        with MachineState(toy.path) as state, HubClient(hub.url, "ana/laptop", seconds=5) as client:
            assert StorePusher(toy.path, state, client).push().contents == 2
    kept = {path.name: path.read_bytes() for path in blobs.rglob("*") if path.is_file()}
    assert kept == {hashlib.sha256(text).hexdigest(): text for text in texts.values()}
    assert (count(url, "messages"), count(url, "blobs"), count(url, "blob_claims")) == (2, 2, 0)
