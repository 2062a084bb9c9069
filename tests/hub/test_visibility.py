"""Who sees what: nobody but the owner by default, admins neither; and who did is in the owner's audit log."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, hub, listening, save_counted, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.hub import contexts

WORD = "xylophone"


class Team:
    """Ana, who has a session, her colleague Ben, and an admin."""

    def __init__(self, found: Hub) -> None:
        self.hub = found
        self.ana = found.browser("Ana")
        self.ben = found.browser("Ben")
        self.admin = found.browser("Zoe", "owner")
        self.session = save_session(self.ana, "a", WORD, cwd="/home/ana/secret-project")

    def share(self, visibility: str, *people: str) -> None:
        body: dict[str, Any] = {"visibility": visibility, "people": [self.hub.ids[name] for name in people]}
        answer = self.ana.put(f"/hub/v1/sessions/{self.session}/sharing", json=body)
        assert answer.status_code == 200, answer.text


@pytest.fixture
def team(new_hub: Hub) -> Team:
    return Team(new_hub)


def reads(client: httpx2.Client, session: str) -> list[int]:
    """What a client is answered that tries every way to a session."""
    paths = (
        *(f"/api/sessions/{session}", f"/api/sessions/{session}/window", f"/api/sessions/{session}/export?as=json"),
        *(f"/api/sessions/{session}/outline", f"/api/sessions/{session}/ui-messages", "/api/messages/a-1"),
        *(f"/api/sessions/{session}/replay", "/api/messages/a-2/raw", f"/hub/v1/sessions/{session}/sharing"),
    )
    return [client.get(path).status_code for path in paths]


def everything(client: httpx2.Client) -> str:
    """All that lists and sums answer."""
    paths = (
        *("/api/sessions?subagents=true", "/api/projects", "/api/models", "/api/agents", "/api/usage?by=session"),
        *("/api/usage?by=project", "/api/insights", "/api/tool-calls", "/api/tools", "/api/files?path=/home/ana"),
        *("/api/files/touched", "/api/runs", "/api/diagnostics", "/api/status", f"/api/search?q={WORD}"),
        *(f"/api/search?q={WORD}&flat=true&sort=newest", "/api/search?q=&sort=newest", "/api/search?q=xylophon"),
    )
    answers = [client.get(path) for path in paths]
    assert {answer.status_code for answer in answers} <= {200, 422}
    return "".join(answer.text for answer in answers)


def test_nobody_but_the_owner_sees_a_session_at_first(team: Team) -> None:
    """R-C15."""
    assert set(reads(team.ana, team.session)) == {200}
    assert WORD in everything(team.ana)
    for other in (team.ben, team.admin):
        assert set(reads(other, team.session)) == {404}
        seen = everything(other)
        assert WORD not in seen
        assert "secret-project" not in seen
        assert team.session not in seen


def test_what_is_not_yours_is_answered_like_what_is_not_there(team: Team) -> None:
    for path in ("/api/sessions/{}", "/api/sessions/{}/window", "/hub/v1/sessions/{}/sharing"):
        one, other = (team.ben.get(path.format(id)) for id in (team.session, "turnlog:nobody"))
        assert one.status_code == other.status_code == 404
        assert one.text.replace(team.session, "X") == other.text.replace("turnlog:nobody", "X")
        assert dict(one.headers) | {"content-length": ""} == dict(other.headers) | {"content-length": ""}


def test_a_session_is_shown_to_the_people_that_were_named(team: Team) -> None:
    other = save_session(team.ana, "b", "another")
    team.share("people", "Ben")
    assert set(reads(team.ben, team.session)) == {200}
    assert set(reads(team.admin, team.session)) == {404}
    assert team.ben.get(f"/api/sessions/{other}").status_code == 404
    found = team.ben.get(f"/api/search?q={WORD}").json()
    assert [each["session"]["id"] for each in found["items"]] == [team.session]
    assert [each["session"]["user"] for each in found["items"]] == [team.hub.ids["Ana"]]
    # The size of the database, and its name, are of all teams.
    counts = team.ben.get("/api/status").json()["store"]
    assert (counts["sessions"], counts["file_size"], counts["path"]) == (1, None, "")


def test_a_session_that_is_taken_back_is_gone_at_once(team: Team) -> None:
    team.share("team")
    assert set(reads(team.ben, team.session)) == {200}
    assert WORD in everything(team.ben)
    team.share("private")
    assert set(reads(team.ben, team.session)) == {404}
    assert WORD not in everything(team.ben)


def test_a_link_shows_one_session_until_it_is_taken_back(team: Team) -> None:
    other = save_session(team.ana, "b", "another")
    made = team.ana.post(f"/hub/v1/sessions/{team.session}/links", json={"days": 1}).json()
    code = made["address"].partition("#code=")[2]
    guest = team.hub.client(**{"X-Turnlog-CSRF": "1"})
    assert guest.post("/hub/v1/links/open", json={"code": code}).json() == {"session": team.session}
    assert guest.get(f"/api/sessions/{team.session}/window").status_code == 200
    assert guest.get("/hub/v1/me").json()["session"] == team.session
    assert guest.get(f"/api/sessions/{other}").status_code == 404
    assert guest.get("/hub/v1/members").status_code == 403
    assert guest.post("/api/sessions", json={"external_id": "x"}).status_code == 403
    assert team.ana.delete(f"/hub/v1/sessions/{team.session}/links/{made['id']}").status_code == 204
    assert guest.get(f"/api/sessions/{team.session}/window").status_code == 401
    assert team.hub.client().post("/hub/v1/links/open", json={"code": code}).status_code == 404


def test_a_link_ends_when_the_session_is_private_again(team: Team) -> None:
    code = team.ana.post(f"/hub/v1/sessions/{team.session}/links", json={}).json()["address"].partition("#code=")[2]
    team.share("private")
    assert team.hub.client().post("/hub/v1/links/open", json={"code": code}).status_code == 404


def test_a_link_to_a_session_that_is_gone_opens_nothing(team: Team) -> None:
    code = team.ana.post(f"/hub/v1/sessions/{team.session}/links", json={}).json()["address"].partition("#code=")[2]
    assert team.ana.delete(f"/api/sessions/{team.session}").status_code == 204
    assert team.hub.client().post("/hub/v1/links/open", json={"code": code}).status_code == 404


def test_a_link_expires(team: Team) -> None:
    code, link = team.hub.people.sharing.make_link(1, team.session, team.hub.ids["Ana"], seconds=60)
    guest = team.hub.client(**{"X-Turnlog-CSRF": "1"})
    assert guest.post("/hub/v1/links/open", json={"code": code}).status_code == 200
    team.hub.row("UPDATE turnlog.secrets SET expires_at = 1 WHERE id = %s RETURNING 1", link.id)
    assert guest.get(f"/api/sessions/{team.session}").status_code == 401


def test_only_its_owner_changes_a_session(team: Team) -> None:
    """R-C14."""
    team.share("team")
    message = {"id": "new", "role": "user", "parts": [{"type": "text", "text": "x"}]}
    call = {"type": "tool-call", "tool_call_id": "c", "tool_name": "t"}
    path = f"/api/sessions/{team.session}"
    for status in (403, 404):
        for other in (team.ben, team.admin):
            answers = [
                other.patch(path, json={"title": "mine now"}),
                other.post(f"{path}/messages", json={"messages": [message]}),
                other.post(f"{path}/tool-calls", json={"message_id": "a-2", "call": call}),
                other.put(f"{path}/ownership", json={"user": "ben"}),
                other.post(f"{path}/forget", json={"dry_run": True}),
                other.post(f"{path}/forget", json={"dry_run": False}),
                other.delete(path),
                other.put(f"/hub/v1/sessions/{team.session}/sharing", json={"visibility": "team"}),
                other.post(f"/hub/v1/sessions/{team.session}/links", json={}),
            ]
            assert [answer.status_code for answer in answers] == [status] * 9
        team.share("private")
    assert team.ben.post("/api/sessions", json={"external_id": "a", "title": "mine"}).status_code == 409
    assert team.ana.get(path).json()["session"]["title"] == f"title of {WORD}"


def test_nobody_names_somebody_else_as_an_owner(team: Team) -> None:
    ana, ben = team.hub.ids["Ana"], team.hub.ids["Ben"]
    answer = team.ana.put(f"/api/sessions/{team.session}/ownership", json={"user": ben, "task": "t1"})
    assert answer.json()["ownership"] == {"user": ana, "task": "t1"}
    team.ana.post("/api/sessions", json={"external_id": "b", "ownership": {"user": ben, "team": "x", "task": "t1"}})
    found = team.ana.get(f"/api/sessions?user={ana}&task=t1").json()
    assert found["total"] == 2
    assert team.ana.get(f"/api/sessions?user={ben}").status_code == 422  # no session has this user


def test_its_owner_sees_who_read_a_session(team: Team) -> None:
    team.share("people", "Ben")
    team.ben.get(f"/api/sessions/{team.session}/window")
    team.ben.get("/api/messages/a-1")
    team.ben.get(f"/api/search?q={WORD}")
    team.ana.get(f"/api/sessions/{team.session}/window")
    page = team.ana.get("/hub/v1/audit").json()
    ben = team.hub.ids["Ben"]
    assert page["names"][ben] == "Ben"
    assert page["names"][team.session] == f"title of {WORD}"
    entries = {(each["actor"], each["action"], each["subject"]): each["times"] for each in page["items"]}
    assert entries[ben, "read", team.session] == 2
    assert entries[ben, "search", team.session] == 1
    assert (team.hub.ids["Ana"], "read", team.session) not in entries
    # What was read of whom is nobody else's business.
    for other in (team.ben, team.admin):
        assert team.session not in other.get("/hub/v1/audit").text
    assert team.session not in team.admin.get("/hub/v1/audit/team").text


def test_a_forgotten_session_is_gone_from_search_and_its_id_stays_taken(team: Team) -> None:
    team.share("team")
    assert WORD in everything(team.ben)
    assert team.ana.post(f"/api/sessions/{team.session}/forget", json={"dry_run": False}).status_code == 200
    assert WORD not in everything(team.ben)
    assert WORD not in everything(team.ana)
    assert team.ben.post("/api/sessions", json={"external_id": "a"}).status_code == 409


def test_the_audit_log_names_to_whom_a_session_was_shown(team: Team) -> None:
    team.share("people", "Ben")
    page = team.ana.get("/hub/v1/audit?action=share").json()
    (entry,) = page["items"]
    assert [page["names"].get(word, word) for word in entry["detail"].split()] == ["people", "Ben"]


def test_the_audit_log_names_sessions_that_are_there_also_without_a_title(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    for name in ("plain", "gone"):
        assert ana.post("/api/sessions", json={"external_id": name}).status_code == 201
        share = {"visibility": "team"}
        assert ana.put(f"/hub/v1/sessions/turnlog:{name}/sharing", json=share).status_code == 200
    assert ana.delete("/api/sessions/turnlog:gone").status_code == 204
    names = ana.get("/hub/v1/audit").json()["names"]
    assert names.get("turnlog:plain") == "turnlog:plain"
    assert "turnlog:gone" not in names


def test_what_is_forgotten_is_in_the_audit_log_of_its_owner(team: Team) -> None:
    def entries() -> list[tuple[str, str]]:
        found = team.ana.get("/hub/v1/audit?action=forget session").json()["items"]
        return [(entry["subject"], entry["actor"]) for entry in found]

    forget = f"/api/sessions/{team.session}/forget"
    team.share("team")
    assert team.ana.post(forget, json={"dry_run": True}).status_code == 200
    assert team.ben.post(forget, json={"dry_run": False}).status_code == 403
    assert entries() == []
    assert team.ana.post(forget, json={"dry_run": False}).status_code == 200
    other = save_session(team.ana, "other", "words")
    assert team.ana.delete(f"/api/sessions/{other}").status_code == 204
    ana = team.hub.ids["Ana"]
    assert entries() == [(other, ana), (team.session, ana)]


def test_mcp_shows_what_its_caller_may_read(team: Team) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_history", "arguments": {"query": WORD}},
    }
    headers = {"Accept": "application/json, text/event-stream"}
    answers = {
        name: client.post("/api/mcp?all_projects=true", json=body, headers=headers)
        for name, client in (("ana", team.ana), ("ben", team.ben), ("admin", team.admin))
    }
    assert {answer.status_code for answer in answers.values()} == {200}, {
        name: answer.text for name, answer in answers.items()
    }
    assert team.session in answers["ana"].text
    assert team.session not in answers["ben"].text + answers["admin"].text


def streamed(base: str, cookies: dict[str, str], path: str, lines: list[str], ended: threading.Event) -> None:
    with httpx2.Client(base_url=base, cookies=cookies, timeout=20) as client, client.stream("GET", path) as answer:
        for line in answer.iter_lines():
            lines.append(line)
    ended.set()


@pytest.fixture
def running(databases: PostgresDatabases, tmp_path: Path) -> Iterator[tuple[Team, str]]:
    """A team on a hub that listens on a port: the test client has no streams."""
    with hub(databases, tmp_path) as found, listening(found) as address:
        yield Team(found), address


@pytest.fixture
def no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a notification of the database brings a change in time."""
    monkeypatch.setattr(contexts, "POLL_SECONDS", 60)


@pytest.mark.usefixtures("no_polls")
def test_changes_come_live_to_those_who_may_read_and_end_with_that(running: tuple[Team, str]) -> None:
    team, base = running
    team.share("people", "Ben")
    lines: dict[str, list[str]] = {"Ben": [], "Zoe": []}
    ended = {name: threading.Event() for name in lines}
    clients: dict[str, TestClient] = {"Ben": team.ben, "Zoe": team.admin}
    for name, client in clients.items():
        threading.Thread(
            target=streamed,
            args=(base, dict(client.cookies), "/api/events", lines[name], ended[name]),
            daemon=True,
        ).start()
    wait_for(lambda: all(any("ready" in line for line in found) for found in lines.values()))
    team.ana.patch(f"/api/sessions/{team.session}", json={"title": "seen live"})
    wait_for(lambda: any("seen live" in line for line in lines["Ben"]))
    assert not any("seen live" in line or team.session in line for line in lines["Zoe"])
    team.admin.delete(f"/hub/v1/members/{team.hub.ids['Ben']}")
    assert ended["Ben"].wait(10)
    assert not ended["Zoe"].is_set()


def wait_for(holds: Any) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_numbers_of_changes_tell_nothing_of_what_is_hidden(new_hub: Hub) -> None:
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    save_session(ana, "hidden", "walnut")
    save_session(ana, "shown", "walnut")
    save_session(ana, "linked", "walnut")
    share = {"visibility": "people", "people": [new_hub.ids["Ben"]]}
    assert ana.put("/hub/v1/sessions/turnlog:shown/sharing", json=share).status_code == 200
    address = ana.post("/hub/v1/sessions/turnlog:linked/links", json={}).json()["address"]
    guest = new_hub.client(**{"X-Turnlog-CSRF": "1"})
    assert guest.post("/hub/v1/links/open", json={"code": address.partition("#code=")[2]}).status_code == 200
    window = "/api/sessions/turnlog:shown/window"
    again = new_hub.browser("Ben")

    def numbers(client: TestClient, session: str) -> list[object]:
        pages = [client.get(path).json()["change_sequence"] for path in ("/api/status", "/api/sessions")]
        return [*pages, client.get(f"/api/sessions/turnlog:{session}/window").headers["ETag"]]

    before = numbers(ben, "shown"), numbers(guest, "linked"), again.get("/api/status").json()["change_sequence"]
    assert again.get("/api/status").json()["change_sequence"] == 0
    for number in range(3):
        save_session(ana, f"more{number}", "walnut")
    save_session(ana, "hidden", "hazel")
    after = numbers(ben, "shown"), numbers(guest, "linked"), again.get("/api/status").json()["change_sequence"]
    assert after == before
    save_session(ana, "shown", "hazel")
    assert all(one != two for one, two in zip(numbers(ben, "shown"), before[0], strict=True))
    assert numbers(guest, "linked") == before[1]
    # What somebody may read no longer is not what they have, though no number has changed for them.
    etag = ben.get(window).headers["ETag"]
    assert ben.get(window, headers={"If-None-Match": etag}).status_code == 304
    assert ben.get("/api/status").json()["store"]["sessions"] == 1
    assert ana.put("/hub/v1/sessions/turnlog:shown/sharing", json={"visibility": "private"}).status_code == 200
    assert ben.get(window, headers={"If-None-Match": etag}).status_code == 404
    assert ben.get("/api/status").json()["store"]["sessions"] == 0


def test_team_figures_fold_small_groups(new_hub: Hub) -> None:
    owner = new_hub.browser("Olga", "owner")
    for number in range(5):
        person = new_hub.browser(f"P{number}")
        cwd = "/work/common" if number else "/work/alone"
        session = save_session(person, f"s{number}", "words", cwd=cwd)
        save_counted(person, session, f"u{number}", input=10, output=5)
    by_day = owner.get("/hub/v1/usage?by=day").json()
    assert by_day["totals"]["people"] == 5
    by_project = owner.get("/hub/v1/usage?by=project").json()
    # Four people and one: neither is shown, nor what remains without it.
    assert by_project["rows"] == []
    assert by_project["folded"]["people"] == 5
    assert owner.get("/hub/v1/usage?by=person").json()["rows"] == []
    assert "/work/alone" not in json.dumps(by_project)
    assert owner.patch("/hub/v1/team", json={"smallest_group": 1}).status_code == 200
    shown = owner.get("/hub/v1/usage?by=project").json()
    assert {row["name"]: row["sums"]["people"] for row in shown["rows"]} == {"/work/common": 4, "/work/alone": 1}
    assert sum(row["sums"]["tokens"] for row in shown["rows"]) == shown["totals"]["tokens"]
    # A session of two days is one session; a project of a machine that sends only numbers has no name.
    days = {row["name"]: row["sums"]["sessions"] for row in owner.get("/hub/v1/usage?by=day").json()["rows"]}
    assert len(days) == 2
    assert {*days.values()} == {days["2026-11-20"]} == {5}
    assert by_day["totals"]["sessions"] == 5
    new_hub.row("UPDATE turnlog.session_owners SET level = 'metrics' WHERE session_id = 'turnlog:s0' RETURNING 1")
    assert owner.get("/hub/v1/usage?by=project").json() == shown  # counted once a minute
    again = owner.get("/hub/v1/usage?by=project&since=2020-01-01").json()
    assert {row["name"]: row["sums"]["people"] for row in again["rows"]} == {"/work/common": 4, None: 1}
    assert new_hub.browser("Mia").get("/hub/v1/usage").status_code == 403


def test_lists_search_and_usage_are_filtered_by_person_and_machine(new_hub: Hub) -> None:
    ana, ben = new_hub.browser("Ana"), new_hub.browser("Ben")
    own: dict[str, str] = {}
    for client, name, machine, number in ((ana, "a", "laptop", 1), (ana, "b", "tower", 2), (ben, "c", "laptop", 4)):
        own[name] = save_session(client, name, WORD, ownership={"machine": machine})
        save_counted(client, own[name], f"{name}-u", input=number, output=5)
        client.put(f"/hub/v1/sessions/{own[name]}/sharing", json={"visibility": "team"})
    hidden = save_session(ana, "d", WORD, ownership={"machine": "phone"})
    people = ben.get("/hub/v1/people").json()["items"]
    assert [(each["name"], each["machines"], each["sessions"]) for each in people] == [
        ("Ana", ["laptop", "tower"], 2),
        ("Ben", ["laptop"], 1),
    ]
    wanted = {
        f"user={new_hub.ids['Ana']}": ("a", "b"),
        "machine=laptop": ("a", "c"),
        f"user={new_hub.ids['Ana']}&machine=laptop": ("a",),
        "": ("a", "b", "c"),
    }
    inputs = {"a": 1, "b": 2, "c": 4}
    for query, names in wanted.items():
        ids = {own[name] for name in names}
        assert {each["id"] for each in ben.get(f"/api/sessions?{query}").json()["items"]} == ids
        found = ben.get(f"/api/search?q={WORD}&{query}").json()["items"]
        assert {each["session"]["id"] for each in found} == ids
        hits = ben.get(f"/api/search?q={WORD}&sort=newest&{query}").json()["items"]
        assert {each["session"]["id"] for each in hits} == ids
        totals = ben.get(f"/api/usage?{query}").json()["totals"]
        assert totals["input"] == sum(inputs[name] for name in names)
    # A machine and a person of whom one sees nothing are answered as those that are not there.
    new_hub.browser("Mia")
    for name, others in (("machine", ("phone", "nope")), ("user", (new_hub.ids["Mia"], "Olga"))):
        for path in ("/api/sessions?", f"/api/search?q={WORD}&", "/api/usage?"):
            answers = [ben.get(f"{path}{name}={other}") for other in others]
            assert [answer.status_code for answer in answers] == [422, 422], (path, name)
            assert [answer.json()["error"]["detail"][0]["field"] for answer in answers] == [name, name]
            said = [answer.text.replace(other, "?") for answer, other in zip(answers, others, strict=True)]
            assert said[0] == said[1]
            assert hidden not in said[0]


def test_not_yours_and_not_there_ask_the_database_the_same(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    execute = psycopg.Cursor.execute

    def noting(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(query.decode() if isinstance(query, bytes) else str(query))
        return execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", noting)
    paths = (
        *("/api/sessions/{}", "/api/sessions/{}/window", "/api/sessions/{}/outline", "/api/sessions/{}/export?as=json"),
        *("/api/sessions/{}/replay", "/api/sessions/{}/files", "/api/sessions/{}/commits"),
        *("/hub/v1/sessions/{}/sharing", "/api/sessions?parent={}", "/api/search?q=x&session={}"),
    )
    for path in paths:
        work: list[list[str]] = []
        for id in (team.session, "turnlog:z"):
            for _ in range(2):  # the first time, something else may be remembered
                asked.clear()
                team.ben.get(path.format(id))
            work.append([query for query in asked if "audit" not in query])
        assert work[0] == work[1], path
        assert work[0], path


def test_a_person_is_told_which_of_their_sessions_others_may_read(team: Team) -> None:
    ana, ids = team.ana, team.hub.ids
    for name in ("to-ben", "linked", "unlinked", "private"):
        save_session(ana, name, WORD)
    address = "/hub/v1/sessions/turnlog:"
    team.share("team")
    ana.put(f"{address}to-ben/sharing", json={"visibility": "people", "people": [ids["Zoe"], ids["Ben"]]})
    for name in ("linked", "unlinked"):
        link = ana.post(f"{address}{name}/links", json={}).json()["id"]
    ana.delete(f"{address}unlinked/links/{link}")
    found = ana.get("/hub/v1/shared").json()
    assert {each["id"].partition(":")[2]: (each["visibility"], each["people"]) for each in found["items"]} == {
        "a": ("team", []),
        "to-ben": ("people", ["Ben", "Zoe"]),
        "linked": ("link", []),
    }
    assert found["new_sessions"] == "private"
    # What is taken back and comes again is shown to the same people.
    team.hub.rows("DELETE FROM turnlog.sessions WHERE external_id = 'to-ben' RETURNING 1")
    assert team.ben.get("/api/sessions/turnlog:to-ben").status_code == 404
    assert ana.get("/hub/v1/shared").json() == found
    assert team.admin.get("/hub/v1/shared").json()["items"] == []  # their own, whatever they may read
    team.admin.patch("/hub/v1/rules", json={"visibility": "team"})
    assert ana.get("/hub/v1/shared").json()["new_sessions"] == "private"
    ana.post("/hub/v1/rules/agreement", json={"agrees": True})
    assert ana.get("/hub/v1/shared").json()["new_sessions"] == "team"
