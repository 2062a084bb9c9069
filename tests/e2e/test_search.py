"""Search in a browser: from a word to the part that holds it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from support.browser_history import LONG_ID, NEEDLE, NEEDLE_TURN
from support.browser_visit import Visit, expect_flash, wait_until

pytestmark = pytest.mark.browser


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
    expect(page).to_have_url(re.compile(rf"/sessions/{LONG_ID}\?find={NEEDLE}#.+/1$"))
    expect_flash(page, ".tool", NEEDLE)
    expect(page.locator(".tool-output").get_by_text(NEEDLE)).to_be_in_viewport()
    expect(page.locator(".outline [aria-current]")).to_contain_text(f"Prompt number {NEEDLE_TURN}:")


def test_filters_narrow_a_search_and_work_alone(visit: Visit) -> None:
    page = visit.open("/search?q=shelf&field=input")
    expect(page.locator(".hit").first).to_contain_text("Bash input")
    page.get_by_label("Field").select_option("reasoning")
    expect(page.get_by_text("Nothing found for “shelf”")).to_be_visible()
    page.goto(page.url.split("/search")[0] + "/search?failed=true")
    expect(page.locator(".hit").first).to_contain_text("Bash")


def test_more_hits_come_as_one_scrolls(visit: Visit) -> None:
    page = visit.open("/search?q=shelf&role=user&sort=newest")
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


def test_sessions_are_ranked_with_their_best_hit(visit: Visit) -> None:
    page = visit.open("/search?q=shelf")
    group = page.locator(".hit-group").first
    expect(group.locator(".hit")).to_have_count(1)
    more = group.locator(".hit-more")
    expect(more).to_have_text(re.compile(r"^(\+\d+|200\+) in this session$"))
    expect(page.locator(".page-count")).to_have_text(re.compile(r"^\d+ sessions?$"))
    more.click()
    expect(page.locator(".hit").nth(3)).to_be_visible()
    expect(page.get_by_label("Sort")).to_have_value("newest")


def test_a_misspelt_word_is_answered_with_what_may_be_meant(visit: Visit) -> None:
    page = visit.open(f"/search?q={NEEDLE[:4]}x{NEEDLE[5:]}")
    page.locator(".did-you-mean a").click()
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.get_by_label("Search everything")).to_have_value(NEEDLE)


def test_an_opened_hit_is_unfolded_marked_and_followed_by_the_next(visit: Visit) -> None:
    """The word is in a folded output far from the start; `n` and `p` then go from hit to hit."""
    page = visit.open(f"/search?q={NEEDLE}")
    page.locator(".hit").click()
    expect(page.locator(".find-count")).to_have_text("1 of 1 block")
    expect(page.locator(".tool-output", has_text=NEEDLE)).to_be_in_viewport()
    wait_until(page, f"[...CSS.highlights.get('found') ?? []].join() === '{NEEDLE}'")
    page = visit.open('/search?q="shelf 101"&sort=newest')
    page.locator(".hit").last.click()
    count = page.locator(".find-count")
    expect(count).to_have_text("1 of 4 blocks")
    page.keyboard.press("n")
    expect(count).to_have_text("2 of 4 blocks")
    page.keyboard.press("p")
    expect(count).to_have_text("1 of 4 blocks")
    page.keyboard.press("Escape")
    expect(page.locator(".find-bar")).to_be_hidden()


@pytest.mark.parametrize("query", ["vault", "doors", "green"])
def test_every_hit_can_be_opened_where_it_is(visit: Visit, query: str) -> None:
    """Also in a subagent, on a rewound branch, and in what is folded."""
    page = visit.open(f"/search?q={query}&sort=newest")
    page.locator(".hit").first.wait_for()
    for address in page.locator(".hit").evaluate_all("links => links.map(link => link.getAttribute('href'))")[:12]:
        opened = visit.open(address)
        expect(opened.locator(".find-count")).to_have_text(re.compile(r"^\d+ of \d+ blocks?$"))
        wait_until(opened, SEEN)


PLACE = re.compile(r"/api/messages/[^/]+\?")
TEXT = re.compile(r"/api/(blobs|sessions/[^/]+/spills)/")


def test_an_opened_hit_stays_shown_when_its_place_is_known_late(visit: Visit) -> None:
    """Its word is at the end of an output of which the page has only the beginning at first."""
    page = visit.open('/search?q="very last row"')
    places: list[Route] = []
    texts: list[Route] = []
    page.route(PLACE, lambda route: places.append(route))
    page.route(TEXT, lambda route: texts.append(route))
    with page.expect_request(PLACE):
        page.locator(".hit").click()
    expect(page.get_by_role("button", name="Loading…")).to_be_visible()
    with page.expect_response(PLACE):
        places[0].continue_()
    page.wait_for_timeout(200)  # until the page has followed it
    assert texts
    page.unroute(TEXT)  # a row that is drawn again requests it again
    for text in texts:
        text.continue_()
    wait_until(page, SEEN)


SEEN = """() => [...(CSS.highlights.get('found') ?? [])].some(range => {
  const box = range.getBoundingClientRect();
  return box.height > 0 && box.bottom > 0 && box.top < innerHeight;
})"""
"""Whether a mark is on the screen."""
