"""The machine's side speaks to the hub's own: it joins, asks how far it is, and is let in no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hubs import hub, listening, listening_app
from support.postgres_stores import PostgresDatabases
from turnlog.errors import TurnlogError
from turnlog.hub.machine.client import HubClient, HubRefusedError, HubUnreachableError, NotAHubError
from turnlog.server.app import create_app


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
        assert (joined["user_name"], joined["machine_name"]) == ("Ana", "laptop")
        with HubClient(address, joined["access_token"]) as client:
            position, generation, _ = client.position("store-1")
            assert (position.sequence, generation) == (0, 0)
            assert ana.delete(f"/hub/v1/machines/{joined['machine']}").status_code == 204
            with pytest.raises(HubRefusedError, match=f"turnlog hub connect {address}"):
                client.position("store-1")
        log = ana.get("/hub/v1/audit").json()
        assert {each["action"] for each in log["items"]} >= {"connect machine", "end machine"}
        # Also that of a machine that was ended.
        assert {log["names"].get(each["subject"]) for each in log["items"]} == {"laptop"}


def test_where_nothing_listens_it_is_said_at_once() -> None:
    def never(_: float) -> None:
        raise AssertionError("it is tried again")

    with (
        HubClient("http://127.0.0.1:9", sleep=never) as client,
        pytest.raises(HubUnreachableError, match="nothing answers there"),
    ):
        client.begin_device("laptop", "linux")


def test_what_is_not_a_hub_is_called_so(tmp_path: Path) -> None:
    with (
        listening_app(create_app(tmp_path / "store.db")) as address,
        HubClient(address) as client,
        pytest.raises(NotAHubError, match="is not a hub"),
    ):
        client.begin_device("laptop", "linux")


@pytest.mark.parametrize("url", ["https://", "hub.example", "ftp://hub.example"])
def test_an_address_that_is_none_is_told_from_an_example_of_one(url: str) -> None:
    with pytest.raises(TurnlogError, match=r"one looks like this: https://hub\.example"):
        HubClient(url)
