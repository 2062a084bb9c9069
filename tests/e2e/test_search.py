"""Search in a browser: from a word to the part that holds it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser_history import LONG_ID, NEEDLE, NEEDLE_TURN
from support.browser_visit import Visit

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_a_hit_opens_the_part_that_holds_it(visit: Visit) -> None:
    page = visit.open("/")
    page.keyboard.press("/")
    page.keyboard.type(NEEDLE)
    page.keyboard.press("Enter")
    hit = page.locator(".hit")
    expect(hit).to_have_count(1)
    expect(hit.locator("mark")).to_have_text(NEEDLE)
    expect(hit).to_contain_text("Bash output")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/sessions/{LONG_ID}#.+/1$"))
    found = page.locator(".tool.flash")
    expect(found).to_contain_text(NEEDLE)
    expect(found.get_by_text(NEEDLE)).to_be_in_viewport()
    expect(page.locator(".outline [aria-current]")).to_contain_text(f"Prompt number {NEEDLE_TURN}:")


def test_filters_narrow_a_search_and_stand_alone(visit: Visit) -> None:
    page = visit.open("/search?q=shelf&field=input")
    expect(page.locator(".hit").first).to_contain_text("Bash input")
    page.get_by_label("Field").select_option("reasoning")
    expect(page.get_by_text("Nothing found for “shelf”")).to_be_visible()
    page.goto(page.url.split("/search")[0] + "/search?failed=true")
    expect(page.locator(".hit").first).to_contain_text("Bash")


def test_more_hits_come_as_one_scrolls(visit: Visit) -> None:
    page = visit.open("/search?q=shelf&role=user")
    page.locator(".hit").first.wait_for()
    first = page.locator(".hit").count()
    assert 0 < first < 300
    page.locator(".hit").last.scroll_into_view_if_needed()
    expect(page.locator(".hit").nth(first)).to_be_attached()


def test_a_percent_sign_is_searched_as_it_is_typed(visit: Visit) -> None:
    page = visit.open("/search")
    page.get_by_label("Search everything").fill("50%41")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing found for “50%41”")).to_be_visible()
    expect(page.get_by_label("Search everything")).to_have_value("50%41")
    page.reload()
    expect(page.get_by_label("Search everything")).to_have_value("50%41")
