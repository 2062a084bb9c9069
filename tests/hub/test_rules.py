"""Rules of a team: what it takes, to whom new sessions are shown, how long they are kept; and filters of its log."""

from __future__ import annotations

import time
from typing import Any

from starlette.testclient import TestClient

from support.hubs import Hub, save_session
from turnlog.store import zstd
from turnlog.store.feed.taking import encode
from turnlog.store.feed.values import FeedBatch, FeedPosition

DAY = 86_400_000


def set_rules(client: TestClient, **rules: Any) -> dict[str, Any]:
    answer = client.patch("/hub/v1/rules", json=rules)
    assert answer.status_code == 200, answer.text
    return answer.json()["rules"]


def make_old(hub: Hub, session_id: str, days: float) -> None:
    at = int(time.time() * 1000 - days * DAY)
    external_id = session_id.partition(":")[2]
    hub.row("UPDATE turnlog.sessions SET updated_at = %s WHERE external_id = %s RETURNING 1", at, external_id)


def test_only_an_owner_makes_rules_and_everybody_sees_them(new_hub: Hub) -> None:
    owner, admin, ben = new_hub.browser("Olga", "owner"), new_hub.browser("Zoe", "admin"), new_hub.browser("Ben")
    assert set_rules(owner, highest_level="redacted", retention_days=90) == {
        "highest_level": "redacted",
        "visibility": "private",
        "retention_days": 90,
    }
    for other in (admin, ben):
        assert other.patch("/hub/v1/rules", json={"retention_days": 1}).status_code == 403
        assert other.get("/hub/v1/rules/retention?days=1").status_code == 403
        assert other.get("/hub/v1/rules").json()["rules"]["retention_days"] == 90
    assert set_rules(owner, retention_days=None)["retention_days"] is None
    assert owner.patch("/hub/v1/rules", json={"retention_days": 0}).status_code == 422
    changes = admin.get("/hub/v1/audit/team?action=change rules").json()["items"]
    # Changes of one minute are one entry.
    assert {each["actor"] for each in changes} == {new_hub.ids["Olga"]}


def test_new_sessions_are_shown_as_the_rule_says_once_their_owner_agrees(new_hub: Hub) -> None:
    owner, ana, ben = new_hub.browser("Olga", "owner"), new_hub.browser("Ana"), new_hub.browser("Ben")
    before = save_session(ana, "before", "one")
    set_rules(owner, visibility="team")
    unasked = save_session(ana, "unasked", "two")
    assert ana.get("/hub/v1/rules").json()["agreed"] is False
    assert ana.post("/hub/v1/rules/agreement", json={"agrees": True}).json()["agreed"] is True
    agreed = save_session(ana, "agreed", "three")
    assert [ben.get(f"/api/sessions/{each}").status_code for each in (before, unasked, agreed)] == [404, 404, 200]
    # Another rule in between, and the question is open again.
    set_rules(owner, visibility="private")
    time.sleep(0.002)
    set_rules(owner, visibility="team")
    again = save_session(ana, "again", "four")
    assert ben.get(f"/api/sessions/{again}").status_code == 404


def test_sessions_above_the_highest_level_are_refused_whole(new_hub: Hub) -> None:
    owner, ana = new_hub.browser("Olga", "owner"), new_hub.browser("Ana")
    set_rules(owner, highest_level="redacted")
    assert ana.post("/api/sessions", json={"external_id": "a"}).status_code == 403
    token = ana.post("/hub/v1/tokens", json={"name": "t", "scopes": ["push", "read"]}).json()["token"]
    names = {"sessions": {1: ("a", "x")}}
    batch = FeedBatch(FeedPosition(), FeedPosition(1), has_more=False, names=names, levels={1: "full"})
    body = zstd.compress(encode(batch))
    headers = {"Content-Encoding": "zstd"}
    answer = new_hub.client(token).post("/hub/v1/batches?store=s", content=body, headers=headers)
    assert answer.status_code == 403
    assert "redacted at most" in answer.text
    assert new_hub.row("SELECT count(*) FROM turnlog.sessions") == (0,)


def test_old_sessions_are_forgotten_by_the_rule_and_their_owner_sees_it(new_hub: Hub) -> None:
    owner, ana = new_hub.browser("Olga", "owner"), new_hub.browser("Ana")
    old, young = save_session(ana, "old", "xylophone"), save_session(ana, "young", "another")
    timeless = save_session(ana, "timeless", "whenever")
    make_old(new_hub, old, 40)
    make_old(new_hub, young, 20)
    plan = owner.get("/hub/v1/rules/retention?days=30").json()
    assert (plan["sessions"], plan["people"]) == (1, 1)
    # One of which no log says a time is as old as its place here.
    new_hub.row(
        "UPDATE turnlog.sessions SET created_at = NULL, updated_at = NULL WHERE external_id = 'timeless' RETURNING 1"
    )
    assert owner.get("/hub/v1/rules/retention?days=30").json()["sessions"] == 1
    came = "UPDATE turnlog.session_owners SET changed_at = changed_at - %s WHERE session_id = %s RETURNING 1"
    new_hub.row(came, 50 * DAY, timeless)
    assert owner.get("/hub/v1/rules/retention?days=30").json()["sessions"] == 2
    new_hub.row(came, -50 * DAY, timeless)
    assert owner.get("/hub/v1/rules/retention?days=60").json()["sessions"] == 0
    assert ana.get(f"/api/sessions/{old}").status_code == 200
    set_rules(owner, retention_days=30)
    end = time.monotonic() + 10
    while ana.get(f"/api/sessions/{old}").status_code != 404:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert ana.get(f"/api/sessions/{young}").status_code == 200
    assert "xylophone" not in ana.get("/api/search?q=xylophone").text
    assert ana.post("/api/sessions", json={"external_id": "old"}).status_code != 201
    (entry,) = ana.get("/hub/v1/audit?action=forget old session").json()["items"]
    assert (entry["actor"], entry["subject"], entry["detail"]) == ("hub", old, "older than 30 days")


def test_the_log_is_narrowed_down_by_person_action_subject_and_time(new_hub: Hub) -> None:
    ana, ben, cleo = new_hub.browser("Ana"), new_hub.browser("Ben"), new_hub.browser("Cleo")
    one, other = save_session(ana, "a", "one"), save_session(ana, "b", "other")
    for session in (one, other):
        ana.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team"})
        for reader in (ben, cleo):
            reader.get(f"/api/sessions/{session}")
    ids = new_hub.ids

    def found(query: str) -> set[tuple[str, str, str]]:
        items = ana.get(f"/hub/v1/audit?{query}").json()["items"]
        return {(each["actor"], each["action"], each["subject"]) for each in items}

    assert found("action=read") == {(ids[name], "read", each) for name in ("Ben", "Cleo") for each in (one, other)}
    assert found(f"action=read&actor={ids['Ben']}&subject={one}") == {(ids["Ben"], "read", one)}
    assert found("since=2030-01-01") == set()
    assert found("before=2020-01-01") == set()
