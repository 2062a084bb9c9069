"""The hub's own pages in a browser: joining, connecting a machine, sharing, and a guest with a link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from support.hubs import hub, listening, save_session
from support.postgres_stores import PostgresDatabases

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=[
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
                *("--disable-component-update", "--disable-sync"),
            ],
        )
        yield browser
        browser.close()


def opened(chromium: Browser, errors: list[str]) -> Page:
    """A page of a browser of its own; what goes wrong in it is an error."""
    page = chromium.new_context().new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
    return page


def join(page: Page, link: str, name: str) -> None:
    page.goto(link)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Join").click()
    page.wait_for_url("**/")


def test_people_join_connect_and_share_in_the_browser(
    databases: PostgresDatabases, tmp_path: Path, chromium: Browser
) -> None:
    errors: list[str] = []
    with hub(databases, tmp_path) as found, listening(found) as base:
        ana, ben, guest = (opened(chromium, errors) for _ in range(3))
        join(ana, f"{base}/join#code={found.people.teams.invite_first(60)}", "Ana")
        with httpx2.Client(base_url=base) as machine:
            asked = machine.post("/hub/v1/device", json={"machine": "laptop", "platform": "Linux"}).json()
            ana.goto(f"{base}/connect")
            ana.get_by_label("The code that the machine shows").fill(asked["user_code"].lower())
            ana.get_by_role("button", name="Go on").click()
            ana.get_by_role("button", name="Connect").click()
            ana.get_by_text("laptop may send your sessions now").wait_for()
            joined = machine.post("/hub/v1/device/token", json={"device_code": asked["device_code"]}).json()
            machine.headers["Authorization"] = f"Bearer {joined['access_token']}"
            session = save_session(machine, "a", "a hat")
        ana.goto(f"{base}/team")
        ana.get_by_text("laptop").first.wait_for()
        ana.get_by_role("button", name="Invite").click()
        join(ben, ana.locator("[role=status] code").inner_text(), "Ben")
        assert found.people.sharing.sharing(1, session).visibility == "private"
        ana.goto(f"{base}/share?session={session}")
        ana.get_by_label("It is shown to").select_option("people")
        ana.get_by_label("Ben").check()
        ana.get_by_role("button", name="Save").click()
        ana.wait_for_timeout(300)
        ben.goto(f"{base}/share?session={session}")
        ben.get_by_text("Only its owner decides that").wait_for()
        ana.get_by_role("button", name="Make a link").click()
        link = ana.locator("[role=status] code").inner_text()
        guest.goto(link)
        guest.wait_for_url(f"**/sessions/{session}")
        assert link.partition("#code=")[2] not in guest.url
        ana.get_by_role("button", name="Take back").click()
        ana.get_by_role("button", name="Take back").wait_for(state="detached")
        late = opened(chromium, errors)
        late.goto(link)
        late.get_by_text("has expired or was taken back").wait_for()
    assert errors == []
