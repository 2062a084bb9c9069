"""The trash of a hub: a session that its owner deletes is gone for everybody at once, and can be taken out again."""

from __future__ import annotations

import time
from typing import Any

from starlette.testclient import TestClient

from support.hubs import Hub, save_session

DAY = 86_400_000


def deleted(client: TestClient, session_id: str) -> dict[str, Any]:
    answer = client.put(f"/hub/v1/sessions/{session_id}/trash")
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(client: TestClient) -> list[str]:
    return [each["id"] for each in client.get("/api/sessions?limit=100").json()["items"]]


def in_trash(client: TestClient) -> list[str]:
    return [each["id"] for each in client.get("/hub/v1/trash").json()["items"]]


def test_a_session_in_the_trash_is_shown_to_nobody_until_it_is_taken_back(new_hub: Hub) -> None:
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    session, other = save_session(ana, "a", "xylophone"), save_session(ana, "b", "zither")
    shown = {"visibility": "people", "people": [new_hub.ids["Ben"]]}
    assert ana.put(f"/hub/v1/sessions/{session}/sharing", json=shown).status_code == 200

    trashed = deleted(ana, session)
    assert trashed["title"] == "title of xylophone"
    assert trashed["forgotten_at"] > trashed["trashed_at"]
    for client in (ana, ben):
        assert client.get(f"/api/sessions/{session}").status_code == 404
        assert client.get(f"/api/sessions/{session}/window").status_code == 404
        assert client.get("/api/messages/a-2").status_code == 404
        assert client.get("/api/search?q=xylophone").json()["items"] == []
    assert listed(ana) == [other]
    assert (in_trash(ana), in_trash(ben)) == ([session], [])
    # Nobody else brings it back, and its program that goes on writing does not either.
    assert ben.delete(f"/hub/v1/sessions/{session}/trash").status_code == 404
    assert ana.post("/api/sessions", json={"external_id": "a", "title": "again"}).status_code == 404
    assert ana.get(f"/api/sessions/{session}").status_code == 404

    assert ana.delete(f"/hub/v1/sessions/{session}/trash").status_code == 204
    assert sorted(listed(ana)) == sorted([session, other])
    assert ben.get(f"/api/sessions/{session}").status_code == 200
    assert in_trash(ana) == []
    actions = [each["action"] for each in ana.get("/hub/v1/audit").json()["items"]]
    assert {"put into trash", "take out of trash"} <= set(actions)


def test_links_end_with_the_trash_and_stay_ended(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "xylophone")
    link = new_hub.people.sharing.make_link(1, session, new_hub.ids["Ana"], None)[0]
    reader = new_hub.client(Cookie=f"turnlog_link={link}")
    assert reader.get(f"/api/sessions/{session}").status_code == 200
    deleted(ana, session)
    assert reader.get(f"/api/sessions/{session}").status_code == 401
    ana.delete(f"/hub/v1/sessions/{session}/trash")
    assert reader.get(f"/api/sessions/{session}").status_code == 401


def test_after_thirty_days_the_trash_is_forgotten_for_good(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    old, new = save_session(ana, "old", "xylophone"), save_session(ana, "new", "zither")
    kept = save_session(ana, "kept", "harp")
    for each in (old, new):
        deleted(ana, each)
    at = int(time.time() * 1000) - 31 * DAY
    new_hub.row("UPDATE turnlog.session_owners SET trashed_at = %s WHERE session_id = %s RETURNING 1", at, old)
    retention = new_hub.app.state.hub.retention
    assert retention.empty_trash() == 1
    assert in_trash(ana) == [new]
    assert listed(ana) == [kept]
    assert ana.delete(f"/hub/v1/sessions/{old}/trash").status_code == 404
    assert new_hub.row("SELECT count(*) FROM turnlog.sessions WHERE external_id = 'old'") == (0,)
    assert new_hub.row("SELECT count(*) FROM turnlog.tombstones WHERE session_id = %s", old) == (1,)


def test_what_is_in_the_trash_does_not_count_in_the_figures_of_the_team(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "xylophone")
    counted = "SELECT count(*) FROM turnlog.usage_days"
    before = new_hub.row(counted)
    assert before > (0,)
    deleted(ana, session)
    assert new_hub.row(counted) == (0,)
    ana.delete(f"/hub/v1/sessions/{session}/trash")
    assert new_hub.row(counted) == before
