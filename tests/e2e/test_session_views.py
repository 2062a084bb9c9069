"""What one chooses to see of a session, pins in it, and opens next to it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser_history import LONG_ID, VARIED_ID
from support.browser_visit import Visit, settle

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LONG, VARIED = f"/sessions/{LONG_ID}", f"/sessions/{VARIED_ID}"


def test_prompts_and_answers_hide_the_rest_until_a_search(visit: Visit) -> None:
    page = visit.open(VARIED)
    expect(page.locator(".tool").first).to_be_visible()
    page.get_by_role("button", name="Everything").click()
    page.get_by_role("radio", name="Prompts and answers").check()
    page.keyboard.press("Escape")
    expect(page.locator(".tool, .records, .background, .injected")).to_have_count(0)
    expect(page.get_by_text("I begin.")).to_be_visible()
    page.keyboard.press("e")
    expect(page.locator(".tool").first).to_be_visible()
    expect(page.get_by_role("button", name="Everything")).to_be_visible()


def test_a_choice_of_blocks_keeps_the_place(visit: Visit) -> None:
    page = visit.open(LONG)
    # Keys go to the prompts that the outline has loaded.
    page.locator(".outline").get_by_role("button", name="Prompt number 9:").wait_for()
    for _ in range(8):
        page.keyboard.press("n")
    current = page.locator(".outline [aria-current]")
    expect(current).to_contain_text("Prompt number 9:")
    page.get_by_role("button", name="Everything").click()
    page.get_by_role("checkbox", name="Tool calls").uncheck()
    page.keyboard.press("Escape")
    settle(page)
    expect(current).to_contain_text("Prompt number 9:")
    expect(page.get_by_text("Prompt number 9:").last).to_be_in_viewport()


def test_a_pinned_message_is_above_the_prompts_and_stays(visit: Visit) -> None:
    page = visit.open(VARIED)
    message = page.locator(".message", has_text="I begin.").first
    message.hover()
    message.get_by_role("button", name="Pin this message").click()
    pins = page.get_by_role("region", name="Pinned messages")
    expect(pins).to_contain_text("I begin.")
    page.reload()
    pins.get_by_role("button").click()
    expect(message).to_be_in_viewport()
    message.hover()
    message.get_by_role("button", name="Pin this message", pressed=True).click()
    expect(pins).to_have_count(0)


def test_a_message_is_copied_as_it_reads(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    message = page.locator(".message", has_text="I begin.").first
    message.hover()
    message.get_by_role("button", name="Copy this message").click()
    expect(message.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("I begin.")


def test_sessions_of_the_list_are_next_to_the_open_one(visit: Visit) -> None:
    page = visit.open("/")
    expect(page.locator(".session-row")).to_have_count(4)
    listed = [row.get_attribute("href") for row in page.locator(".session-row .session-link").all()]
    visit.open(str(listed[1]))
    page.get_by_role("button", name="Sessions", exact=True).click()
    sessions = page.get_by_role("list", name="Sessions")
    expect(sessions.locator("[aria-current=page]")).to_have_attribute("href", str(listed[1]))
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile(re.escape(str(listed[2])) + "$"))
    expect(sessions.locator("[aria-current=page]")).to_have_attribute("href", str(listed[2]))
    page.keyboard.press("[")
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(re.escape(str(listed[0])) + "$"))
