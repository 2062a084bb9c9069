"""People sign in through a real OpenID provider, or are named by a proxy that is trusted."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, hub, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.hub.settings import HubSettings, OpenIdSettings, ProxySettings

with warnings.catch_warnings():
    # It imports a module of Authlib that has another name by now.
    warnings.simplefilter("ignore")
    from oidc_provider_mock import (  # pyright: ignore[reportMissingTypeStubs]  # it has none
        User,
        run_server_in_thread,
    )

# The provider uses older names of Authlib.
pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A provider that knows Ana, and wants a nonce."""
    people = [User(sub="ana-at-provider", claims={"name": "Ana", "email": "ana@example.com"})]
    with run_server_in_thread(require_nonce=True, user_claims=people) as server:
        yield f"http://localhost:{server.server_port}"


@contextmanager
def hub_with(databases: PostgresDatabases, cache: Path, issuer: str, *, joins: str | None = None) -> Generator[Hub]:
    # `joins` is one of the words that the parameter takes: the tests name it as text.
    openid = OpenIdSettings(issuer=issuer, client_id="turnlog", client_secret="secret", joins=joins)  # type: ignore[arg-type]
    with hub(databases, cache, HubSettings(openid=openid)) as found:
        yield found


def go(browser: TestClient, path: str = "/sign-in/openid", subject: str = "ana-at-provider") -> str:
    """Go to the provider and say who one is there; where the provider sends the browser back to."""
    answer = browser.get(path, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    asked = answer.headers["location"]
    said = httpx2.post(asked, data={"sub": subject}, follow_redirects=False)
    return said.headers["location"]


def test_the_provider_is_asked_with_state_nonce_and_pkce(
    databases: PostgresDatabases, tmp_path: Path, issuer: str
) -> None:
    with hub_with(databases, tmp_path, issuer) as found:
        asked = found.client().get("/sign-in/openid", follow_redirects=False).headers["location"]
    query = parse_qs(urlsplit(asked).query)
    assert asked.startswith(issuer)
    assert query["code_challenge_method"] == ["S256"]
    assert all(len(query[name][0]) >= 32 for name in ("state", "nonce", "code_challenge"))


def test_somebody_new_is_let_in_only_where_the_settings_say_so(
    databases: PostgresDatabases, tmp_path: Path, issuer: str
) -> None:
    with hub_with(databases, tmp_path / "a", issuer) as found:
        browser = found.client()
        answer = browser.get(go(browser), follow_redirects=False)
        assert answer.headers["location"] == "/sign-in?reason=not-invited"
        assert browser.get("/hub/v1/me").status_code == 401
    with hub_with(databases, tmp_path / "b", issuer, joins="member") as found:
        browser = found.client()
        assert browser.get(go(browser), follow_redirects=False).headers["location"] == "/"
        me = browser.get("/hub/v1/me").json()
        assert (me["user"]["name"], me["user"]["email"], me["role"]) == ("Ana", "ana@example.com", "member")


def test_a_person_is_who_the_provider_says_by_subject(
    databases: PostgresDatabases, tmp_path: Path, issuer: str
) -> None:
    with hub_with(databases, tmp_path, issuer) as found:
        owner = found.browser("Olga", "owner")
        code = owner.post("/hub/v1/invitations", json={"role": "admin"}).json()["address"].partition("#code=")[2]
        guest = found.client()
        guest.get(go(guest, f"/sign-in/openid?code={code}"), follow_redirects=False)
        first = guest.get("/hub/v1/me").json()
        assert first["role"] == "admin"
        again, other = found.client(), found.client()
        again.get(go(again), follow_redirects=False)
        assert again.get("/hub/v1/me").json()["user"]["id"] == first["user"]["id"]
        # Another subject with her address of mail is somebody else.
        other.get(go(other, subject="ana@example.com"), follow_redirects=False)
        assert other.get("/hub/v1/me").status_code == 401


def test_a_removed_person_invited_again_is_the_same_by_subject(
    databases: PostgresDatabases, tmp_path: Path, issuer: str
) -> None:
    with hub_with(databases, tmp_path, issuer, joins="member") as found:
        owner, ana = found.browser("Olga", "owner"), found.client(**{"X-Turnlog-CSRF": "1"})
        ana.get(go(ana), follow_redirects=False)
        user = ana.get("/hub/v1/me").json()["user"]["id"]
        session = save_session(ana, "a", "walnut")
        assert owner.delete(f"/hub/v1/members/{user}").status_code == 204
        # Whoever may join may still not come back by themselves.
        again = found.client()
        assert again.get(go(again), follow_redirects=False).headers["location"] == "/sign-in?reason=not-invited"
        code = owner.post("/hub/v1/invitations", json={}).json()["address"].partition("#code=")[2]
        again.get(go(again, f"/sign-in/openid?code={code}"), follow_redirects=False)
        assert again.get("/hub/v1/me").json()["user"]["id"] == user
        assert again.get(f"/api/sessions/{session}").status_code == 200
        assert ana.get("/hub/v1/me").status_code == 401


@pytest.mark.parametrize("change", ["state", "cookie", "twice", "code"])
def test_an_answer_that_is_not_ours_signs_nobody_in(
    change: str, databases: PostgresDatabases, tmp_path: Path, issuer: str
) -> None:
    with hub_with(databases, tmp_path, issuer, joins="member") as found:
        browser = found.client()
        back = go(browser)
        if change == "state":
            back = back.replace("state=", "state=x")
        elif change == "cookie":
            browser.cookies.clear()
        elif change == "code":
            back = back.replace("code=", "code=x")
        else:
            cookies = dict(browser.cookies)
            assert browser.get(back, follow_redirects=False).status_code == 303
            browser = found.client()
            browser.cookies.update(cookies)
        answer = browser.get(back, follow_redirects=False)
        reason = "failed" if change == "code" else "ended"
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?reason={reason}")
        assert browser.get("/hub/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("said", "reason"),
    [("error=access_denied", "refused"), ("error=access_denied&state=x", "refused"), ("error=server_error", "failed")],
)
def test_who_is_refused_at_the_provider_is_back_at_the_page_of_signing_in(
    said: str, reason: str, databases: PostgresDatabases, tmp_path: Path, issuer: str
) -> None:
    with hub_with(databases, tmp_path, issuer) as found:
        browser = found.client()
        browser.get("/sign-in/openid", follow_redirects=False)
        answer = browser.get(f"/sign-in/openid/callback?{said}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?reason={reason}")
        # She changes her mind.
        assert browser.get(go(browser), follow_redirects=False).headers["location"] == "/sign-in?reason=not-invited"


def test_a_provider_that_is_away_is_said_on_the_page(databases: PostgresDatabases, tmp_path: Path) -> None:
    with hub_with(databases, tmp_path, "http://127.0.0.1:9") as found:
        answer = found.client().get("/sign-in/openid", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?reason=away")


def test_a_token_for_another_client_is_refused(databases: PostgresDatabases, tmp_path: Path, issuer: str) -> None:
    with hub_with(databases, tmp_path, issuer, joins="member") as found:
        browser = found.client()
        back = go(browser)
        openid = found.app.state.hub.openid
        openid._settings = OpenIdSettings(issuer=issuer, client_id="another", client_secret="secret")
        assert browser.get(back, follow_redirects=False).headers["location"] == "/sign-in?reason=failed"


def test_a_proxy_is_believed_only_from_its_address(databases: PostgresDatabases, tmp_path: Path) -> None:
    proxy = ProxySettings(peers=["10.1.0.0/16"], header="X-Forwarded-User", joins="member")
    with hub(databases, tmp_path, HubSettings(proxy=proxy)) as found:
        through = found.client(peer="10.1.2.3", **{"X-Forwarded-User": "ana"})
        past = found.client(peer="10.2.0.1", **{"X-Forwarded-User": "ana"})
        assert through.get("/hub/v1/me").json()["user"]["name"] == "ana"
        assert past.get("/hub/v1/me").status_code == 401
        assert through.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}).status_code == 403
        answer = through.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]}, headers={"X-Turnlog-CSRF": "1"})
        # A token needs no proxy.
        assert found.client(answer.json()["token"], peer="10.2.0.1").get("/hub/v1/me").status_code == 200


def test_without_listed_peers_no_header_counts(databases: PostgresDatabases, tmp_path: Path) -> None:
    settings = HubSettings(proxy=ProxySettings(header="X-Forwarded-User", joins="owner"))
    with hub(databases, tmp_path, settings) as found:
        client = found.client(**{"X-Forwarded-User": "ana"})
        assert client.get("/hub/v1/me").status_code == 401


def test_a_client_behind_the_proxy_is_throttled_alone(databases: PostgresDatabases, tmp_path: Path) -> None:
    settings = HubSettings(proxy=ProxySettings(peers=["10.1.0.1"]))
    body = {"code": "tli_wrong", "name": "x"}
    with hub(databases, tmp_path, settings) as found:
        client = found.client(peer="10.1.0.1")
        asked = [
            client.post("/hub/v1/invitations/accept", json=body, headers={"X-Forwarded-For": f"1.1.1.1, 9.9.9.{last}"})
            for last in [1] * 21 + [2]
        ]
    assert [answer.status_code for answer in asked] == [403] * 20 + [429, 403]
