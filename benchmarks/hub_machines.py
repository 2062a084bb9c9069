"""Twenty machines push to one hub at once, each a process with a home of its own; some are killed and push again.

    PYTHONPATH=src:tests python benchmarks/hub_machines.py [--machines 20] [--sessions 30]

At the end every session of every machine is on the hub, once, with as many messages as in the machine's own store.
"""

from __future__ import annotations

import argparse
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import psycopg
from append import ten_lines
from hub_faults import Node, make_people
from hub_live import machine_token
from measure import bare_environment

from hub import cpu_of, cpu_of_postgres
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from turnlog.hub.machine.state import HubConnection, MachineState


class Machine(NamedTuple):
    """A home, its store, and whose it is."""

    home: Path
    store: Path
    user: str

    def write(self, session: str, times: int) -> None:
        """Let an agent write to a session of this machine."""
        path = self.home / ".claude" / "projects" / "p" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            for number in range(times):
                file.writelines(ten_lines(session, f"word{number} of {self.user}"))

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command of this machine."""
        return subprocess.Popen(
            [sys.executable, "-m", "turnlog", *command, "--store", str(self.store)],
            env=bare_environment(self.home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def counts(self) -> dict[str, int]:
        """Session -> messages, in the machine's own store."""
        with sqlite3.connect(self.store) as connection:
            return dict(
                connection.execute(
                    "SELECT s.agent || ':' || s.external_id, count(*) FROM memberships m"
                    " JOIN sessions s ON s.key = m.session_key GROUP BY 1"
                )
            )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--machines", type=int, default=20)
    arguments.add_argument("--sessions", type=int, default=30)
    given = arguments.parse_args()
    chance = random.Random(1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(postgres_server(binaries_of_the_wheel(), ("--listen_addresses=",)))
        url = server.url(server.new_database())
        people = make_people(url, given.machines)
        node = Node(url, folder)
        node.start()
        stack.callback(node.end, signal.SIGTERM)
        machines: list[Machine] = []
        for person in people:
            home = folder / person.name
            machine = Machine(home, home / "turnlog.db", person.name)
            sessions = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(given.sessions)]
            for session in sessions:
                machine.write(session, chance.randrange(1, 8))
            with MachineState(machine.store) as state:
                address = f"http://127.0.0.1:{node.port}"
                state.connect(HubConnection(address, machine_token(url, person), "1", person.name, "laptop"))
                state.set_level("/", "full")
                state.agree()
            machines.append(machine)
        for each in [machine.start("sync") for machine in machines]:
            end(each)
        used, began = cpu_of(node.pid) + cpu_of_postgres(), time.monotonic()
        pushing = [machine.start("hub", "push") for machine in machines]
        time.sleep(2)
        for each in pushing[:: max(1, len(pushing) // 5)]:
            each.kill()
        failed = sum(end(each, kill=True) for each in pushing)
        print(f"all at once: {time.monotonic() - began:.1f} s, {failed} killed", flush=True)
        print(f"CPU of hub and PostgreSQL {cpu_of(node.pid) + cpu_of_postgres() - used:.1f} s; {node.megabytes:.0f} MB")
        tell(url, machines, "after the kills")
        for machine in machines:
            for session in list(machine.counts())[:5]:
                machine.write(session.partition(":")[2], 1)
        for each in [machine.start("sync") for machine in machines]:
            end(each)
        began = time.monotonic()
        for each in [machine.start("hub", "push") for machine in machines]:
            end(each)
        print(f"all at once again: {time.monotonic() - began:.1f} s", flush=True)
        tell(url, machines, "at the end")


def end(process: subprocess.Popen[bytes], *, kill: bool = False) -> bool:
    """Wait for a process; whether it was killed."""
    _, said = process.communicate(timeout=600)
    if process.returncode and not (kill and process.returncode == -signal.SIGKILL):
        raise RuntimeError(said.decode())
    return process.returncode != 0


def tell(url: str, machines: list[Machine], when: str) -> None:
    """Compare the hub with the machines."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT o.owner_user, o.session_id, count(*) FROM turnlog.session_owners o"
            " JOIN turnlog.memberships m ON (m.team_key, m.session_key) = (o.team_key, o.session_key) GROUP BY 1, 2"
        ).fetchall()
        twice = connection.execute(
            "SELECT count(*) - count(DISTINCT (agent, external_id, owner)) FROM turnlog.messages"
        ).fetchone()
    there = {(user, session): count for user, session, count in rows}
    wanted = {(each.user, session): count for each in machines for session, count in each.counts().items()}
    missing = sum(key not in there for key in wanted)
    other = sum(there.get(key, count) != count for key, count in wanted.items())
    print(
        f"{when}: {len(wanted)} sessions of {len(machines)} machines, {sum(wanted.values())} messages: {missing}"
        f" sessions missing, {other} with another number of messages, {len(there.keys() - wanted.keys())} that"
        f" nobody has, {twice[0] if twice else None} messages twice",
        flush=True,
    )


if __name__ == "__main__":
    main()
