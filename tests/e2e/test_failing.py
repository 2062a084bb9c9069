"""What the page says where something fails: the frame stays, and one can go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from support.browser_visit import Visit

pytestmark = pytest.mark.browser


@pytest.fixture
def failing_visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A window in which something is expected to go wrong."""
    context = browser.new_context()
    yield Visit(context, address)
    context.close()


def test_a_page_whose_pieces_are_gone_says_so_and_leaves_the_others(failing_visit: Visit) -> None:
    """As after an upgrade of turnlog while a window was open."""
    page = failing_visit.open("/")
    gone = "**/assets/usage-page-*.js"
    page.route(gone, lambda route: route.abort())
    page.get_by_role("link", name="Usage", exact=True).click()
    expect(page.get_by_role("heading", name="This page could not be shown")).to_be_visible()
    page.get_by_role("link", name="Sessions", exact=True).click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    page.get_by_role("link", name="Usage", exact=True).click()
    page.unroute(gone)
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()


def test_a_session_that_is_not_there_leads_back_to_those_that_are(failing_visit: Visit) -> None:
    page = failing_visit.page
    failing_visit.open("/")
    page.goto(page.url + "sessions/claude-code:nobody")
    expect(page.get_by_role("heading", name="This session was not found")).to_be_visible()
    page.get_by_role("link", name="All sessions").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()


def test_an_answer_that_fails_leaves_the_frame(failing_visit: Visit) -> None:
    def fail(route: Route) -> None:
        route.fulfill(status=503, json={"error": {"code": "busy", "message": "the store is busy"}})

    failing_visit.page.route("**/api/sessions?*", fail)
    page = failing_visit.open("/")
    expect(page.get_by_role("alert")).to_contain_text("The list of sessions could not be loaded")
    expect(page.get_by_role("navigation").first).to_be_visible()
