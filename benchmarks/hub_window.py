"""The window of a session and a team's usage over HTTP, from a hub that holds a million messages, under its policies.

    PYTHONPATH=src:tests python benchmarks/hub_window.py --store ~/.local/share/turnlog/turnlog.db

The store is pushed to a hub, and its sessions are repeated under other ids until there are so many messages. Somebody
who is shown all of them asks for windows of random sessions. Start it with `chrt -r 5` if others use the machine, too.
"""

from __future__ import annotations

import argparse
import http.client
import random
import shutil
import signal
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
from hub_faults import Node, Person, make_people
from hub_live import machine_token
from psycopg.rows import scalar_row

from hub import SETTINGS, cpu_of, cpu_of_postgres
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.hub.people.registry import People
from turnlog.store.connection import connect
from turnlog.store.postgres.database import Database

STEP: Final = 1 << 40
"""Between keys of one repetition and the next."""

SHIFTED: Final = {
    "sessions": ("key", "parent_key"),
    "messages": ("key", "billed_key"),
    "frames": (),
    "parts": ("message_key",),
    "more_paths": ("message_key",),
    "touches": ("message_key", "session_key"),
    "memberships": ("session_key", "message_key"),
    "usage": ("session_key",),
    "session_owners": ("session_key",),
}
"""Table -> columns with keys that differ between repetitions."""

RENAMED: Final = {"sessions": "external_id", "messages": "external_id", "session_owners": "session_id"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--store", type=Path, required=True)
    arguments.add_argument("--messages", type=int, default=1_000_000)
    arguments.add_argument("--windows", type=int, default=400)
    given = arguments.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(postgres_server(binaries_of_the_wheel(), SETTINGS))
        url = server.url(server.new_database())
        owner, reader = make_people(url, 2)
        node = Node(url, folder)
        node.start()
        stack.callback(node.end, signal.SIGTERM)
        push(given.store, folder, node, machine_token(url, owner), owner)
        with psycopg.connect(url, autocommit=True) as connection:
            fill(connection, given.messages)
            names = connection.cursor(row_factory=scalar_row)
            ids = names.execute(
                "SELECT session_id FROM turnlog.session_owners WHERE session_key IS NOT NULL"
            ).fetchall()
            (messages,) = connection.execute("SELECT count(*) FROM turnlog.messages").fetchone() or (0,)
        print(f"{messages} messages in {len(ids)} sessions", flush=True)
        chance = random.Random(1)
        for what, paths in (
            ("windows, each for the first time", [window(each) for each in chance.sample(ids, given.windows)]),
            ("windows of few sessions", [window(each) for each in chance.choices(ids[:20], k=given.windows)]),
            ("list of sessions", ["/api/sessions?limit=50"] * 50),
            ("counts, after a change", ["/api/status"]),
            ("newest tool calls", ["/api/tool-calls"] * 5),
            ("newest failed tool calls", ["/api/tool-calls?failed=true"] * 5),
            ("figures of tools", ["/api/tools"] * 5),
            ("insights", ["/api/insights"] * 3),
            ("files, the last touched first", ["/api/files/touched"] * 2),
        ):
            ask_all(what, paths, node, reader)
        for by in ("person", "project", "model", "day"):
            # Every question is of other days: an answer is given again for a minute.
            paths = [f"/hub/v1/usage?by={by}&since=2015-01-{day:02}" for day in range(1, 21)]
            ask_all(f"usage by {by}", paths, node, Person(owner.name, admin_token(url, owner)))


def admin_token(url: str, person: Person) -> str:
    with Database(url) as database:
        return People(database).secrets.make("personal", team=1, user=person.name, scopes=("read", "admin"))[0]


def window(session_id: str) -> str:
    return f"/api/sessions/{quote(session_id, safe='')}/window?limit=100"


def push(store: Path, folder: Path, node: Node, token: str, person: Person) -> None:
    path = folder / "machine" / "turnlog.db"
    path.parent.mkdir()
    shutil.copy(store, path)
    connect(path).close()  # an older schema is brought up
    address = f"http://127.0.0.1:{node.port}"
    with MachineState(path) as state, HubClient(address, token) as client:
        state.connect(HubConnection(address, token, "1", person.name, "laptop"))
        state.set_level("/", "full")
        StorePusher(path, state, client).push()


def fill(connection: psycopg.Connection, messages: int) -> None:
    """Repeat what is there, and show everything to the team."""
    (there,) = connection.execute("SELECT count(*) FROM turnlog.messages").fetchone() or (1,)
    connection.execute("SET session_replication_role = replica")  # no triggers
    connection.execute("UPDATE turnlog.session_owners SET visibility = 'team'")
    for number in range(1, -(-messages // there)):
        for table, shifted in SHIFTED.items():
            columns = connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
                (f"turnlog.{table}",),
            ).fetchall()
            names = [f'"{name}"' for (name,) in columns]
            made = [value_of(table, name, shifted, number) for (name,) in columns]
            ours = "frame" if table == "frames" else "own"
            condition = {"frame": f"key BETWEEN -{STEP} AND 0", "own": f"{(*shifted, 'key')[0]} < {STEP}"}[ours]
            connection.execute(
                f"INSERT INTO turnlog.{table} ({', '.join(names)}) SELECT {', '.join(made)}"
                f" FROM turnlog.{table} WHERE {condition}".encode()
            )
    connection.execute("SET session_replication_role = DEFAULT")
    connection.execute("SELECT turnlog.count_days(1, array_agg(key)) FROM turnlog.sessions WHERE team_key = 1")
    connection.execute("VACUUM ANALYZE")


def value_of(table: str, column: str, shifted: tuple[str, ...], number: int) -> str:
    if column in shifted:
        return f'"{column}" + {number * STEP}'
    if column == RENAMED.get(table):
        return f"\"{column}\" || '-{number}'"
    if column == "frame_key" or (table, column) == ("frames", "key"):
        return f'"{column}" - {number * STEP}'
    return f'"{column}"'


def ask_all(what: str, paths: list[str], node: Node, person: Person) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", node.port)
    headers = {"Authorization": f"Bearer {person.token}", "Accept-Encoding": "identity"}
    times: list[float] = []
    size = 0
    used = cpu_of(node.pid) + cpu_of_postgres()
    for path in paths:
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        size += len(answer.read())
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status == 200, (path, answer.status)
    used = (cpu_of(node.pid) + cpu_of_postgres() - used) / len(paths) * 1000
    ordered = sorted(times)
    print(
        f"{what}: p50 {statistics.median(ordered):.1f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.1f} ms;"
        f" CPU {used:.1f} ms; {size / len(paths) / 1000:.0f} kB",
        flush=True,
    )


if __name__ == "__main__":
    main()
