"""`turnlog why --hub`: a colleague's clone, the sessions that are shown on the hub, and nothing of the others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from starlette.testclient import TestClient

from support.cli_runner import call
from support.hubs import Hub, hub, listening
from support.made_repository import REMOTE, MadeRepository, make_pull_requests
from support.postgres_stores import PostgresDatabases
from turnlog.commits.links import LinkFinder, OriginLink
from turnlog.commits.printed import pull_request
from turnlog.commits.repository import Repository
from turnlog.hub.machine.asking import HubHistory
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.hub.people.machines import Joined
from turnlog.store import open_store
from turnlog.sync.syncer import sync

REQUESTS = 6
"""Pull requests: two of three by sessions."""


class Team(NamedTuple):
    """Ana's sessions are on the hub, and Ben has a clone somewhere else."""

    hub: Hub
    url: str
    made: MadeRepository
    clone: Path
    ana: TestClient
    ben_token: str

    def links(self, *numbers: int) -> dict[int, list[OriginLink]]:
        """Pull request -> the sessions that Ben finds for it, candidates left out."""
        found: dict[int, list[OriginLink]] = {}
        with HubClient(self.url, self.ben_token, seconds=0) as client:
            history = HubHistory(client)
            finder = LinkFinder(history, history, Repository(self.clone))
            for number in numbers:
                wanted = pull_request(f"{REMOTE}/pull/{number}")
                assert wanted is not None
                links = finder.of_pull_request(wanted)
                found[number] = [link for link in links if link.confidence != "possible"]
        return found

    def truth(self) -> dict[int, set[str]]:
        subjects = self.made.git("log", "main", "--format=%H %s").splitlines()
        found = {line[:40]: line.rpartition("(#")[2].rstrip(")") for line in subjects}
        return {int(number): self.made.truth[commit] for commit, number in found.items() if number.isdigit()}


def machine_of(found: Hub, name: str) -> str:
    made = found.people.secrets.make(
        "machine", team=1, user=found.ids[name], machine=f"m-{name}", scopes=("push", "read")
    )
    return made[0]


@pytest.fixture(scope="module")
def team(databases: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("why")
    made = make_pull_requests(folder / "ana" / "shop", folder / "claude", REQUESTS)
    path = folder / "ana.db"
    sync(path, roots=[folder / "claude"])
    clone = folder / "ben" / "a place of mine"
    subprocess.run(["git", "clone", "-q", str(made.folder), str(clone)], check=True, env={"PATH": "/usr/bin:/bin"})
    subprocess.run(["git", "-C", str(clone), "remote", "set-url", "origin", f"{REMOTE}.git"], check=True)
    with hub(databases, folder / "hub") as found, listening(found) as url:
        ana, ben = found.browser("Ana"), found.browser("Ben")
        with MachineState(path) as state, HubClient(url, machine_of(found, "Ana")) as client:
            state.connect(HubConnection(url, "x", "1", found.ids["Ana"], "m-Ana"))
            report = StorePusher(path, state, client).push()
            assert set(report.sessions.values()) == {"redacted"}
        assert ben.get("/api/sessions").json()["items"] == []
        yield Team(found, url, made, clone, ana, machine_of(found, "Ben"))


def test_all_shown_sessions_are_linked_and_none_to_bots(
    team: Team, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs = subprocess.run(["git", "show-ref"], cwd=team.clone, capture_output=True, check=True).stdout
    files = {file: file.read_bytes() for file in sorted(team.clone.rglob("*")) if file.is_file()}
    truth = team.truth()
    assert [len(truth[number]) for number in range(1, REQUESTS + 1)] == [1, 1, 0] * (REQUESTS // 3)
    assert team.links(1, 2, 3) == {1: [], 2: [], 3: []}
    everything = sorted(set[str]().union(*truth.values()))
    shown = everything[:-1]
    for session in shown:
        answer = team.ana.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team", "people": []})
        assert answer.status_code == 200
    found = {number: {link.session_id for link in links} for number, links in team.links(*truth).items()}
    assert found == {number: sessions & set(shown) for number, sessions in truth.items()}
    # What is not shown is answered as what is not there.
    hidden = next(number for number, sessions in truth.items() if sessions - set(shown))
    assert team.links(hidden, 99) == {hidden: [], 99: []}
    assert {file: file.read_bytes() for file in sorted(team.clone.rglob("*")) if file.is_file()} == files
    assert subprocess.run(["git", "show-ref"], cwd=team.clone, capture_output=True, check=True).stdout == refs
    # Whose it is learns who looked.
    reads = team.ana.get("/hub/v1/audit", params={"action": "read"}).json()["items"]
    assert {each["actor"] for each in reads} == {team.hub.ids["Ben"]}

    # The command.
    store = home / "turnlog.db"
    with MachineState(store) as state:
        state.connect(HubConnection(team.url, team.ben_token, "1", team.hub.ids["Ben"], "m-Ben"))
    monkeypatch.chdir(team.clone)
    number = next(number for number, sessions in found.items() if sessions)
    told = call("why", "--hub", f"#{number}", "--json", "--store", str(store))
    assert told.exit_code == 0, told.stderr
    [link] = json.loads(told.stdout)["links"]
    assert ({link["session_id"]}, link["turn"]) == (found[number], 1)
    assert link["prompt"] == f"Print the receipt of till {number}"
    silent = call("why", "--hub", "#3", "--store", str(store))
    assert (silent.exit_code, f"No session that {team.url} shows to you" in silent.stderr) == (0, True)


def test_a_machine_of_an_older_version_learns_its_names(team: Team, home: Path) -> None:
    store = home / "turnlog.db"
    machines = team.hub.people.machines
    asked = machines.ask("desk", "linux", team.url)
    machines.answer(asked.user_code, 1, team.hub.ids["Ben"], allow=True)
    joined = machines.poll(asked.device_code)
    assert isinstance(joined, Joined)
    with MachineState(store) as state:
        state.connect(HubConnection(team.url, joined.access_token, "1", joined.user, joined.machine))
    open_store(store, create=True).close()
    assert "as Ben, machine desk" in call("hub", "status", "--no-sync", "--store", str(store)).output
    with MachineState(store) as state:
        assert state.connection().who() == "Ben, machine desk"
