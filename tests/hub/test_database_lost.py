"""A hub whose database dies says so, refuses what needs it at once, and goes on when it is back."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import httpx2

from support.hubs import hub, listening, save_session
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from support.postgres_stores import PostgresDatabases


def test_without_its_database_a_hub_is_not_ready_and_later_it_goes_on(tmp_path: Path) -> None:
    with (
        postgres_server(binaries_of_the_wheel()) as server,
        closing(PostgresDatabases(server)) as databases,
        hub(databases, tmp_path) as found,
    ):
        token = found.browser("Ana", "owner").post("/hub/v1/tokens", json={"name": "t", "scopes": ["read", "push"]})
        headers = {"Authorization": f"Bearer {token.json()['token']}"}
        with listening(found) as address, httpx2.Client(base_url=address, headers=headers, timeout=20) as client:
            session = save_session(client, "a", "walnut")
            with client.stream("GET", "/api/events") as stream:
                assert stream.status_code == 200
                server.kill()
                for _ in range(3):
                    for method, path in (
                        ("GET", "/api/sessions"),
                        ("POST", "/api/sessions"),
                        ("GET", "/hub/v1/me"),
                        ("GET", "/hub/v1/position?store=s"),
                        ("POST", "/hub/v1/batches?store=s"),
                    ):
                        answer = client.request(method, path, json={"external_id": "b"})
                        assert answer.status_code == 503, (path, answer.text)
                        assert int(answer.headers["Retry-After"]) > 0
                        # Nothing of where the database is.
                        assert str(tmp_path) not in answer.text
                        assert "host" not in answer.text
                    answer = client.get("/readyz")
                    assert (answer.status_code, answer.json()["reason"]) == (503, "the database does not answer")
                    assert client.get("/healthz").status_code == 200
                # At once: nobody waits for a database that is not there.
                began = time.monotonic()
                for _ in range(20):
                    assert client.get("/api/sessions").status_code == 503
                assert time.monotonic() - began < 10
                # Longer than the pool of connections tries by itself.
                time.sleep(2)
                server.start()
                began = time.monotonic()
                while client.get("/readyz").status_code != 200:
                    assert time.monotonic() - began < 20
                    time.sleep(0.05)
                assert client.get(f"/api/sessions/{session}").status_code == 200
                other = save_session(client, "b", "hazel")
                assert {each["id"] for each in client.get("/api/sessions").json()["items"]} == {session, other}
