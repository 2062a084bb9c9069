"""The machine's side speaks to the hub's own: it joins, asks how far it is, and is let in no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hubs import hub, listening
from support.postgres_stores import PostgresDatabases
from turnlog.hub.machine.client import HubClient, HubRefusedError


def test_a_machine_joins_and_pushes_as_its_person(databases: PostgresDatabases, tmp_path: Path) -> None:
    with hub(databases, tmp_path) as found, listening(found) as address:
        ana = found.browser("Ana", "owner")
        with HubClient(address) as client:
            asked = client.begin_device("laptop", "linux")
            assert client.poll_device(asked["device_code"]) == "authorization_pending"
            assert ana.post(f"/hub/v1/device/{asked['user_code']}", json={"allow": True}).status_code == 200
            joined = client.poll_device(asked["device_code"])
        assert isinstance(joined, dict)
        assert joined["user"] == found.ids["Ana"]
        with HubClient(address, joined["access_token"]) as client:
            position, generation = client.position("store-1")
            assert (position.sequence, generation) == (0, 0)
            assert ana.delete(f"/hub/v1/machines/{joined['machine']}").status_code == 204
            with pytest.raises(HubRefusedError):
                client.position("store-1")
