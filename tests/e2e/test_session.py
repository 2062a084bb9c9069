"""A session in a browser, however long: read piece by piece, moved through with keys and links, searched."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from support.browser_history import LONG_ID, NEEDLE, NEEDLE_TURN, TURNS, VARIED_ID
from support.browser_visit import Visit, expect_flash, scroll_outline, settle, wait_until

pytestmark = pytest.mark.browser

LONG, VARIED = f"/sessions/{LONG_ID}", f"/sessions/{VARIED_ID}"


def test_a_long_session_is_loaded_piece_by_piece(visit: Visit) -> None:
    page = visit.open(LONG)
    expect(page.get_by_text("I look at shelf 1.", exact=True)).to_be_visible()
    windows = visit.asked_for("/window")
    assert len(windows) <= 2
    assert all(re.search(r"limit=\d\d\b", url) for url in windows)
    assert page.locator(".entry").count() < 60
    timeline = page.get_by_role("region", name="Session")
    timeline.hover()
    for _ in range(12):
        page.mouse.wheel(0, 1500)
        settle(page)
    expect(page.get_by_text("I look at shelf 1.", exact=True)).to_have_count(0)
    assert len(visit.asked_for("/window")) > len(windows)
    assert page.locator(".entry").count() < 60


def test_the_outline_jumps_and_marks_the_current_prompt(visit: Visit) -> None:
    page = visit.open(LONG)
    outline = page.get_by_role("navigation", name="Prompts")
    scroll_outline(outline, 200)
    outline.get_by_role("button", name="Prompt number 200:").click()
    expect(page.get_by_text("I look at shelf 200.", exact=True)).to_be_in_viewport()
    expect(outline.locator("[aria-current]")).to_contain_text("Prompt number 200:")
    page.keyboard.press("n")
    expect(outline.locator("[aria-current]")).to_contain_text("Prompt number 201:")
    page.keyboard.press("p")
    page.keyboard.press("p")
    expect(outline.locator("[aria-current]")).to_contain_text("Prompt number 199:")


def test_the_outline_is_one_stop_of_the_tabulator(visit: Visit) -> None:
    page = visit.open(LONG)
    outline = page.get_by_role("navigation", name="Prompts")
    first = outline.get_by_role("button", name="Prompt number 1:")
    expect(first).to_have_attribute("tabindex", "0")  # until the outline is there, Tab goes past it
    page.get_by_role("group", name="Sidebar").get_by_role("button").last.focus()
    page.keyboard.press("Tab")
    expect(first).to_be_focused()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(outline.get_by_role("button", name="Prompt number 3:")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("I look at shelf 3.", exact=True)).to_be_in_viewport()
    page.keyboard.press("End")
    expect(outline.get_by_role("button", name=f"Prompt number {TURNS}:")).to_be_focused()
    page.keyboard.press("Tab")
    expect(outline.locator(":focus")).to_have_count(0)


SCROLL_A_LITTLE = """scroller => new Promise(done => {
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
  scroller.addEventListener('scroll', drawn, { once: true });
  scroller.scrollTop += 4;
})"""


def test_a_click_counts_while_the_page_scrolls(visit: Visit) -> None:
    """A list scrolls by itself while its rows are measured, also between press and release."""
    page = visit.open(LONG)
    settle(page)
    note = page.get_by_role("button", name="Message details").nth(3)
    box = note.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.locator(".timeline").evaluate(SCROLL_A_LITTLE)
    page.mouse.up()
    expect(page.get_by_role("complementary", name="Message details")).to_have_count(1)
    outline = page.get_by_role("navigation", name="Prompts")
    row = outline.get_by_role("button", name="Prompt number 9:")
    row.wait_for()
    outline.locator(".sidebar-scroll").evaluate(SCROLL_A_LITTLE)
    box = row.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_text("I look at shelf 9.", exact=True)).to_be_in_viewport()


FIRST_IN_SIGHT = """timeline => {
  const top = timeline.getBoundingClientRect().top;
  const prompts = [...timeline.querySelectorAll('.prompt')];
  const first = prompts.find(prompt => prompt.getBoundingClientRect().top >= top);
  return [first.querySelector('.markdown').textContent, first.getBoundingClientRect().top];
}"""


def test_what_is_read_stays_in_place_while_more_is_added_above(visit: Visit) -> None:
    page = visit.open(LONG)
    outline = page.get_by_role("navigation", name="Prompts")
    scroll_outline(outline, 150)
    outline.get_by_role("button", name="Prompt number 150:").click()
    expect(page.get_by_text("I look at shelf 150.", exact=True)).to_be_in_viewport()
    # A jump holds its place while rows are measured.
    settle(page)
    held: list[Route] = []
    page.route(re.compile(r"/window\?before="), lambda route: held.append(route))
    timeline = page.get_by_role("region", name="Session")
    with page.expect_request(re.compile(r"/window\?before=")):
        timeline.evaluate("timeline => { timeline.scrollTop = 500 }")
    settle(page)
    before, height = timeline.evaluate(FIRST_IN_SIGHT), timeline.evaluate("timeline => timeline.scrollHeight")
    with page.expect_response(re.compile(r"/window\?before=")):
        held[0].continue_()
    settle(page)
    assert timeline.evaluate("timeline => timeline.scrollHeight") > height + 2000
    after = timeline.evaluate(FIRST_IN_SIGHT)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 2


def test_end_and_home_go_to_the_ends(visit: Visit) -> None:
    page = visit.open(LONG)
    page.keyboard.press("End")
    expect(page.get_by_text("End of session")).to_be_visible()
    expect(page.get_by_text(f"I look at shelf {TURNS}.", exact=True)).to_be_visible()
    page.keyboard.press("Home")
    expect(page.get_by_text("I look at shelf 1.", exact=True)).to_be_in_viewport()


def test_find_goes_into_folded_outputs_far_away(visit: Visit) -> None:
    page = visit.open(LONG)
    page.keyboard.press("f")
    field = page.get_by_role("textbox", name="Find in this session")
    expect(field).to_be_focused()
    field.fill(NEEDLE[:6])
    expect(page.locator(".find-count")).to_have_text("1 block")
    field.press("Enter")
    expect(page.locator(".find-count")).to_have_text("1 of 1 block")
    expect(page.locator(".tool-output", has_text=NEEDLE)).to_be_in_viewport()
    expect(page.get_by_text(f"I look at shelf {NEEDLE_TURN}.", exact=True)).to_be_visible()
    wait_until(page, f"[...CSS.highlights.get('found') ?? []].join() === '{NEEDLE}'")
    field.press("Escape")
    expect(field).to_be_hidden()
    wait_until(page, "!CSS.highlights.has('found')")


def test_find_steps_through_the_hits_in_their_order(visit: Visit) -> None:
    page = visit.open(f"{LONG}#msg_0aaaaaaa_00401")
    expect(page.get_by_text("I look at shelf 101.", exact=True)).to_be_in_viewport()
    settle(page)
    page.keyboard.press("Control+f")
    page.get_by_role("textbox", name="Find in this session").fill('"shelf 101"')
    count = page.locator(".find-count")
    expect(count).to_have_text("4 blocks")
    page.keyboard.press("Enter")
    expect(count).to_have_text("2 of 4 blocks")
    page.keyboard.press("Enter")
    expect(count).to_have_text("3 of 4 blocks")
    page.keyboard.press("Shift+Enter")
    expect(count).to_have_text("2 of 4 blocks")


def test_enter_before_the_hits_arrive_goes_to_the_first(visit: Visit) -> None:
    page = visit.open(LONG)
    page.keyboard.press("f")
    page.keyboard.type(NEEDLE)
    page.keyboard.press("Enter")
    expect(page.locator(".find-count")).to_have_text("1 of 1 block")
    expect(page.locator(".tool-output", has_text=NEEDLE)).to_be_in_viewport()


@pytest.mark.parametrize("slowdown", [1, 8])
def test_keys_go_to_errors_and_edits(visit: Visit, slowdown: int) -> None:
    """However few frames the machine draws: what is reached flashes for 2.6 s from when it can be seen."""
    visit.slow_down(slowdown)
    page = visit.open(VARIED)
    page.keyboard.press("e")
    expect_flash(page, ".tool", "make test")
    expect(page.locator(".tool", has_text="make test")).to_be_in_viewport()
    page.keyboard.press("D")
    expect_flash(page, ".tool", "vault.py")


def test_a_link_leads_to_its_message(visit: Visit) -> None:
    page = visit.open(f"{LONG}#msg_0aaaaaaa_00401")
    expect(page.get_by_text("I look at shelf 101.", exact=True)).to_be_in_viewport()
    expect_flash(page, ".message", "I look at shelf 101.")


def test_an_address_may_be_encoded_throughout(visit: Visit) -> None:
    """As other programs write the link of a session."""
    page = visit.open(LONG.replace(":", "%3A"))
    expect(page.get_by_text("I look at shelf 1.", exact=True)).to_be_visible()
