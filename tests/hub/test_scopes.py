"""What tokens may do: every address, asked with every set of scopes, answers no more than the table says.

The addresses come from what the hub says of itself (OpenAPI), and from its routes that are no part of that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, NamedTuple

import httpx2
import pytest
from starlette.routing import BaseRoute, Mount, Route

from hub.test_matrix import BODIES, QUERIES, SIGN_OUT, STREAMS, operations
from support.hubs import Hub, hub, listening, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.hub import scopes
from turnlog.hub.callers import SCOPES
from turnlog.hub.pages import router as pages_router
from turnlog.hub.routes import sign_in
from turnlog.hub.scopes import ANYBODY, BROWSER, KEYS, NEEDS
from turnlog.hub.settings import HubSettings

WORD: Final = "xylophone"

SETS: Final = {
    " ".join(chosen) or "none": frozenset(chosen)
    for size in range(len(SCOPES) + 1)
    for chosen in itertools.combinations(SCOPES, size)
}
"""All sets of scopes that a token may have."""

MINTS: Final = ("set-cookie", "tlb_", "tla_", "tlm_")
"""What no answer to a token has: a cookie, a browser, a link that signs one in, a machine."""


MCP: Final = {
    "POST /api/mcp": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_history", "arguments": {"query": WORD}},
    }
}


class Asked(NamedTuple):
    """A hub, and a client with every set of scopes, of its owner."""

    hub: Hub
    clients: dict[str, httpx2.Client]
    session: str


@pytest.fixture(scope="module")
def asked(databases: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with hub(databases, tmp_path_factory.mktemp("hub"), HubSettings(requests_per_second=10_000)) as found:
        owner = found.browser("Olga", "owner")
        session = save_session(owner, "a", WORD, cwd="/home/olga/secret-project", ownership={"task": "secret-task"})
        make = partial(found.people.secrets.make, team=1, user=found.ids["Olga"])
        tokens = {name: make("personal", scopes=tuple(chosen))[0] for name, chosen in SETS.items()}
        tokens["machine"] = make("machine", machine="m-1", scopes=("push", "read"))[0]
        with listening(found) as address, ExitStack() as stack:
            clients = {
                name: stack.enter_context(
                    httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=100)
                )
                for name, token in tokens.items()
            }
            yield Asked(found, clients, session)


def other_routes(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[str]:
    """Addresses of data that OpenAPI does not name."""
    for route in routes:
        if isinstance(route, Mount):
            yield from other_routes(route.routes, prefix + route.path)
        elif (
            isinstance(route, Route)
            and (prefix + route.path).startswith(("/api/", "/hub/"))
            and route.path != "/api/{path:path}"
        ):
            for method in (route.methods or {"GET", "POST", "DELETE"}) - {"HEAD"}:
                yield f"{method} {prefix}{route.path}"


def test_every_address_has_its_scopes(asked: Asked) -> None:
    named = {each.replace(":path}", "}") for each in NEEDS}
    pages = [*pages_router.routes, *sign_in.pages.routes]
    found = {*operations(asked.hub), *other_routes([*asked.hub.app.router.routes, *pages])}
    assert {each.replace(":path}", "}") for each in found} == named


def ask(asked: Asked, operation: str, client: httpx2.Client) -> httpx2.Response:
    method, _, path = operation.partition(" ")
    path = path.replace(":path}", "}")
    values = {
        "session_id": asked.session,
        "message_id": "a-2",
        "part_id": "a-2.0",
        "user_id": asked.hub.ids["Olga"],
        "position": "0",
        "sha256": "0" * 64,
        "task_id": "secret-task",
    }
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    for name in ("name", "run_id", "link_id", "token_id", "machine_id", "invitation_id", "budget_id", "code"):
        path = path.replace(f"{{{name}}}", "BCDFGHJK")
    plain = operation.replace(":path}", "}")
    body = None if method == "GET" else {**BODIES, **MCP}.get(plain)
    headers = {"Accept": "application/json, text/event-stream"}
    return client.request(method, path + QUERIES.get(plain, "?all_projects=true"), json=body, headers=headers)


def test_no_token_is_answered_more_than_its_scopes_allow(asked: Asked) -> None:
    wrong: list[str] = []
    for operation, need in sorted(NEEDS.items()):
        for name, client in asked.clients.items():
            chosen = SETS.get(name, frozenset({"push", "read"}))
            may = need == ANYBODY or (not isinstance(need, str) and scopes.has(chosen, need))
            # What the next ones ask about shall be there; and streams have no end.
            if may and (operation.startswith("DELETE") or operation.endswith("/trash")):
                continue
            if may and operation in (*STREAMS, SIGN_OUT, "GET /api/mcp"):
                continue
            # Of those who may, the ones that just may, and the one that may everything.
            if may and len(chosen) < len(SCOPES) and not isinstance(need, str) and chosen not in need:
                continue
            answer = ask(asked, operation, client)
            asked.hub.app.state.hub.failures._buckets.clear()
            if not may and answer.status_code != 403:
                wrong.append(f"{operation}: {name} is answered {answer.status_code}")
            if may and name != "machine" and answer.status_code in (401, 500):
                wrong.append(f"{operation}: {name} is refused with {answer.status_code}")
            said = f"{answer.headers} {answer.text}"
            if any(each in said for each in MINTS):
                wrong.append(f"{operation}: {name} is given a browser or a machine")
            if "read" not in chosen and any(
                word in answer.text for word in (WORD, "secret-project") if word not in str(BODIES.get(operation))
            ):
                wrong.append(f"{operation}: {name} is told of the session")
    assert not wrong, chr(10).join(wrong)


def test_a_person_in_a_browser_may_do_what_no_token_may(asked: Asked) -> None:
    everything = frozenset(SCOPES)
    assert not scopes.has(everything, BROWSER)
    assert scopes.has(frozenset({"browser"}), BROWSER)
    assert scopes.has(frozenset({"browser"}), KEYS)


def test_nobody_needs_a_token_for_the_page_that_signs_in(new_hub: Hub) -> None:
    for path in ("/join", "/sign-in", "/connect", "/shared", "/hub/pages/page.js", "/hub/pages/page.css"):
        assert new_hub.client().get(path).status_code == 200, path
        assert new_hub.browser("Ana").get(path).status_code == 200, path
