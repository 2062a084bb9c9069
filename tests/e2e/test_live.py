"""A session that grows while one reads it, also over a restart of the server."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser_history import GROWING_ID, append_call, append_turn, write_home
from support.browser_server import serving
from support.browser_visit import Visit, settle, wait_until
from support.cli_runner import command

pytestmark = pytest.mark.browser

GROWING = f"/sessions/{GROWING_ID}"


@pytest.fixture
def agent_home(tmp_path: Path) -> Path:
    """A home of the test's own, since its logs grow."""
    home = tmp_path / "home"
    write_home(home, long=False)
    return home


@pytest.fixture
def address(agent_home: Path, tmp_path: Path) -> Iterator[str]:
    """A server of the test's own."""
    with serving(agent_home, tmp_path / "data") as found:
        yield found


def test_a_session_grows_while_one_reads(visit: Visit, agent_home: Path) -> None:
    """R-S39: what the agent writes is on the page at once, without a request."""
    page = visit.open(GROWING)
    expect(page.get_by_text("End of session")).to_be_visible()
    expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    # Once, what came between the reading and the stream is requested.
    visit.wait_until_idle()
    asked = len(visit.asked_for("/window"))
    append_turn(agent_home, "Now a second floor")
    expect(page.locator(".prompt", has_text="Now a second floor")).to_be_visible()
    expect(page.get_by_text("Going on.")).to_be_visible()
    expect(page.get_by_text("One floor stands.")).to_have_count(1)
    expect(page.get_by_role("navigation", name="Prompts")).to_contain_text("Now a second floor")
    assert len(visit.asked_for("/window")) == asked


@pytest.mark.parametrize("hidden", [False, True], ids=["seen", "out of sight"])
def test_a_session_that_is_forgotten_is_shown_no_more(
    browser: Browser, address: str, tmp_path: Path, hidden: bool
) -> None:
    context = browser.new_context()
    page = Visit(context, address).open(GROWING)
    expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    if hidden:
        show(page, visible=False)
    forget = ["forget", GROWING_ID, "--yes", "--store", str(tmp_path / "data" / "turnlog.db")]
    subprocess.run(command(*forget), check=True, capture_output=True)
    if hidden:
        show(page, visible=True)
    expect(page.get_by_role("heading", name="This session was not found")).to_be_visible()
    expect(page.get_by_text("One floor stands.")).to_have_count(0)
    context.close()


def show(page: Page, *, visible: bool) -> None:
    """What a browser reports to a page whose tab is left, or comes back to."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));
        }""",
        not visible,
    )


AT_END = "element => element.scrollHeight - element.scrollTop - element.clientHeight < 2"


def test_who_reads_the_end_stays_there_and_who_does_not_gets_a_notice(visit: Visit, agent_home: Path) -> None:
    page = visit.open(GROWING)
    expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    for floor in range(3, 12):
        append_turn(agent_home, f"Floor {floor} please")
        expect(page.locator(".prompt", has_text=f"Floor {floor} please")).to_be_attached()
    timeline = page.get_by_role("region", name="Session", exact=True)
    expect(page.locator(".prompt", has_text="Floor 11 please")).to_be_in_viewport()
    settle(page)
    wait_until(timeline, AT_END)
    page.keyboard.press("Home")
    expect(page.get_by_text("One floor stands.")).to_be_in_viewport()
    settle(page)
    append_turn(agent_home, "The roof please")
    told = page.get_by_role("button", name="2 new messages below")
    expect(told).to_be_visible()
    expect(page.get_by_text("One floor stands.")).to_be_in_viewport()
    told.click()
    expect(page.locator(".prompt", has_text="The roof please")).to_be_in_viewport()
    expect(told).to_be_hidden()


def test_what_was_written_while_the_server_was_away_comes_when_it_is_back(
    browser: Browser, agent_home: Path, tmp_path: Path
) -> None:
    context = browser.new_context()
    with serving(agent_home, tmp_path / "data") as address:
        visit = Visit(context, address)
        page = visit.open(GROWING)
        expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    expect(page.get_by_text("not live")).to_be_visible()
    append_turn(agent_home, "Written in the dark")
    with serving(agent_home, tmp_path / "data", port=urlsplit(address).port or 0):
        expect(page.locator(".prompt", has_text="Written in the dark")).to_be_visible()
        expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
        append_turn(agent_home, "Written in the light")
        expect(page.locator(".prompt", has_text="Written in the light")).to_be_visible()
        expect(page.get_by_text("Going on.")).to_have_count(2)
    context.close()


def test_a_list_says_that_nothing_answers_until_something_does(
    browser: Browser, agent_home: Path, tmp_path: Path
) -> None:
    context = browser.new_context()
    with serving(agent_home, tmp_path / "data") as address:
        page = Visit(context, address).open("/")
    away = page.get_by_text("turnlog does not respond")
    expect(away).to_be_visible()
    with serving(agent_home, tmp_path / "data", port=urlsplit(address).port or 0):
        expect(away).to_be_hidden()
    context.close()


def test_a_change_of_a_log_is_in_the_list_without_asking(visit: Visit, agent_home: Path) -> None:
    """R-S39."""
    page = visit.open("/")
    row = page.locator(f'a[href="/sessions/{GROWING_ID}"]')
    messages = row.locator(".session-figure").nth(1)
    expect(messages).to_be_visible()
    before = int(messages.inner_text().split()[0])
    append_turn(agent_home, "And the last shelf?")
    expect(messages).to_have_text(re.compile(rf"^{before + 2}\b"))


def test_what_runs_comes_first_with_what_it_does(visit: Visit, agent_home: Path) -> None:
    append_call(agent_home, "Bash", command="make all the shelves")
    page = visit.open("/")
    now = page.get_by_role("region", name="Now")
    expect(now.locator(".session-row")).to_have_count(1)
    expect(now).to_contain_text("Running")
    expect(now).to_contain_text("make all the shelves")
    now.get_by_role("link").click()
    expect(page.locator(".session-facts")).to_contain_text("make all the shelves")
