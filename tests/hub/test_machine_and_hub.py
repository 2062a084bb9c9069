"""A machine joins a real hub, and what it sends is its person's and nobody else's."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from support.hubs import Hub
from support.toy_store import ToyStore
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pulling import PulledLogs
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.store import open_store

SAID = b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"%b"}\n' % (b"walnut " * 20_000)


@contextmanager
def served(hub: Hub) -> Generator[str]:
    """The address of a hub that answers on a port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(hub.app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def test_a_machine_joins_pushes_and_pulls_and_nobody_else_sees_it(
    new_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "config.toml"
    settings.write_text('[hub]\nlevel = "full"\n')
    monkeypatch.setenv("TURNLOG_CONFIG", str(settings))
    ana, ben = new_hub.browser("ana"), new_hub.browser("ben", "admin")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", SAID)
    with served(new_hub) as url, MachineState(toy.path) as state:
        with HubClient(url, seconds=0) as client:
            asked = client.begin_device("laptop", "linux")
            assert client.poll_device(asked["device_code"]) == "authorization_pending"
            assert ana.post(f"/hub/v1/device/{asked['user_code']}", json={"allow": True}).status_code == 200
            time.sleep(asked.get("interval", 1))
            joined = client.poll_device(asked["device_code"])
        assert isinstance(joined, dict)
        state.connect(HubConnection(url, *[str(joined[name]) for name in ("access_token", "team", "user", "machine")]))
        with HubClient(url, joined["access_token"], seconds=5) as client:
            report = StorePusher(toy.path, state, client).push()
            assert (report.messages, report.contents, report.refused) == (1, 1, set())
            packed = client.logs("toy:s")
        ((path, _),) = PulledLogs(packed).write(tmp_path / "pulled")
        assert path.read_bytes() == SAID
        (session,) = ana.get("/api/sessions").json()["items"]
        assert (session["id"], session["ownership"]["machine"]) == ("toy:s", "laptop")
        assert session["upload_level"] == "full"
        # Nobody else sees it by default, an administrator neither.
        assert ben.get("/api/sessions").json()["items"] == []
        for address in ("/api/sessions/toy:s", "/hub/v1/sessions/toy:s/logs"):
            assert ben.get(address).status_code == 404
        # Another level takes it back to send it anew: nobody forgot it.
        settings.write_text('[hub]\nlevel = "redacted"\n')
        with HubClient(url, joined["access_token"], seconds=5) as client:
            StorePusher(toy.path, state, client).push()
        assert ana.get("/api/sessions/toy:s").json()["session"]["upload_level"] == "redacted"
        (entry,) = ana.get("/hub/v1/audit?action=take session back").json()["items"]
        assert (entry["subject"], entry["times"], entry["detail"]) == ("toy:s", 1, "on laptop")
        assert ana.get("/hub/v1/audit?action=forget session").json()["items"] == []
        # What its person forgets on the machine is in that person's audit log of the hub, once.
        with open_store(toy.path) as store:
            store.forget("toy:s")
        with HubClient(url, joined["access_token"], seconds=5) as client:
            for _ in range(2):
                StorePusher(toy.path, state, client).push()
        assert ana.get("/api/sessions/toy:s").status_code == 404
        (entry,) = ana.get("/hub/v1/audit?action=forget session").json()["items"]
        assert (entry["subject"], entry["times"], entry["detail"]) == ("toy:s", 1, "on laptop")
        assert entry["actor"] == new_hub.ids["ana"]
        assert ben.get("/hub/v1/audit?action=forget session").json()["items"] == []
        # How far its store was taken goes with a machine.
        feeds = "SELECT name FROM turnlog.settings WHERE starts_with(name, 'feed of')"
        assert len(new_hub.rows(feeds)) == 1
        assert ana.delete(f"/hub/v1/machines/{joined['machine']}").status_code == 204
        assert new_hub.rows(feeds) == []
