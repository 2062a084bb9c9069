"""Who may ask: hosts, origins, tokens, and the headers of every answer."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from support.server_history import MAIN
from turnlog.server import Settings, create_app
from turnlog.server.access import page_key
from turnlog.server.addresses import is_loopback
from turnlog.server.network import SECURITY_HEADERS

TOKEN = "a token that nobody guesses"
NETWORK = Settings(host="0.0.0.0", token=TOKEN, static_folder=Path("nowhere"))

OpenClient = Callable[..., TestClient]


def error_type(response: Any) -> str:
    return response.json()["error"]["type"]


# -- host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost:65535", "LocalHost", "[::1]", "[::1]:8765"])
def test_loopback_names_are_answered_on_any_port(client: TestClient, host: str) -> None:
    assert client.get("/api/agents", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8765",
        "localhost.",
        "127.0.0.1@evil.example",
        "127.0.0.1:80@evil.example",
        "127.0.0.2",
        "0.0.0.0",
        "[::2]:8765",
        "[::1",
        "192.168.1.7:8765",
        "localhost:port",
        "local host",
        "",
    ],
)
def test_every_other_host_is_refused(client: TestClient, host: str) -> None:
    response = client.get("/api/agents", headers={"Host": host})
    assert response.status_code == 421
    assert error_type(response) == "wrong_host"


def test_two_hosts_are_none(client: TestClient) -> None:
    response = client.get("/api/agents", headers=[("Host", "127.0.0.1:8765"), ("Host", "evil.example")])
    assert error_type(response) == "wrong_host"


@pytest.mark.parametrize("path", ["/", "/sessions/x", "/openapi.json", "/assets/app.js", "/api/blobs/00"])
def test_the_host_is_checked_before_every_route(client: TestClient, path: str) -> None:
    assert client.get(path, headers={"Host": "evil.example"}).status_code == 421


def test_on_a_network_numbers_and_the_machine_itself_are_answered(library: Path, open_client: OpenClient) -> None:
    client = open_client(library, NETWORK)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for host in ("192.168.1.7:8765", "[fe80::1]:8765", socket.gethostname(), "localhost"):
        assert client.get("/api/agents", headers={**bearer, "Host": host}).status_code == 200
    assert client.get("/api/agents", headers={**bearer, "Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.2", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_a_loopback_address_that_it_is_bound_to_is_answered(library: Path, open_client: OpenClient, host: str) -> None:
    client = open_client(library, Settings(host=host, static_folder=Path("nowhere")))
    name = f"[{host}]" if host == "::1" else host
    for asked in (name, f"{name}:8765", "127.0.0.1:8765", "localhost"):
        assert client.get("/api/agents", headers={"Host": asked}).status_code == 200
    for other in ("127.0.0.3", "[::2]", "192.168.1.7", "evil.example"):
        assert client.get("/api/agents", headers={"Host": other}).status_code == 421


# -- another site


PATCH = f"/api/sessions/{MAIN}"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8765"},
        {"Origin": "null"},
        {"Origin": "file://127.0.0.1:8765"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_writes_from_another_site_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    response = client.patch(PATCH, json={"starred": True}, headers=headers)
    assert response.status_code == 403
    assert error_type(response) == "forbidden"


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://127.0.0.1:8765"}, {"Sec-Fetch-Site": "same-origin"}])
def test_writes_from_the_page_and_from_programs_are_taken(
    own_store: Path, open_client: OpenClient, headers: dict[str, str]
) -> None:
    assert open_client(own_store).patch(PATCH, json={"starred": True}, headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8765"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_another_site_gets_no_answer_whose_time_it_could_measure(
    client: TestClient, method: str, headers: dict[str, str]
) -> None:
    for path in ("/api/search?q=secret", "/api/sessions", "/api/nothing", "/api"):
        answer = client.request(method, path, headers=headers)
        assert answer.status_code == 403, path


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_page_and_an_address_that_was_typed_are_answered(client: TestClient, site: str) -> None:
    assert client.get("/api/agents", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_a_link_on_another_site_leads_to_the_page(client: TestClient) -> None:
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 503  # not built here


def test_another_site_gets_no_answer_where_the_application_is_mounted(library: Path) -> None:
    outer, app = FastAPI(), create_app(library)
    outer.mount("/turnlog", app)
    with TestClient(outer, base_url="http://127.0.0.1:8765") as client:
        assert client.get("/turnlog/api/agents").status_code == 200
        assert client.get("/turnlog/api/agents", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    app.state.context.close()


def test_no_answer_is_shared_with_another_site(client: TestClient) -> None:
    answers = [
        client.get("/api/agents", headers={"Origin": "http://evil.example"}),
        client.options("/api/agents", headers={"Origin": "http://e.example", "Access-Control-Request-Method": "PATCH"}),
    ]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control-")]


# -- token


def test_an_address_off_loopback_needs_a_token(library: Path) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "machine.example"):
        with pytest.raises(ValueError, match="needs a token"):
            create_app(library, Settings(host=host))
        with pytest.raises(ValueError, match="needs a token"):
            create_app(library, Settings(host=host, token=""))
        assert not is_loopback(host)
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(
    "path", ["/api/status", "/api/sessions", "/api/sign-in", "/api/nothing", "/api", "/%61pi/status"]
)
def test_without_the_token_nothing_is_answered(library: Path, open_client: OpenClient, path: str, host: str) -> None:
    """R-C16, C-a: 401."""
    client = open_client(library, Settings(host=host, token=TOKEN, static_folder=Path("nowhere")))
    wrong = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {page_key(TOKEN)}x"},
        {"Authorization": "Bearer"},
        {"Cookie": f"turnlog={TOKEN}"},
        {"Cookie": f"turnlog={page_key(TOKEN)}"},
    ]
    for headers in wrong:
        response = client.get(path, headers=headers)
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert "turnlog open" in response.json()["error"]["message"]
        assert TOKEN not in response.text
    assert client.get(path, params={"token": TOKEN}).status_code == 401


@pytest.mark.parametrize("given", [TOKEN, page_key(TOKEN), f" {TOKEN}"])
def test_the_token_and_the_key_of_the_page_are_taken_as_bearer(
    library: Path, open_client: OpenClient, given: str
) -> None:
    client = open_client(library, NETWORK)
    for scheme in ("Bearer", "bearer"):
        assert client.get("/api/agents", headers={"Authorization": f"{scheme} {given}"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/sessions/x", "/openapi.json", "/apical", "/assets/app.js"])
def test_the_page_which_holds_no_data_needs_no_token(library: Path, open_client: OpenClient, path: str) -> None:
    client = open_client(library, Settings(token=TOKEN, static_folder=Path("nowhere")))
    assert client.get(path).status_code in (200, 404, 503)  # it is not built here


def test_no_answer_sets_a_cookie(library: Path, open_client: OpenClient) -> None:
    """A browser sends it to every port of the machine."""
    client = open_client(library, Settings(token=TOKEN, static_folder=Path("nowhere")))
    for path in ("/", f"/?token={TOKEN}", "/api/status"):
        answer = client.get(path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert "set-cookie" not in answer.headers


def test_no_answer_without_the_token_where_the_application_is_mounted(library: Path) -> None:
    outer, app = FastAPI(), create_app(library, Settings(token=TOKEN))
    outer.mount("/turnlog", app)
    with TestClient(outer, base_url="http://127.0.0.1:8765") as client:
        assert client.get("/turnlog/api/agents").status_code == 401
        assert client.get("/turnlog/api/agents", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    app.state.context.close()


# -- nothing leaves


def test_no_environment_makes_the_framework_report_elsewhere(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    app = create_app(library)
    configured = vars(app)["_telemetry"]
    switches = ("tracing", "metrics", "logs", "operation_spans", "auto_configure")
    assert [configured[name] for name in switches] == [False] * len(switches)
    app.state.context.close()


# -- headers


@pytest.mark.parametrize(
    "path", ["/", "/api/status", "/api/nothing", "/api/sessions/nope", "/api/sessions?limit=x&no=1", "/openapi.json"]
)
def test_every_answer_carries_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    refused = client.get(path, headers={"Host": "evil.example"}).headers
    assert {name: refused[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_the_policy_lets_a_page_load_from_this_server_only() -> None:
    policy = dict(rule.strip().split(" ", 1) for rule in SECURITY_HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    sources = {source for rule in policy.values() for source in rule.split()}
    assert sources == {"'none'", "'self'", "data:", "blob:"}


# -- every address


def addresses(client: TestClient) -> list[tuple[str, str]]:
    """(method, path) of every route there is, with something in the place of each parameter."""
    app = client.app
    assert isinstance(app, FastAPI)
    described: dict[str, dict[str, Any]] = app.openapi()["paths"]
    return [
        (method.upper(), re.sub(r"\{[^}]*\}", "1", path)) for path, methods in described.items() for method in methods
    ]


def test_no_address_answers_for_another_host(client: TestClient) -> None:
    found = addresses(client)
    assert len(found) > 25
    for method, path in found:
        answer = client.request(method, path, headers={"Host": "evil.example"})
        assert (answer.status_code, error_type(answer)) == (421, "wrong_host"), path


def test_no_address_answers_without_the_token(library: Path, open_client: OpenClient) -> None:
    client = open_client(library, NETWORK)
    for method, path in addresses(client):
        if path == "/api/sign-in":
            continue  # it takes nothing but a code
        answer = client.request(method, path, headers={"Host": "192.168.1.7:8765"})
        assert (answer.status_code, error_type(answer)) == (401, "unauthorized"), path
        wrong = client.request(method, path, headers={"Host": "192.168.1.7:8765", "Authorization": "Bearer no"})
        assert wrong.status_code == 401, path


def test_no_address_that_writes_does_so_for_another_site(client: TestClient) -> None:
    writes = [(method, path) for method, path in addresses(client) if method != "GET"]
    assert writes
    for method, path in writes:
        answer = client.request(method, path, headers={"Origin": "http://evil.example"}, json={})
        assert (answer.status_code, error_type(answer)) == (403, "forbidden"), path


def test_every_answer_has_the_headers_that_keep_pages_in(client: TestClient) -> None:
    """Errors have them too: most of what is requested here is not there."""
    for method, path in addresses(client):
        if path == "/api/events":
            continue  # it has no end; the guard in front of it is the same, as the tests above show
        answer = client.request(method, path, json=None if method == "GET" else {})
        assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS, path
