"""Tokens: none becomes a browser, a machine, or more than it is itself, and what one made ends with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, hub, listening, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.hub.callers import ROLES
from turnlog.hub.scopes import OWNERS


def token(browser: TestClient, *scopes: str, days: int | None = 90) -> dict[str, Any]:
    """What a person's new token is, and its secret."""
    made = browser.post("/hub/v1/tokens", json={"name": "t", "scopes": list(scopes), "days": days})
    assert made.status_code == 200, made.text
    return {"token": made.json()["token"], **made.json()["item"]}


@pytest.mark.parametrize("scopes", [("push",), ("read",), ("push", "read", "admin")])
def test_no_token_becomes_a_browser(scopes: tuple[str, ...], new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    other = new_hub.browser("Zoe", "owner")
    secret = token(ana, *scopes)["token"]
    code = other.post("/hub/v1/invitations", json={"role": "member"}).json()["address"].partition("#code=")[2]
    bearer, cookie = new_hub.client(secret), new_hub.client(**{"X-Turnlog-CSRF": "1"})
    cookie.cookies.set("turnlog_browser", secret)
    cookie.cookies.set("turnlog_link", secret)
    for method, path, body in (
        ("POST", "/hub/v1/me/team", {"team": "1"}),
        ("GET", "/hub/v1/me/team", None),
        ("POST", "/hub/v1/sign-in/links", {}),
        ("POST", "/hub/v1/sign-in", {"code": secret}),
        ("POST", "/hub/v1/links/open", {"code": secret}),
        ("POST", "/hub/v1/invitations/accept", {"code": code, "name": "x"}),
        ("GET", "/sign-in", None),
        ("GET", "/join", None),
        ("GET", "/sign-in/openid", None),
    ):
        answer = bearer.request(method, path, json=body)
        assert "set-cookie" not in answer.headers, path
        assert "#code=" not in answer.text, path
    # A cookie holds what was made for a browser, and nothing else.
    assert cookie.get("/hub/v1/me").status_code == 401
    assert bearer.get("/hub/v1/me").status_code == 200
    # The invitation is as good as before.
    assert new_hub.client().post("/hub/v1/invitations/accept", json={"code": code, "name": "Ben"}).status_code == 200


def test_what_a_browser_holds_is_no_token(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "walnut")
    held = ana.cookies["turnlog_browser"]
    link = ana.post(f"/hub/v1/sessions/{session}/links", json={}).json()["address"].partition("#code=")[2]
    for secret in (held, link):
        assert new_hub.client(secret).get("/hub/v1/me").status_code == 401


@pytest.mark.parametrize("scopes", [("push",), ("push", "read"), ("push", "read", "admin")])
def test_no_token_connects_a_machine(scopes: tuple[str, ...], new_hub: Hub) -> None:
    ana, machine = new_hub.browser("Ana", "owner"), new_hub.client()
    program = new_hub.client(token(ana, *scopes)["token"])
    asked = machine.post("/hub/v1/device", json={"machine": "laptop"}).json()
    path = f"/hub/v1/device/{asked['user_code']}"
    assert program.get(path).status_code == 403
    assert program.post(path, json={"allow": True}).status_code == 403
    answer = machine.post("/hub/v1/device/token", json={"device_code": asked["device_code"]})
    assert answer.json() == {"error": "authorization_pending"}


def test_a_token_without_admin_changes_nothing_of_the_team(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    new_hub.browser("Ben")
    ben = new_hub.ids["Ben"]
    other = token(ana, "read")["id"]
    program = new_hub.client(token(ana, "push", "read")["token"])
    for method, path, body in (
        ("POST", "/hub/v1/tokens", {"name": "x", "scopes": ["read"]}),
        ("DELETE", f"/hub/v1/tokens/{other}", None),
        ("POST", "/hub/v1/invitations", {"role": "viewer"}),
        ("GET", "/hub/v1/invitations", None),
        ("PATCH", f"/hub/v1/members/{ben}", {"role": "admin"}),
        ("DELETE", f"/hub/v1/members/{ben}", None),
        ("DELETE", f"/hub/v1/members/{new_hub.ids['Ana']}", None),
        ("PATCH", "/hub/v1/team", {"name": "x"}),
        ("POST", "/hub/v1/teams", {"name": "x"}),
        ("PATCH", "/hub/v1/rules", {"visibility": "team"}),
        ("POST", "/hub/v1/rules/agreement", {"agrees": True}),
        ("DELETE", "/hub/v1/machines/m-1", None),
        ("GET", "/hub/v1/tokens?everybody=true", None),
        ("GET", "/hub/v1/machines?everybody=true", None),
    ):
        assert program.request(method, path, json=body).status_code == 403, (method, path)


def test_a_token_gives_no_more_than_it_has(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    new_hub.browser("Ben", "viewer")
    member = f"/hub/v1/members/{new_hub.ids['Ben']}"
    few, all_of_it = (
        new_hub.client(token(ana, *scopes)["token"]) for scopes in (("admin",), ("admin", "push", "read"))
    )
    assert few.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).status_code == 403
    for role in ("owner", "admin", "member", "viewer"):
        assert few.post("/hub/v1/invitations", json={"role": role}).status_code == 403
        assert few.patch(member, json={"role": role}).status_code == 403
    assert all_of_it.patch(member, json={"role": "member"}).status_code == 200
    assert all_of_it.post("/hub/v1/invitations", json={"role": "member"}).status_code == 200
    # Who is an owner or admin stays one when the token has ended.
    for role in ("owner", "admin"):
        assert all_of_it.post("/hub/v1/invitations", json={"role": role}).status_code == 403


def test_an_invitation_makes_nobody_more_than_who_invited_is_by_then(new_hub: Hub) -> None:
    ana, zoe = new_hub.browser("Ana", "owner"), new_hub.browser("Zoe", "owner")
    code = zoe.post("/hub/v1/invitations", json={"role": "owner"}).json()["address"].partition("#code=")[2]
    assert ana.patch(f"/hub/v1/members/{new_hub.ids['Zoe']}", json={"role": "admin"}).status_code == 200
    answer = new_hub.client().post("/hub/v1/invitations/accept", json={"code": code, "name": "Ben"})
    assert answer.status_code == 403


def test_what_a_token_made_ends_with_it(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "walnut")
    first = token(ana, "push", "read", "admin", days=1)
    program = new_hub.client(first["token"])
    links = f"/hub/v1/sessions/{session}/links"
    second = program.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read", "push"], "days": None}).json()
    invitation = program.post("/hub/v1/invitations", json={"role": "member"}).json()
    link = program.post(links, json={"days": None}).json()
    # None of them lives longer than what it was made with.
    assert {each["expires_at"] for each in (second["item"], invitation, link)} == {first["expires_at"]}
    later = new_hub.client(second["token"]).post(links, json={"days": None}).json()
    guests = [new_hub.client(**{"X-Turnlog-CSRF": "1"}) for _ in range(2)]
    codes = [each["address"].partition("#code=")[2] for each in (link, later, invitation)]
    for guest, code in zip(guests, codes, strict=False):
        assert guest.post("/hub/v1/links/open", json={"code": code}).status_code == 200
    own = ana.post(links, json={"days": None}).json()
    assert own["expires_at"] is None
    assert ana.delete(f"/hub/v1/tokens/{first['id']}").status_code == 204
    for guest in (*guests, new_hub.client(second["token"])):
        assert guest.get(f"/api/sessions/{session}").status_code == 401
    answer = new_hub.client().post("/hub/v1/invitations/accept", json={"code": codes[2], "name": "x"})
    assert answer.status_code == 403
    # What she made in her browser stays.
    code = own["address"].partition("#code=")[2]
    assert new_hub.client().post("/hub/v1/links/open", json={"code": code}).status_code == 200


def test_a_token_that_only_pushes_writes_and_is_told_nothing(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "walnut", cwd="/home/ana/shop")
    program = new_hub.client(token(ana, "push")["token"])
    call = {"type": "tool-call", "tool_call_id": "c", "tool_name": "t"}
    message = {"id": "new", "role": "user", "parts": [{"type": "text", "text": "x"}]}
    path = f"/api/sessions/{session}"
    for method, where, body in (
        ("POST", "/api/sessions", {"external_id": "a"}),
        ("PATCH", path, {"starred": True}),
        ("PUT", f"{path}/ownership", {"task": "t1"}),
        ("POST", f"{path}/messages", {"messages": [message]}),
        ("POST", f"{path}/tool-calls", {"message_id": "a-2", "call": call}),
        ("POST", f"{path}/forget", {"dry_run": True}),
        ("POST", "/api/tasks", {"id": "t1", "name": "walnut"}),
    ):
        answer = program.request(method, where, json=body)
        assert (answer.status_code, answer.content) == (204, b""), where
    assert program.post(f"/hub/v1/sessions/{session}/links", json={}).status_code == 403
    assert program.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team"}).status_code == 403
    assert program.put(f"/hub/v1/sessions/{session}/trash").status_code == 403
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert program.post("/api/mcp?all_projects=true", json=asked).status_code == 403
    assert ana.get(path).json()["session"]["annotations"]["starred"] is True


def test_a_token_that_reads_asks_through_mcp(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "walnut")
    arguments = {"name": "search_history", "arguments": {"query": "walnut"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
    program = new_hub.client(token(ana, "read")["token"], Accept="application/json, text/event-stream")
    answer = program.post("/api/mcp?all_projects=true", json=body)
    assert answer.status_code == 200
    assert session in answer.text


@pytest.fixture
def running(databases: PostgresDatabases, tmp_path: Path) -> Iterator[tuple[Hub, str]]:
    with hub(databases, tmp_path) as found, listening(found) as address:
        yield found, address


class Stream:
    """What somebody is sent, until it ends."""

    def __init__(self, address: str, path: str, *, token: str = "", cookies: dict[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self.is_over = threading.Event()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx2.Client(base_url=address, headers=headers, cookies=cookies, timeout=30)
        self._path = path
        threading.Thread(target=self._read, daemon=True).start()
        end = time.monotonic() + 20
        while not any("ready" in line for line in self.lines):
            assert time.monotonic() < end
            time.sleep(0.02)

    def _read(self) -> None:
        with self._client as client, client.stream("GET", self._path) as answer:
            for line in answer.iter_lines():
                self.lines.append(line)
        self.is_over.set()


def test_streams_end_with_what_they_are_read_with(running: tuple[Hub, str]) -> None:
    found, address = running
    ana = found.browser("Ana", "owner")
    session = save_session(ana, "a", "walnut")
    read = token(ana, "read")
    machine, _ = found.people.secrets.make("machine", team=1, user=found.ids["Ana"], machine="m-1", scopes=("read",))
    found.row(
        "INSERT INTO turnlog.machines (team_key, id, user_id, name, created_at) VALUES (1, 'm-1', %s, 'x', 0)"
        " RETURNING 1",
        found.ids["Ana"],
    )
    link = ana.post(f"/hub/v1/sessions/{session}/links", json={}).json()
    code = link["address"].partition("#code=")[2]
    held = dict(ana.cookies)
    short, _ = found.people.secrets.make("personal", team=1, user=found.ids["Ana"], scopes=("read",), seconds=3)
    streams = {
        # The first, before it expires on a slow machine.
        "expired": Stream(address, "/api/events", token=short),
        "token": Stream(address, "/api/events", token=read["token"]),
        "machine": Stream(address, "/api/events", token=machine),
        "link": Stream(address, f"/api/sessions/{session}/events", cookies={"turnlog_link": code}),
        "browser": Stream(address, "/api/events", cookies=held),
    }
    assert streams["expired"].is_over.wait(15)
    assert ana.delete(f"/hub/v1/tokens/{read['id']}").status_code == 204
    assert ana.delete("/hub/v1/machines/m-1").status_code == 204
    assert ana.delete(f"/hub/v1/sessions/{session}/links/{link['id']}").status_code == 204
    for name in ("token", "machine", "link"):
        assert streams[name].is_over.wait(15), name
    assert not streams["browser"].is_over.is_set()
    assert ana.post("/hub/v1/sign-out").status_code == 204
    assert streams["browser"].is_over.wait(15)
    assert not any("walnut" in line for stream in streams.values() for line in stream.lines)


def test_refusals_name_the_field_or_the_scope_in_plain_words(new_hub: Hub) -> None:
    olga = new_hub.browser("Olga", "owner")
    made = olga.post("/hub/v1/tokens", json={"name": "t", "scopes": []})
    assert made.status_code == 422
    assert made.json()["error"]["detail"] == [{"field": "scopes", "reason": "is empty"}]
    session = save_session(olga, "a", "a hat")
    shown = olga.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "people", "people": ["nobody"]})
    assert (shown.status_code, shown.json()["error"]["type"]) == (422, "invalid_parameter")
    reason = "nobody in the team has the id nobody"
    assert shown.json()["error"]["detail"] == [{"field": "people", "reason": reason}]
    reader = new_hub.client(token(olga, "read")["token"])
    refused = reader.patch("/hub/v1/rules", json={"retention_days": 9})
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, "this takes the scope admin")


def test_whose_token_has_ended_is_told_so_as_whoever_made_one_up(new_hub: Hub) -> None:
    olga = new_hub.browser("Olga", "owner")
    ended = token(olga, "read", days=1)
    new_hub.row("UPDATE turnlog.secrets SET expires_at = 1 WHERE id = %s RETURNING 1", ended["id"])
    for secret in (ended["token"], "tlp_madeup"):
        refused = new_hub.client(secret).get("/api/sessions")
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert refused.json()["error"]["message"] == "the token is wrong, has ended or was revoked"
    assert new_hub.client().get("/api/sessions").json()["error"]["message"] == "sign in, or send a token"


def test_where_a_role_is_missing_the_role_is_named(new_hub: Hub) -> None:
    browsers = {role: new_hub.browser(role.title(), role) for role in ROLES}
    session = save_session(browsers["owner"], "a", "a hat")

    def refusal(who: TestClient, method: str, path: str) -> str:
        answer = who.request(method, path, json={})
        assert answer.status_code == 403, answer.text
        return answer.json()["error"]["message"]

    assert refusal(browsers["member"], "PATCH", "/hub/v1/rules") == "this takes the role owner; yours is member"
    members = new_hub.client(token(browsers["member"], "push")["token"])
    wanted = "this takes the role owner or admin; yours is member"
    assert [refusal(each, "POST", "/hub/v1/invitations") for each in (browsers["member"], members)] == [wanted] * 2
    wanted = "this takes the role owner, admin or member; yours is viewer"
    assert refusal(browsers["viewer"], "POST", "/api/sessions") == wanted
    # Who has the role is told the scope, which the token lacks.
    assert refusal(members, "GET", "/api/sessions") == "this takes the scope read"
    link = browsers["owner"].post(f"/hub/v1/sessions/{session}/links", json={}).json()["address"]
    guest = new_hub.client(**{"X-Turnlog-CSRF": "1"})
    guest.post("/hub/v1/links/open", json={"code": link.partition("#code=")[2]})
    assert refusal(guest, "PATCH", "/hub/v1/rules") == "this link shows one session, and nothing else"
    for operation in OWNERS:
        assert refusal(browsers["admin"], *operation.split()) == "this takes the role owner; yours is admin"


def test_whose_link_has_ended_is_sent_to_the_page_that_says_so(new_hub: Hub) -> None:
    olga = new_hub.browser("Olga", "owner")
    session = save_session(olga, "a", "a hat")
    link = olga.post(f"/hub/v1/sessions/{session}/links", json={"days": 1}).json()
    guest = new_hub.client(**{"X-Turnlog-CSRF": "1"})
    guest.post("/hub/v1/links/open", json={"code": link["address"].partition("#code=")[2]})
    assert guest.get(f"/api/sessions/{session}").status_code == 200
    new_hub.row("UPDATE turnlog.secrets SET expires_at = 1 WHERE id = %s RETURNING 1", link["id"])
    refused = guest.get(f"/api/sessions/{session}")
    assert (refused.status_code, refused.headers["X-Turnlog-Sign-In"]) == (401, "/shared")
    # Somebody who was signed in as well signs in again.
    guest.cookies.set("turnlog_browser", "tlb_old")
    assert guest.get(f"/api/sessions/{session}").headers["X-Turnlog-Sign-In"] == "/sign-in"
    assert new_hub.client().get(f"/api/sessions/{session}").headers["X-Turnlog-Sign-In"] == "/sign-in"
