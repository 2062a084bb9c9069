"""People of a hub: they are invited, have roles and tokens, and lose everything at once when they leave."""

from __future__ import annotations

import hashlib

import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, save_session


def test_an_invitation_makes_one_member(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    link = ana.post("/hub/v1/invitations", json={"role": "member"}).json()["address"]
    code = link.partition("#code=")[2]
    ben, eve = new_hub.client(), new_hub.client()
    assert ben.post("/hub/v1/invitations/accept", json={"code": code, "name": "Ben"}).status_code == 200
    assert ben.get("/hub/v1/me").json()["role"] == "member"
    assert eve.post("/hub/v1/invitations/accept", json={"code": code, "name": "Eve"}).status_code == 403
    assert [each["user"]["name"] for each in ana.get("/hub/v1/members").json()["items"]] == ["Ana", "Ben"]


def test_an_invitation_of_somebody_who_left_is_worth_nothing(new_hub: Hub) -> None:
    ana, zoe = new_hub.browser("Ana", "owner"), new_hub.browser("Zoe", "admin")
    code = zoe.post("/hub/v1/invitations", json={"role": "member"}).json()["address"].partition("#code=")[2]
    assert ana.delete(f"/hub/v1/members/{new_hub.ids['Zoe']}").status_code == 204
    answer = new_hub.client().post("/hub/v1/invitations/accept", json={"code": code, "name": "Ben"})
    assert answer.status_code == 403


def test_an_admin_makes_no_owner(new_hub: Hub) -> None:
    new_hub.browser("Ana", "owner")
    zoe = new_hub.browser("Zoe", "admin")
    assert zoe.post("/hub/v1/invitations", json={"role": "owner"}).status_code == 403
    assert zoe.patch(f"/hub/v1/members/{new_hub.ids['Zoe']}", json={"role": "owner"}).status_code == 403
    assert zoe.patch(f"/hub/v1/members/{new_hub.ids['Ana']}", json={"role": "member"}).status_code == 403
    assert zoe.delete(f"/hub/v1/members/{new_hub.ids['Ana']}").status_code == 403


def test_nobody_is_mistaken_for_whose_id_they_have_taken_as_their_name(new_hub: Hub) -> None:
    new_hub.browser("Ana", "owner")
    ana = new_hub.ids["Ana"]
    new_hub.browser(ana, "member")
    assert [user.id for user in new_hub.people.teams.called(ana)] == [ana]
    assert [user.id for user in new_hub.people.teams.called("Ana")] == [ana]


def test_the_last_owner_stays(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    mine = f"/hub/v1/members/{new_hub.ids['Ana']}"
    assert ana.patch(mine, json={"role": "member"}).status_code == 409
    assert ana.delete(mine).status_code == 409
    new_hub.browser("Ben", "owner")
    assert ana.delete(mine).status_code == 204


def test_who_leaves_has_no_access_from_then_on(new_hub: Hub) -> None:
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    token = ben.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()["token"]
    program = new_hub.client(token)
    session = save_session(ana, "a", "shared")
    ana.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "people", "people": [new_hub.ids["Ben"]]})
    for client in (ben, program):
        assert client.get(f"/api/sessions/{session}").status_code == 200
    assert ana.delete(f"/hub/v1/members/{new_hub.ids['Ben']}").status_code == 204
    for client in (ben, program):
        assert client.get(f"/api/sessions/{session}").status_code == 401
        assert client.get("/hub/v1/me").status_code == 401


def test_who_is_taken_back_has_what_was_theirs_and_no_old_token(new_hub: Hub) -> None:
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    token = ben.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()["token"]
    session = save_session(ben, "b", "walnut")
    user = new_hub.ids["Ben"]
    assert ana.delete(f"/hub/v1/members/{user}").status_code == 204
    # An invitation alone proves nobody: with any name, its guest is somebody new.
    other = new_hub.browser("Ben")
    assert new_hub.ids["Ben"] != user
    assert other.get(f"/api/sessions/{session}").status_code == 404
    assert new_hub.people.teams.take_back(user, "viewer") == 1
    for client in (ben, new_hub.client(token)):
        assert client.get("/hub/v1/me").status_code == 401
    code, _ = new_hub.people.secrets.make("attempt", team=1, user=user)
    again = new_hub.client(**{"X-Turnlog-CSRF": "1"})
    assert again.post("/hub/v1/sign-in", json={"code": code}).json()["role"] == "viewer"
    assert again.get(f"/api/sessions/{session}").status_code == 200
    first = ana.get("/hub/v1/audit/team").json()["items"][0]
    assert (first["actor"], first["action"], first["subject"], first["detail"]) == ("hub", "join", user, "viewer")
    assert new_hub.people.teams.take_back(new_hub.ids["Ana"], "viewer") is None


def test_only_a_hash_of_a_secret_is_kept(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    made = ana.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()
    kept = new_hub.row("SELECT hash, secrets::text FROM turnlog.secrets WHERE id = %s", made["item"]["id"])
    assert kept[0] == hashlib.sha256(made["token"].encode()).digest()
    assert made["token"] not in kept[1]
    assert made["token"].startswith("tlp_")


def test_a_token_allows_what_it_says_and_its_person_may(new_hub: Hub) -> None:
    ana, vic = new_hub.browser("Ana", "owner"), new_hub.browser("Vic", "viewer")
    token = ana.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()["token"]
    program = new_hub.client(token)
    assert program.get("/api/sessions").status_code == 200
    assert program.post("/api/sessions", json={"external_id": "a"}).status_code == 403
    assert program.get("/hub/v1/usage").status_code == 403
    assert vic.post("/hub/v1/tokens", json={"name": "x", "scopes": ["push"]}).status_code == 403
    assert vic.post("/api/sessions", json={"external_id": "a"}).status_code == 403


def test_an_ended_token_fails_at_its_next_request(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    made = ana.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()
    program = new_hub.client(made["token"])
    assert program.get("/api/sessions").status_code == 200
    assert ana.delete(f"/hub/v1/tokens/{made['item']['id']}").status_code == 204
    assert program.get("/api/sessions").status_code == 401


def test_a_browser_must_say_that_it_is_the_page(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    body = {"name": "x", "scopes": ["read"]}
    others = [{"X-Turnlog-CSRF": "1", "Origin": origin} for origin in ("http://evil.example", "http://[")]
    for headers in (*others, {"Sec-Fetch-Site": "cross-site"}):
        assert ana.post("/hub/v1/tokens", json=body, headers=headers).status_code == 403
    del ana.headers["X-Turnlog-CSRF"]
    assert ana.post("/hub/v1/tokens", json=body).status_code == 403
    assert ana.get("/hub/v1/me").status_code == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(new_hub: Hub) -> None:
    code = new_hub.people.secrets.make("invitation", team=1, role="owner")[0]
    answer = new_hub.client().post("/hub/v1/invitations/accept", json={"code": code, "name": "Ana"})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_machines_of_one_person_have_names_of_their_own(new_hub: Hub) -> None:
    def join(person: TestClient, name: str = "vm") -> dict[str, str]:
        machine = new_hub.client()
        asked = machine.post("/hub/v1/device", json={"machine": name}).json()
        assert person.post(f"/hub/v1/device/{asked['user_code']}", json={"allow": True}).status_code == 200
        return machine.post("/hub/v1/device/token", json={"device_code": asked["device_code"]}).json()

    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    first, second = join(ana), join(ana)
    assert [first["machine_name"], second["machine_name"], join(ben)["machine_name"]] == ["vm", "vm (2)", "vm"]
    assert [each["name"] for each in ana.get("/hub/v1/machines").json()["items"]] == ["vm", "vm (2)"]
    assert new_hub.client(second["access_token"]).get("/hub/v1/me").json()["machine_name"] == "vm (2)"
    assert ana.delete(f"/hub/v1/machines/{first['machine']}").status_code == 204
    assert join(ana)["machine_name"] == "vm"
    # A name is as long as one may be, also with its number.
    long = "m" * 200
    assert [join(ana, long)["machine_name"] for _ in range(2)] == [long, f"{long[:196]} (2)"]


def test_a_machine_joins_by_a_code_in_the_browser(new_hub: Hub) -> None:
    ana, machine = new_hub.browser("Ana", "owner"), new_hub.client()
    asked = machine.post("/hub/v1/device", json={"machine": "laptop", "platform": "linux"}).json()
    assert asked["verification_uri"].endswith("/connect")
    poll = {"device_code": asked["device_code"]}
    answer = machine.post("/hub/v1/device/token", json=poll)
    assert (answer.status_code, answer.json()) == (400, {"error": "authorization_pending"})
    code = asked["user_code"].lower()
    assert ana.get(f"/hub/v1/device/{code}").json() == {"machine": "laptop", "platform": "linux"}
    assert ana.post(f"/hub/v1/device/{code}", json={"allow": True}).status_code == 200
    joined = machine.post("/hub/v1/device/token", json=poll).json()
    assert joined["user"] == new_hub.ids["Ana"]
    assert joined["access_token"].startswith("tlm_")
    assert machine.post("/hub/v1/device/token", json=poll).json() == {"error": "expired_token"}
    laptop = new_hub.client(joined["access_token"])
    assert sorted(laptop.get("/hub/v1/me").json()["scopes"]) == ["push", "read"]
    assert laptop.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).status_code == 403
    assert ana.delete(f"/hub/v1/machines/{joined['machine']}").status_code == 204
    assert laptop.get("/hub/v1/me").status_code == 401


def test_a_machine_that_is_refused_gets_the_reason(new_hub: Hub) -> None:
    ana, machine = new_hub.browser("Ana", "owner"), new_hub.client()
    asked = machine.post("/hub/v1/device", json={"machine": "laptop"}).json()
    ana.post(f"/hub/v1/device/{asked['user_code']}", json={"allow": False})
    answer = machine.post("/hub/v1/device/token", json={"device_code": asked["device_code"]})
    assert answer.json() == {"error": "access_denied"}


def test_a_machine_that_polls_too_often_is_slowed(new_hub: Hub) -> None:
    machine = new_hub.client()
    poll = {"device_code": machine.post("/hub/v1/device", json={"machine": "laptop"}).json()["device_code"]}
    answers = [machine.post("/hub/v1/device/token", json=poll).json()["error"] for _ in range(2)]
    assert answers == ["authorization_pending", "slow_down"]


def test_a_viewer_connects_no_machine(new_hub: Hub) -> None:
    vic, machine = new_hub.browser("Vic", "viewer"), new_hub.client()
    asked = machine.post("/hub/v1/device", json={"machine": "laptop"}).json()
    assert vic.post(f"/hub/v1/device/{asked['user_code']}", json={"allow": True}).status_code == 403


def test_guessing_is_throttled(new_hub: Hub) -> None:
    guesser, other = new_hub.client(peer="10.0.0.1"), new_hub.client(peer="10.0.0.2")
    body = {"code": "tli_wrong", "name": "x"}
    answers = [guesser.post("/hub/v1/invitations/accept", json=body) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [403] * 20 + [429]
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert other.post("/hub/v1/invitations/accept", json=body).status_code == 403


def test_a_link_of_a_browser_signs_another_one_in_once(new_hub: Hub) -> None:
    ana, phone = new_hub.browser("Ana", "owner"), new_hub.client()
    code = ana.post("/hub/v1/sign-in/links", json={}).json()["address"].partition("#code=")[2]
    assert phone.post("/hub/v1/sign-in", json={"code": code}).json()["user"]["name"] == "Ana"
    assert new_hub.client().post("/hub/v1/sign-in", json={"code": code}).status_code == 403
    assert phone.post("/hub/v1/sign-out", headers={"X-Turnlog-CSRF": "1"}).status_code == 204
    assert phone.get("/hub/v1/me").status_code == 401


@pytest.mark.parametrize("path", ["/api/sessions", "/api/status", "/hub/v1/me", "/hub/v1/members"])
def test_nobody_is_asked_to_sign_in(path: str, new_hub: Hub) -> None:
    """R-C16."""
    answer = new_hub.client().get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_teams_know_nothing_of_each_other(new_hub: Hub) -> None:
    """R-C6, R-C15."""
    ana = new_hub.browser("Ana", "owner")
    other = ana.post("/hub/v1/teams", json={"name": "Other"}).json()
    ben = new_hub.browser("Ben", "owner", team=int(other["id"]))
    session = save_session(ana, "a", "of team one")
    ana.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team"})
    assert ben.get(f"/api/sessions/{session}").status_code == 404
    assert ben.get("/api/sessions").json()["items"] == []
    assert [each["user"]["name"] for each in ben.get("/hub/v1/members").json()["items"]] == ["Ana", "Ben"]
    assert ben.post("/hub/v1/teams", json={"name": "Third"}).status_code == 403
