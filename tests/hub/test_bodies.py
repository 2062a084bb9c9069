"""Bodies that are JSON, and not what an address takes, are refused with the field."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from support.hubs import Hub, save_session
from turnlog.hub.people.teams import Identity

NAMES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("PATCH", "/hub/v1/team", "name", {}),
    ("POST", "/hub/v1/teams", "name", {}),
    ("POST", "/hub/v1/tokens", "name", {}),
    ("POST", "/hub/v1/invitations", "note", {}),
    ("POST", "/hub/v1/invitations/accept", "name", {"code": "x"}),
    ("POST", "/hub/v1/device", "machine", {}),
    ("POST", "/hub/v1/device", "platform", {"machine": "laptop"}),
    ("POST", "/api/tasks", "name", {}),
    ("PATCH", "/api/tasks/T-1", "name", {}),
    ("PATCH", "/api/projects", "name", {"path": "/a"}),
    ("PATCH", "/api/sessions/turnlog:a", "tags", {}),
    ("PATCH", "/api/sessions/turnlog:a", "title", {}),
    ("POST", "/hub/v1/budgets", "subject", {"scope": "project", "limit": 5}),
    *(("POST", "/api/sessions", field, {"external_id": "b"}) for field in ("title", "cwd", "git_branch")),
    *(("PUT", "/api/sessions/turnlog:a/ownership", field, {}) for field in ("machine", "task")),
    *(("POST", "/api/sessions", f"ownership.{field}", {"external_id": "b"}) for field in ("machine", "task")),
)


def test_names_have_no_control_characters(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    save_session(ana, "a", "walnut")
    assert ana.post("/api/tasks", json={"name": "good", "id": "T-1"}).status_code == 201
    for method, path, field, others in NAMES:
        for character in ("\x1b", "\0", "\n", "\x7f", "\x9b", "\u2028", "\u202e"):
            wrong = f"a{character}b"
            body: dict[str, Any] = {**others, field: [wrong] if field == "tags" else wrong}
            if field.startswith("ownership."):
                body = {**others, "ownership": {field.partition(".")[2]: wrong}}
            answer = ana.request(method, path, json=body)
            assert answer.status_code == 422, (path, wrong, answer.text)
            (detail,) = answer.json()["error"]["detail"]
            assert field in (detail["field"], detail["field"].split(".")[0])
            assert f"U+{ord(character):04X}" in detail["reason"]
            assert character not in answer.text
    assert ana.post("/hub/v1/tokens", json={"name": "Olgas Rechner, 机器 🙂"}).status_code == 200
    assert ana.patch("/api/sessions/turnlog:a", json={"note": "one\n\ttwo"}).status_code == 200
    assert ana.patch("/api/sessions/turnlog:a", json={"note": "one\x1b"}).status_code == 422


NUMBERS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("PATCH", "/hub/v1/team", "smallest_group", {}),
    ("POST", "/hub/v1/tokens", "days", {"name": "x"}),
    ("POST", "/hub/v1/sessions/turnlog:a/links", "days", {}),
    ("PATCH", "/hub/v1/rules", "retention_days", {}),
    ("POST", "/hub/v1/budgets", "limit", {"scope": "team"}),
)


def test_numbers_are_numbers(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    save_session(ana, "a", "walnut")
    for method, path, field, others in NUMBERS:
        for wrong in (True, "1"):
            answer = ana.request(method, path, json={**others, field: wrong})
            assert answer.status_code == 422, (path, wrong, answer.text)
            (detail,) = answer.json()["error"]["detail"]
            assert detail["field"] == field
            assert detail["reason"] in ("expected a whole number", "expected a number")
        assert ana.request(method, path, json={**others, field: 30}).status_code == 200, path


def test_what_is_wrong_is_said_in_plain_words(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    save_session(ana, "a", "walnut")
    for path, body, said in (
        ("/hub/v1/tokens", {"name": ""}, "cannot be used: name: is empty"),
        (
            "/hub/v1/sessions/turnlog:a/sharing",
            {"visibility": "people"},
            "cannot be used: body: name people with the visibility people, and with no other",
        ),
    ):
        answer = ana.request("PUT" if "sharing" in path else "POST", path, json=body)
        assert (answer.status_code, answer.json()["error"]["message"]) == (422, said)


def test_an_id_of_a_message_is_free_for_everybody_who_has_not_used_it(new_hub: Hub) -> None:
    """Else who asks learns that somebody hidden has it, and who is first keeps it from all others."""
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")

    def save(client: TestClient, session: str, id: str, text: str) -> int:
        assert client.post("/api/sessions", json={"external_id": session}).status_code in (200, 201)
        part = {"type": "text", "text": text}
        body = {"messages": [{"id": id, "role": "user", "parts": [part]}]}
        return client.post(f"/api/sessions/turnlog:{session}/messages", json=body).status_code

    def column(name: str) -> dict[str, list[str]]:
        return {session: [row[0] for row in new_hub.rows(PLACES.format(name), session)] for session in ("a", "b")}

    assert [save(ana, "a", "same", "of Ana"), save(ben, "b", "same", "of Ben"), save(ben, "b", "free", "x")] == [
        200
    ] * 3
    assert column("m.text_preview") == {"a": ["of Ana"], "b": ["of Ben", "x"]}
    # Saving again replaces one's own.
    assert save(ana, "a", "same", "of Ana, again") == 200
    assert column("m.text_preview") == {"a": ["of Ana, again"], "b": ["of Ben", "x"]}
    assert save(ana, "c", "same", "in another session") == 409
    retracted = ben.post("/api/sessions/turnlog:b/messages", json={"retracted": ["same"]})
    assert retracted.status_code == 200
    assert column("p.fate") == {"a": ["active"], "b": ["retracted", "active"]}
    answer = ben.post("/api/sessions/turnlog:b/messages", json={"messages": [{"id": "x\x1fy", "role": "user"}]})
    assert answer.status_code == 422
    assert answer.json()["error"]["detail"][0]["field"] == "messages.0.id"


PLACES = (
    "SELECT {} FROM turnlog.memberships p JOIN turnlog.sessions s ON s.key = p.session_key"
    " JOIN turnlog.messages m ON m.key = p.message_key WHERE s.external_id = %s ORDER BY p.position"
)


def test_a_name_that_a_provider_says_is_made_one_line(new_hub: Hub) -> None:
    assert new_hub.people.known_by_proxy("Olga\x1b[2J\nRoot", "member") is not None
    new_hub.browser("Ana", "owner")
    assert new_hub.row("SELECT count(*) FROM turnlog.users WHERE name = 'Olga Root'") == (1,)
    identity = Identity(provider="p", subject="1", name="Ida", email="ida\x07@example.org")
    teams = new_hub.people.teams
    assert teams.join(identity, "member").email == "ida@example.org"
    later = teams.known_by(Identity(provider="p", subject="1", name="Ida\x1b[2J\nRoot\u202e"))
    assert later is not None
    assert later.name == "Ida Root"


SHAPES = ("[]", "5", '"text"', "null", "[{}]", '{"unknown": 1}', '{"name": {"a": []}, "scope": 5, "messages": 7}')


def test_sound_json_of_a_wrong_shape_names_the_field(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    save_session(ana, "a", "walnut")
    schema = ana.get("/openapi.json").json()
    seen = 0
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" not in content or "/mcp" in path:
                continue
            address = path.replace("{session_id}", "turnlog:a").replace("{task_id}", "T-1")
            for body in SHAPES:
                headers = {"Content-Type": "application/json"}
                answer = ana.request(method.upper(), address, content=body, headers=headers)
                if answer.status_code in (403, 404, 409):  # nothing is there, or may be done: said before
                    continue
                assert answer.status_code == 422, (method, path, body, answer.status_code, answer.text)
                detail = answer.json()["error"]["detail"]
                assert detail, (method, path, body, answer.text)
                assert all(each["field"] for each in detail), (method, path, body, answer.text)
                seen += 1
    assert seen > 100
