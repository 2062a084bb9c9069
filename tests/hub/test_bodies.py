"""Bodies that are JSON, and not what an address takes, are refused with the field."""

from __future__ import annotations

from support.hubs import Hub, save_session
from turnlog.hub.people.teams import Identity

NAMES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
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
)


def test_names_have_no_control_characters(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    save_session(ana, "a", "walnut")
    assert ana.post("/api/tasks", json={"name": "good", "id": "T-1"}).status_code == 201
    for method, path, field, others in NAMES:
        for character in ("\x1b", "\0", "\n", "\x7f", "\x9b", "\u2028", "\u202e"):
            wrong = f"a{character}b"
            body = {**others, field: [wrong] if field == "tags" else wrong}
            answer = ana.request(method, path, json=body)
            assert answer.status_code == 422, (path, wrong, answer.text)
            (detail,) = answer.json()["error"]["detail"]
            assert detail["field"].split(".")[0] == field
            assert f"U+{ord(character):04X}" in detail["reason"]
            assert character not in answer.text
    assert ana.post("/hub/v1/tokens", json={"name": "Olgas Rechner, 机器 🙂"}).status_code == 200


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
