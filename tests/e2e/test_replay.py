"""A session shown again as it came."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from support.browser_history import LONG_ID, TURNS, VARIED_ID
from support.browser_visit import Visit, scroll_outline, settle

pytestmark = pytest.mark.browser


def test_a_session_plays_to_its_end(visit: Visit) -> None:
    page = visit.open(f"/sessions/{VARIED_ID}")
    expect(page.get_by_text("I begin.")).to_be_visible()
    # Without its moments it stays where it begins.
    held: list[Route] = []
    page.route("**/replay?*", lambda route: held.append(route))
    page.get_by_role("button", name="Replay").click()
    player = page.get_by_role("region", name="Replay")
    expect(player.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_text("I begin.")).to_have_count(0)
    page.unroute("**/replay?*")  # lets go of what is held
    player.get_by_label("Speed").select_option("16")
    expect(page.get_by_text("I begin.")).to_be_visible()
    expect(page.get_by_text("Painted blue.")).to_be_in_viewport()
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_visible()
    player.get_by_role("button", name="End the replay").click()
    expect(player).to_be_hidden()
    expect(page.get_by_text("End of session")).to_be_visible()


def test_a_replay_is_stepped_and_scrubbed(visit: Visit) -> None:
    page = visit.open(f"/sessions/{LONG_ID}")
    page.get_by_role("button", name="Replay").click()
    player = page.get_by_role("region", name="Replay")
    player.get_by_role("button", name="Pause").click()
    slider = player.get_by_role("slider")
    middle = slider.evaluate("slider => Math.round((Number(slider.min) + Number(slider.max)) / 2)")
    slider.fill(str(middle))
    expect(page.locator(".prompt", has_text="Prompt number 15").first).to_be_visible()
    settle(page)
    states: list[str] = []
    for _ in range(5):
        reached = slider.input_value()
        page.keyboard.press(".")
        expect(slider).not_to_have_value(reached)
        settle(page)
        states.append(page.locator(".tool-row").last.inner_text().split("\n")[-1])
    assert {"no result", "done"} <= set(states), "a call is there before its result"
    reached = slider.input_value()
    page.keyboard.press(",")
    expect(slider).not_to_have_value(reached)
    assert int(slider.input_value()) < int(reached)
    page.keyboard.press("Escape")
    expect(player).to_be_hidden()


def test_a_jump_moves_the_replay(visit: Visit) -> None:
    page = visit.open(f"/sessions/{LONG_ID}")
    page.get_by_role("button", name="Replay").click()
    player = page.get_by_role("region", name="Replay")
    page.keyboard.press(" ")
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_visible()
    outline = page.get_by_role("navigation", name="Prompts")
    scroll_outline(outline, 20)
    outline.get_by_role("button", name="Prompt number 20:").click()
    expect(page.locator(".prompt", has_text="Prompt number 20").first).to_be_in_viewport()
    slider = player.get_by_role("slider")
    reached = slider.input_value()
    page.keyboard.press("p")
    expect(slider).not_to_have_value(reached)
    assert int(slider.input_value()) < int(reached)
    expect(page.locator(".prompt", has_text="Prompt number 19").first).to_be_in_viewport()
    expect(page.locator(".prompt", has_text="Prompt number 20")).to_have_count(0)


def test_the_keyboard_controls_a_replay(visit: Visit) -> None:
    page = visit.open(f"/sessions/{LONG_ID}")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Replay").press("Enter")
    player = page.get_by_role("region", name="Replay")
    expect(player.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press(" ")
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_focused()
    slider = player.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator(".prompt", has_text=f"Prompt number {TURNS}")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.locator(".prompt", has_text="Prompt number 1").first).to_be_visible()
    expect(page.locator(".prompt", has_text=f"Prompt number {TURNS}")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(player).to_be_hidden()
    expect(page.get_by_role("button", name="Replay")).to_be_focused()


def test_a_replay_goes_from_prompt_to_prompt_and_to_the_ends(visit: Visit) -> None:
    page = visit.open(f"/sessions/{LONG_ID}")
    # Keys go to the prompts that the outline has loaded.
    page.get_by_role("navigation", name="Prompts").get_by_role("button", name="Prompt number 1:").wait_for()
    page.keyboard.press("R")
    player = page.get_by_role("region", name="Replay")
    page.keyboard.press(" ")
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_visible()
    slider = player.get_by_role("slider")
    for number in (2, 3, 4):
        page.keyboard.press("n")
        expect(page.locator(".prompt", has_text=f"Prompt number {number}:")).to_be_in_viewport()
    expect(page.locator(".prompt", has_text="Prompt number 5:")).to_have_count(0)
    page.keyboard.press("p")
    expect(page.locator(".prompt", has_text="Prompt number 4:")).to_have_count(0)
    page.keyboard.press("End")
    expect(page.locator(".prompt", has_text=f"Prompt number {TURNS}:")).to_be_visible()
    expect(slider).to_have_value(str(slider.get_attribute("max")))
    page.keyboard.press("Home")
    expect(slider).to_have_value(str(slider.get_attribute("min")))
    expect(page.locator(".prompt", has_text="Prompt number 2:")).to_have_count(0)
