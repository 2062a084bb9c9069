"""Errors in a browser are pages that say what is wrong; what a browser shows again and again is one wrong try."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, save_session
from turnlog.hub.app import MOST_FAILURES
from turnlog.hub.pages.errors import wants_page
from turnlog.hub.rates import RequestRates, WrongSecrets

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def page_of(client: TestClient, path: str, status: int, title: str) -> str:
    """What a browser shows for an address; a program gets the same status, in JSON."""
    shown = client.get(path, headers=HTML)
    assert (shown.status_code, shown.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert shown.headers["Content-Length"] == str(len(shown.content))
    assert shown.headers["Vary"] == "Accept"
    assert "Content-Security-Policy" in shown.headers
    assert f"<h1>{title}</h1>" in shown.text
    for_program = client.get(path)
    assert (for_program.status_code, for_program.headers["Content-Type"]) == (status, "application/json")
    return shown.text


def test_a_long_list_of_kinds_is_not_read_to_its_end() -> None:
    assert wants_page(["text/html," + "a/b," * 1_000_000 + "application/json"])
    assert not wants_page(["a/b," * 1_000_000 + "text/html"])


def test_errors_are_pages_for_people_and_json_for_programs(new_hub: Hub) -> None:
    olga, ben, nobody = new_hub.browser("Olga", "owner"), new_hub.browser("Ben"), new_hub.client()
    session = save_session(olga, "a", "a hat")
    said = page_of(nobody, f"/api/sessions/{session}/export?format=md&from=%2Fa%22b", 401, "Sign in to see this")
    assert (found := re.search(r'href="/sign-in\?to=([^"]*)"', said)) is not None
    assert unquote(found[1]) == f"/api/sessions/{session}/export?format=md&from=%2Fa%22b"
    assert "This takes the role owner; yours is member" in page_of(
        ben, "/hub/v1/rules/retention?days=9", 403, "This is not allowed"
    )
    hostile = page_of(ben, "/api/sessions/<script>alert(1)<%2Fscript>", 404, "There is nothing here")
    assert "<script" not in hostile
    page_of(ben, "/hub/v1/nothing", 404, "There is nothing here")
    page_of(ben, "/assets/nothing.js", 404, "There is nothing here")
    # Only what a person asks for: not what a page sends.
    assert ben.post("/hub/v1/nothing", headers=HTML).headers["Content-Type"] == "application/json"
    assert ben.get(f"/api/sessions/{session}").json()["error"]["type"] == "not_found"
    assert olga.get(f"/api/sessions/{session}", headers=HTML).headers["Content-Type"] == "application/json"


def test_a_browser_whose_link_has_ended_is_told_so_however_often_it_asks(new_hub: Hub) -> None:
    guest = new_hub.client(cookie="turnlog_link=tll_old")
    for _ in range(2 * MOST_FAILURES):
        assert guest.get("/api/sessions/turnlog:a").status_code == 401
    assert guest.get("/shared", headers=HTML).status_code == 200
    guesses = [new_hub.client(f"tlp_{number}").get("/api/sessions").status_code for number in range(MOST_FAILURES + 1)]
    assert guesses == [401] * (MOST_FAILURES - 1) + [429] * 2
    said = page_of(new_hub.client("tlp_20"), "/api/sessions", 429, "Too many requests")
    assert "Too many requests: wait" in said
    assert new_hub.client("tlp_20").get("/hub/pages/page.css").status_code == 200
    # Who has guessed nothing is answered all the same, and so is the guest.
    assert new_hub.client().get("/sign-in", headers=HTML).status_code == 200
    assert guest.get("/shared", headers=HTML).status_code == 200
    # So can whoever has been signed in too long ago, and signs in anew.
    returning = new_hub.client(cookie="turnlog_browser=tlb_old")
    assert returning.get("/sign-in", headers=HTML).status_code == 200
    assert returning.get("/hub/v1/sign-in").status_code == 200
    assert returning.get("/hub/v1/me").status_code == 429


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("TEXT/HTML; charset=utf-8", True),
        ("text/html, application/json", True),
        ("text/html;q=0.5, application/*;q=0.4", True),
        ("application/json, text/html", False),
        ("application/json, text/html;q=0.1", False),
        ("text/html;q=0", False),
        ("text/html;q=0.2, */*;q=0.3", False),
        ("text/html;q=many", False),
        ("text/htmlx, text/*, */*", False),
        ("", False),
    ],
)
def test_html_is_for_whoever_wants_it_more_than_json(accept: str, is_page: bool) -> None:
    assert wants_page([accept]) is is_page
    assert wants_page(accept.split(",")) is is_page


def test_a_secret_that_had_to_wait_is_tried_when_there_is_room() -> None:
    now = 0.0
    wrong = WrongSecrets(RequestRates(1, 1, lambda: now))
    assert [wrong.take("a", secret) for secret in ("x", "x", "y", "y", "x")] == [0, 0, 1, 1, 0]
    assert wrong.take("b", "x") == 0
    now = 1.0
    assert [wrong.take("a", secret) for secret in ("y", "z", "y")] == [0, 1, 0]
