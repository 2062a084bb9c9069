"""The list of sessions in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser_history import LONG_ID
from support.browser_visit import Visit

pytestmark = pytest.mark.browser


def test_sessions_are_grouped_by_day_with_their_figures(visit: Visit) -> None:
    page = visit.open("/")
    expect(page.locator(".session-group")).to_have_count(1)
    expect(page.locator(".session-group .session-row")).to_have_count(4)
    long = page.locator(f'a[href="/sessions/{LONG_ID}"]')
    expect(long).to_contain_text("Prompt number 1: please look at shelf 1")
    expect(long).to_contain_text("shop")
    expect(long).to_contain_text("900")
    expect(long).to_contain_text("$5.08")


def test_filters_live_in_the_address(visit: Visit) -> None:
    page = visit.open("/")
    page.get_by_role("searchbox", name="Title").fill("shelf")
    expect(page.locator(".session-row")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/\?title=shelf$"))
    page.reload()
    expect(page.get_by_role("searchbox", name="Title")).to_have_value("shelf")
    expect(page.locator(".session-row")).to_have_count(1)
    page.get_by_role("searchbox", name="Title").fill("no such title")
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator(".session-row")).to_have_count(4)


def test_the_keyboard_is_enough(visit: Visit) -> None:
    page = visit.open("/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(".session-link:focus")).to_have_attribute("href", f"/sessions/{LONG_ID}")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_label("Search everything")).to_be_focused()
    page.keyboard.type("shelf")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/search\?q=shelf$"))


def test_the_theme_is_chosen_and_remembered(visit: Visit) -> None:
    page = visit.open("/")
    body, background = page.locator("body"), "body => getComputedStyle(body).backgroundColor"
    light = body.evaluate(background)
    page.get_by_role("button", name="Dark theme").click()
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()
    expect(body).not_to_have_css("background-color", light)
    dark = body.evaluate(background)
    page.reload()
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()
    expect(body).to_have_css("background-color", dark)


def test_a_session_is_starred_named_and_tagged_with_the_keyboard(visit: Visit) -> None:
    page = visit.open("/?title=shelf")
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect(page.get_by_role("button", name="Star", pressed=True)).to_have_count(1)
    page.keyboard.press("e")
    page.get_by_role("textbox", name="Name").fill("The shelf of shelves")
    page.get_by_role("textbox", name="Tags").fill("books, wood")
    page.get_by_role("textbox", name="Note").fill("Ask again in spring.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)  # it is open until all is saved
    visit.open("/?show=starred")
    expect(page.locator(".session-row")).to_have_count(1)
    expect(page.locator(".session-row")).to_contain_text("The shelf of shelves")
    page.keyboard.press("Control+k")
    page.keyboard.type("wood")
    expect(page.get_by_role("option", name="Tagged “wood”")).to_contain_text("1 session")
    page.get_by_role("option", name="Tagged “wood”").click()
    expect(page).to_have_url(re.compile(r"/\?tag=wood$"))
    expect(page.locator(".session-row")).to_contain_text("books")
    page.locator(".session-row").hover()
    page.get_by_role("button", name="Name, tags and note").click()
    expect(page.get_by_role("textbox", name="Note")).to_have_value("Ask again in spring.")
    page.get_by_label("Archived").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="No session matches")).to_be_visible()
    visit.open("/?show=archived")
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect(page.get_by_role("button", name="Star", pressed=True)).to_have_count(0)
    page.keyboard.press("e")
    for label in ("Name", "Tags", "Note"):
        page.get_by_role("textbox", name=label).fill("")
    page.get_by_label("Archived").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    visit.open("/")
    expect(page.locator(".session-row")).to_have_count(4)
    expect(page.get_by_text("Prompt number 1: please look at shelf 1")).to_be_visible()


def test_the_palette_leads_to_sessions_words_and_pages(visit: Visit) -> None:
    page = visit.open("/")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    expect(palette.get_by_role("option", name="Mind the bank")).to_be_visible()
    page.keyboard.type("usage")
    expect(palette.get_by_role("option").first).to_have_text("Usage")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/usage$"))
    page.keyboard.press("Control+k")
    palette.get_by_role("combobox").fill("shelf 17")  # at once: hits of "shelf" lead elsewhere
    found = palette.get_by_role("option").filter(has=page.locator("mark")).first
    found.click()
    expect(page).to_have_url(re.compile(rf"/sessions/{LONG_ID}\?find=shelf%2017#"))
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(palette).to_have_count(0)


def test_enter_before_the_palette_has_answers_goes_to_the_session(visit: Visit) -> None:
    page = visit.open("/usage")
    page.keyboard.press("Control+k")
    page.keyboard.type("mind the")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/sessions/"))
    expect(page.get_by_role("heading", name="Mind the bank")).to_be_visible()


def test_a_session_can_be_starred_and_noted_where_it_is_read(visit: Visit) -> None:
    page = visit.open(f"/sessions/{LONG_ID}")
    page.get_by_role("button", name="Star").click()
    expect(page.get_by_role("button", name="Star", pressed=True)).to_be_visible()
    for note in ("Read this again.", ""):
        page.get_by_role("button", name="Name, tags and note").click()
        page.get_by_role("textbox", name="Note").fill(note)
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".annotation-line")).to_have_count(1 if note else 0)
    page.get_by_role("button", name="Star").click()
    expect(page.get_by_role("button", name="Star", pressed=False)).to_be_visible()
