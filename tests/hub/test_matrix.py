"""Every address of the hub, asked by everybody: who may do what is a table, and nobody is answered more.

The addresses come from what the hub says of itself (OpenAPI). One that is not in the table fails the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, hub, save_session
from support.postgres_stores import PostgresDatabases

WORD: Final = "xylophone"

Who = Literal["owner of the session", "owner", "admin", "member", "viewer", "other team", "link", "machine", "nobody"]

EVERYBODY: Final[tuple[Who, ...]] = (
    *("owner of the session", "owner", "admin", "member", "viewer", "other team", "link", "machine", "nobody"),
)

Kind = Literal["open", "sums", "read", "own", "own sums", "person", "user", "push", "admin", "team", "new"]
"""Who may ask. `open`: anybody. `sums`: who reads, about what they see. `read`: who sees the session. `own`: the owner
of the session. `person`: members. `user`: members, by no machine. `push`: who pushes. `admin`: owners and admins.
`team`: owners."""

KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(
        (
            *("GET /hub/v1/sign-in", "POST /hub/v1/sign-in", "POST /hub/v1/sign-out", "POST /hub/v1/links/open"),
            *("POST /hub/v1/invitations/accept", "POST /hub/v1/device", "POST /hub/v1/device/token"),
        ),
        "open",
    ),
    **dict.fromkeys(
        (
            *("GET /api/sessions", "GET /api/projects", "GET /api/models", "GET /api/agents", "GET /api/diagnostics"),
            *("GET /api/status", "GET /api/usage", "GET /api/usage/comparison", "GET /api/insights", "GET /api/files"),
            *("GET /api/tool-calls", "GET /api/tools", "GET /api/files/touched", "GET /api/search", "GET /api/runs"),
            *("GET /hub/v1/me", "GET /hub/v1/people", "GET /api/events", "GET /api/tasks"),
        ),
        "sums",
    ),
    **dict.fromkeys(
        (
            *("GET /api/sessions/{session_id}", "GET /api/sessions/{session_id}/outline"),
            *("GET /api/sessions/{session_id}/context", "GET /api/sessions/{session_id}/export"),
            *("GET /api/sessions/{session_id}/window", "GET /api/sessions/{session_id}/events/{position}"),
            *("GET /api/sessions/{session_id}/ui-messages", "GET /api/sessions/{session_id}/replay"),
            "GET /api/sessions/{session_id}/events",
            *("GET /api/sessions/{session_id}/chat/stream", "GET /api/sessions/{session_id}/files"),
            *("GET /api/sessions/{session_id}/commits", "GET /api/sessions/{session_id}/spills/{name}"),
            *("GET /api/sessions/{session_id}/prompt", "GET /api/messages/{message_id}", "GET /api/parts/{part_id}"),
            *("GET /api/messages/{message_id}/raw", "GET /api/blobs/{sha256}", "GET /api/runs/{run_id}"),
            *("GET /api/runs/{run_id}/messages", "GET /api/tasks/{task_id}"),
        ),
        "read",
    ),
    **dict.fromkeys(
        (
            *("PATCH /api/sessions/{session_id}", "DELETE /api/sessions/{session_id}"),
            *("POST /api/sessions/{session_id}/forget", "POST /api/sessions/{session_id}/messages"),
            *("POST /api/sessions/{session_id}/tool-calls", "PUT /api/sessions/{session_id}/ownership"),
            *("POST /api/sessions/{session_id}/prompt", "POST /api/sessions/{session_id}/prompt/answer"),
            *("PATCH /api/tasks/{task_id}", "DELETE /api/tasks/{task_id}"),
            *("DELETE /api/sessions/{session_id}/prompt", "PUT /hub/v1/sessions/{session_id}/sharing"),
            *("POST /hub/v1/sessions/{session_id}/links", "DELETE /hub/v1/sessions/{session_id}/links/{link_id}"),
        ),
        "own",
    ),
    **dict.fromkeys(("POST /api/sessions", "POST /api/tasks"), "push"),
    "PATCH /api/projects": "admin",
    "GET /hub/v1/sessions/{session_id}/sharing": "read",
    **dict.fromkeys(("PUT /hub/v1/sessions/{session_id}/trash", "DELETE /hub/v1/sessions/{session_id}/trash"), "own"),
    "GET /hub/v1/trash": "user",
    **dict.fromkeys(("GET /hub/v1/team", "GET /hub/v1/members", "GET /hub/v1/audit", "GET /hub/v1/rules"), "person"),
    "GET /hub/v1/shared": "person",
    "GET /hub/v1/budgets": "person",
    **dict.fromkeys(
        (
            *("GET /hub/v1/tokens", "POST /hub/v1/tokens", "DELETE /hub/v1/tokens/{token_id}"),
            *("GET /hub/v1/machines", "DELETE /hub/v1/machines/{machine_id}", "GET /hub/v1/device/{code}"),
            *("POST /hub/v1/sign-in/links", "POST /hub/v1/me/team", "DELETE /hub/v1/members/{user_id}"),
            *("POST /hub/v1/device/{code}", "POST /hub/v1/teams", "POST /hub/v1/rules/agreement"),
        ),
        "user",
    ),
    **dict.fromkeys(
        (
            *("PATCH /hub/v1/team", "PATCH /hub/v1/members/{user_id}", "GET /hub/v1/invitations"),
            *("POST /hub/v1/invitations", "DELETE /hub/v1/invitations/{invitation_id}", "GET /hub/v1/usage"),
            *("GET /hub/v1/audit/team", "POST /hub/v1/budgets", "DELETE /hub/v1/budgets/{budget_id}"),
        ),
        "admin",
    ),
    **dict.fromkeys(("PATCH /hub/v1/rules", "GET /hub/v1/rules/retention"), "team"),
}

STREAMS: Final = frozenset(
    {"GET /api/events", "GET /api/sessions/{session_id}/events", "GET /api/sessions/{session_id}/chat/stream"}
)
"""Without an end, so that the test client asks only for those that are refused. `test_visibility` reads one."""

SIGN_OUT: Final = "POST /hub/v1/sign-out"
TRASH: Final = "PUT /hub/v1/sessions/{session_id}/trash"

BODIES: Final[dict[str, Any]] = {
    "POST /hub/v1/sign-in": {"code": "x"},
    "POST /hub/v1/links/open": {"code": "x"},
    "POST /hub/v1/invitations/accept": {"code": "x", "name": "x"},
    "POST /hub/v1/device": {"machine": "x"},
    "POST /hub/v1/device/token": {"device_code": "x"},
    "POST /api/sessions": {"external_id": "a", "title": "taken over"},
    "POST /api/tasks": {"name": "taken over", "id": "secret-task"},
    "PATCH /api/tasks/{task_id}": {"name": "taken over"},
    "PATCH /api/sessions/{session_id}": {"title": "taken over"},
    "POST /api/sessions/{session_id}/forget": {"dry_run": True},
    "POST /api/sessions/{session_id}/messages": {"messages": []},
    "POST /api/sessions/{session_id}/tool-calls": {
        "message_id": "a-2",
        "call": {"type": "tool-call", "tool_call_id": "c", "tool_name": "t"},
    },
    "PUT /api/sessions/{session_id}/ownership": {},
    "POST /api/sessions/{session_id}/prompt": {"text": "x"},
    "POST /api/sessions/{session_id}/prompt/answer": {"id": "x", "allow": True},
    "POST /hub/v1/sessions/{session_id}/links": {},
    "POST /hub/v1/sign-in/links": {},
    "PUT /hub/v1/sessions/{session_id}/sharing": {"visibility": "private"},
    "PATCH /api/projects": {"path": "/home/ana/secret-project", "name": "taken over"},
    "POST /hub/v1/tokens": {"name": "x", "scopes": ["read"]},
    "POST /hub/v1/me/team": {"team": "1"},
    "POST /hub/v1/device/{code}": {"allow": False},
    "POST /hub/v1/teams": {"name": "x"},
    "PATCH /hub/v1/team": {"name": "x"},
    "PATCH /hub/v1/members/{user_id}": {"role": "owner"},
    "POST /hub/v1/invitations": {"role": "viewer"},
    "PATCH /hub/v1/rules": {"visibility": "private"},
    "POST /hub/v1/rules/agreement": {"agrees": True},
    "POST /hub/v1/budgets": {"scope": "team", "limit": 1},
}

QUERIES: Final = {
    "GET /api/sessions/{session_id}/export": "?as=json",
    "GET /api/usage/comparison": "?since=2026-11-01&until=2026-11-20",
    "GET /api/files": "?path=/home/ana",
    "GET /api/search": f"?q={WORD}",
    "GET /hub/v1/rules/retention": "?days=30",
}

MEMBERS: Final = frozenset({"owner of the session", "owner", "admin", "member", "viewer", "other team"})

ALLOWED: Final[dict[Kind, frozenset[str]]] = {
    "open": frozenset(EVERYBODY),
    "sums": frozenset({*MEMBERS, "machine", "link"}),
    "read": frozenset({"owner of the session"}),
    "own": frozenset({"owner of the session"}),
    "person": frozenset({*MEMBERS, "machine"}),
    "user": MEMBERS,
    "push": frozenset({"owner of the session"}),
    "admin": frozenset({"owner", "admin", "other team"}),
    "team": frozenset({"owner", "other team"}),
}
"""Who may get an answer, besides being told that there is nothing. The owner of the session is a member otherwise, and
the machine is that of the member."""

REFUSALS: Final = frozenset({401, 403, 404, 405, 409, 422})


class Asked(NamedTuple):
    """The hub, and a client of everybody."""

    hub: Hub
    clients: dict[Who, TestClient]
    session: str


@pytest.fixture(scope="module")
def asked(databases: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with hub(databases, tmp_path_factory.mktemp("hub")) as found:
        owner = found.browser("Olga", "owner")
        clients: dict[Who, TestClient] = {
            "owner": owner,
            "owner of the session": found.browser("Ana"),
            "admin": found.browser("Zoe", "admin"),
            "member": found.browser("Ben"),
            "viewer": found.browser("Vic", "viewer"),
        }
        other = owner.post("/hub/v1/teams", json={"name": "Other"}).json()["id"]
        clients["other team"] = found.browser("Eve", "owner", team=int(other))
        ana = clients["owner of the session"]
        session = save_session(ana, "a", WORD, cwd="/home/ana/secret-project", ownership={"task": "secret-task"})
        assert ana.post("/api/tasks", json={"id": "secret-task", "name": "secret-task-name"}).status_code == 201
        shared = save_session(clients["member"], "b", "another")
        link = found.people.sharing.make_link(1, shared, found.ids["Ben"], None)[0]
        clients["link"] = found.client(Cookie=f"turnlog_link={link}", **{"X-Turnlog-CSRF": "1"})
        token, _ = found.people.secrets.make(
            "machine", team=1, user=found.ids["Ben"], machine="m-1", scopes=("push", "read")
        )
        clients["machine"] = found.client(token)
        clients["nobody"] = found.client()
        yield Asked(found, clients, session)


def operations(found: Hub) -> Iterator[str]:
    paths: dict[str, dict[str, Any]] = found.app.openapi()["paths"]
    for path, methods in paths.items():
        yield from (f"{method.upper()} {path}" for method in methods)


def ask(asked: Asked, operation: str, who: Who) -> tuple[int, str]:
    """The status and the text that somebody is answered about Ana's session, or what else the address is about."""
    method, _, path = operation.partition(" ")
    values = {
        "session_id": asked.session,
        "message_id": "a-2",
        "part_id": "a-2.0",
        "user_id": asked.hub.ids["Olga"],
        "position": "0",
        "name": "x",
        "sha256": "0" * 64,
        "run_id": "x",
        "task_id": "secret-task",
    }
    for name in ("session_id", "message_id", "part_id", "user_id", "position", "name", "sha256", "run_id", "task_id"):
        path = path.replace(f"{{{name}}}", values[name])
    for name in ("link_id", "token_id", "machine_id", "invitation_id", "budget_id", "code"):
        path = path.replace(f"{{{name}}}", "BCDFGHJK")
    answer = asked.clients[who].request(
        method, path + QUERIES.get(operation, ""), json=BODIES.get(operation) if method != "GET" else None
    )
    return answer.status_code, answer.text


def test_every_address_is_in_the_table(asked: Asked) -> None:
    assert set(operations(asked.hub)) == set(KINDS)


def test_nobody_is_answered_more_than_the_table_says(asked: Asked) -> None:
    """R-C16."""
    wrong: list[str] = []
    for operation in sorted(operations(asked.hub)):
        kind = KINDS[operation]
        for who in EVERYBODY:
            if operation in ("POST /api/sessions", "POST /api/tasks") and who == "other team":
                continue  # there, nobody has a session or a task of this id
            # What the next ones ask about shall be there.
            if who in ALLOWED[kind] and (operation.startswith("DELETE") or operation in (*STREAMS, SIGN_OUT, TRASH)):
                continue
            status, text = ask(asked, operation, who)
            asked.hub.app.state.hub.failures._buckets.clear()
            if who in ALLOWED[kind]:
                if status in (401, 429, 500):
                    wrong.append(f"{operation}: {who} is answered {status}")
            elif status not in REFUSALS:
                wrong.append(f"{operation}: {who} is answered {status}")
            # An error may say again what was asked for.
            words = [
                word for word in (WORD, "secret-project", "secret-task-name") if word not in str(BODIES.get(operation))
            ]
            if who != "owner of the session" and any(word in text for word in words):
                wrong.append(f"{operation}: {who} is told of the session")
            if who == "nobody" and kind != "open" and status != 401:
                wrong.append(f"{operation}: nobody is answered {status}")
    assert not wrong, chr(10).join(wrong)
    title = asked.clients["owner of the session"].get(f"/api/sessions/{asked.session}").json()["session"]["title"]
    assert title in (f"title of {WORD}", "taken over")


def test_addresses_of_a_session_answer_404_to_whoever_does_not_see_it(asked: Asked) -> None:
    wrong: list[str] = []
    for operation in sorted(operations(asked.hub)):
        # This hub asks no agents: it says so before it looks for the session.
        if "{session_id}" not in operation or "/prompt" in operation:
            continue
        for who in ("owner", "admin", "member", "other team", "machine"):
            status, _ = ask(asked, operation, who)
            # A machine decides nothing of people, whatever it names.
            if status != 404 and not (who == "machine" and "/hub/" in operation):
                wrong.append(f"{operation}: {who} is answered {status}")
    assert not wrong, chr(10).join(wrong)
