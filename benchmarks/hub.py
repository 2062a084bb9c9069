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
from pathlib import Path

import psycopg

from support.hub_double import hub_process
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import Pusher
from turnlog.hub.machine.state import Connection, MachineState
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
        url, other = server.url(server.new_database()), server.url(server.new_database())
        for each in (url, other):
            PostgresStore(each, create=True).close()
        with hub_process(url) as hub, MachineState(store_path) as state:
            state.connect(Connection(hub.url, "ana/laptop", "1", "ana", "laptop"))
            state.set_level("/", given.level)
            with HubClient(hub.url, "ana/laptop") as client:
                pusher = Pusher(store_path, state, client)
                started, cpu = time.monotonic(), time.process_time()
                moments: list[float] = []
                report = pusher.push(lambda _: moments.append(time.monotonic() - started))
                took = time.monotonic() - started
                print(
                    f"push: {took:.2f} s, {report.messages} messages, {report.batches} batches,"
                    f" {len(report.sessions)} sessions, {report.files} files, {report.contents} contents;"
                    f" CPU of the machine {time.process_time() - cpu:.2f} s, of the hub {cpu_of(hub.pid):.2f} s"
                )
                state.generation += 1
                started = time.monotonic()
                again = pusher.push()
                print(f"again, unchanged: {time.monotonic() - started:.2f} s, {again.messages} messages")
        print(f"rows: {copy(url, other)}")


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def copy(source: str, target: str) -> str:
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
        started = time.monotonic()
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
        took = time.monotonic() - started
        return f"COPY of {sum(len(found) for _, _, found in rows.values())} rows took {took:.2f} s"


if __name__ == "__main__":
    main()
