"""The files that the agents touched, in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser_history import VARIED_ID, VAULT
from support.browser_visit import Visit

pytestmark = pytest.mark.browser


def test_a_file_page_shows_who_changed_it_and_how(visit: Visit) -> None:
    page = visit.open("/files")
    page.get_by_role("searchbox", name="Path").fill("vault")
    row = page.locator(".file-row")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("1 edit")
    row.click()
    expect(page).to_have_url(re.compile(r"/files\?path="))
    expect(page.locator(".file-full")).to_have_text(VAULT)
    expect(page.locator(".file-sessions")).to_contain_text("Mind the bank")
    touch = page.locator(".file-touch")
    expect(touch).to_have_count(1)
    expect(touch.locator(".diff-added").first).to_be_visible()
    touch.get_by_role("link", name="Edit").click()
    expect(page).to_have_url(re.compile(rf"/sessions/{VARIED_ID}#"))
