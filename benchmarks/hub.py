"""Push of a store through HTTP into PostgreSQL, against binary COPY of the same rows.

    PYTHONPATH=src:tests python benchmarks/hub.py --store ~/.local/share/turnlog/turnlog.db --level full

The store is copied first. Both write with fsync; the machine, the hub and PostgreSQL share the cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from support.hub_double import hub_process
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.store.connection import connect
from turnlog.store.postgres.store import PostgresStore

SETTINGS = ("--listen_addresses=", "--shared_buffers=1GB", "--max_wal_size=8GB", "--max_connections=50")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--store", type=Path, required=True)
    arguments.add_argument("--level", default="full")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgres_server(binaries_of_the_wheel(), SETTINGS) as server:
        store_path = Path(folder) / "turnlog.db"
        shutil.copy(given.store, store_path)
        connect(store_path).close()  # an older schema is brought up
        url, other = server.url(server.new_database()), server.url(server.new_database())
        for each in (url, other):
            PostgresStore(each, create=True).close()
        with hub_process(url) as hub, MachineState(store_path) as state:
            state.connect(HubConnection(hub.url, "ana/laptop", "1", "ana", "laptop"))
            state.set_level("/", given.level)
            with HubClient(hub.url, "ana/laptop") as client:
                pusher = StorePusher(store_path, state, client)
                began = Spent(hub.pid)
                report = pusher.push()
                pushed = Spent(hub.pid).since(began)
                print(
                    f"push: {pushed}; {report.messages} messages, {report.batches} batches,"
                    f" {len(report.sessions)} sessions, {report.files} files, {report.contents} large contents"
                )
                began = Spent(hub.pid)
                nothing = pusher.push()
                print(f"nothing has changed: {Spent(hub.pid).since(began)}; {nothing.batches} batches")
                state.generation += 1
                began = Spent(hub.pid)
                again = pusher.push()
                print(f"everything again, unchanged: {Spent(hub.pid).since(began)}; {again.messages} messages")
        copied, rows = copy(url, other)
        print(f"COPY: {copied}; {rows} rows")
        print(f"ratio: {copied.seconds / pushed.seconds:.2f} by time, {copied.cpu / pushed.cpu:.2f} by CPU")


class Spent:
    """Seconds and CPU seconds so far: of this process, of the hub, and of PostgreSQL."""

    def __init__(self, hub: int | None = None) -> None:
        self.seconds = time.monotonic()
        self.own = time.process_time()
        self.hub = 0.0 if hub is None else cpu_of(hub)
        self.database = cpu_of_postgres()

    @property
    def cpu(self) -> float:
        return self.own + self.hub + self.database

    def since(self, began: Spent) -> Spent:
        for name in ("seconds", "own", "hub", "database"):
            setattr(self, name, getattr(self, name) - getattr(began, name))
        return self

    def __str__(self) -> str:
        return (
            f"{self.seconds:.2f} s; CPU: this process {self.own:.2f} s, hub {self.hub:.2f} s,"
            f" PostgreSQL {self.database:.2f} s"
        )


def cpu_of_postgres() -> float:
    """Of the server that this process has started: also of its processes that have ended."""
    known: dict[int, tuple[str, list[str]]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            known[int(entry.name)] = name, rest.split()
    servers = {pid for pid, (name, fields) in known.items() if name == "postgres" and int(fields[1]) == os.getpid()}
    # A server's own row also has the times of its processes that have ended.
    found = sum(sum(map(int, known[pid][1][11:15])) for pid in servers)
    found += sum(sum(map(int, fields[11:13])) for _, fields in known.values() if int(fields[1]) in servers)
    return found / os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def copy(source: str, target: str) -> tuple[Spent, int]:
    with psycopg.connect(source) as one, psycopg.connect(target, autocommit=True) as two:
        tables = [
            name
            for (name,) in one.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'turnlog'")
            if name not in ("schema_version", "teams", "counters", "settings", "changes", "owners", "session_owners")
        ]
        rows: dict[str, tuple[list[str], list[str], list[tuple]]] = {}
        for table in tables:
            columns = one.execute(
                "SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
                " WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped",
                (f"turnlog.{table}",),
            ).fetchall()
            names = ", ".join(f'"{name}"' for name, _ in columns)
            found = one.execute(f"SELECT {names} FROM turnlog.{table}".encode()).fetchall()
            rows[table] = (names, [kind for _, kind in columns], found)
        began = Spent()
        two.execute("SET session_replication_role = replica")  # no triggers: what they make is copied, too
        two.execute("BEGIN")
        for table, (names, kinds, found) in rows.items():
            with (
                two.cursor() as cursor,
                cursor.copy(f"COPY turnlog.{table} ({names}) FROM STDIN (FORMAT BINARY)".encode()) as into,
            ):
                into.set_types(kinds)
                for row in found:
                    into.write_row(row)
        two.execute("COMMIT")
        return Spent().since(began), sum(len(found) for _, _, found in rows.values())


if __name__ == "__main__":
    main()
