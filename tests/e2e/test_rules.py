"""What every page keeps to: its policy, its size, its reach by keyboard and screen reader, a phone's width."""

from __future__ import annotations

import gzip
import re
import urllib.request
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, expect

from support.browser_history import HARSH_ID, LONG_ID, VARIED_ID, VAULT
from support.browser_visit import TOKEN, Visit, scroll_outline, wait_until
from turnlog.server import STATIC_FOLDER

pytestmark = pytest.mark.browser

PAGES = [
    "/",
    f"/sessions/{VARIED_ID}",
    f"/sessions/{LONG_ID}",
    "/search?q=shelf",
    "/usage",
    "/insights",
    "/files",
    "/projects",
    f"/files?path={VAULT}",
    "/usage?by=model",
    "/usage?compare=1&since=2000-01-01",
]

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

# The themes differ only in their colours, so that the rules about anything else need only one of them.
VIOLATIONS = {
    "light": "axe.run({ resultTypes: ['violations'] })",
    "dark": "axe.run({ resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block'] })",
}

SIGNED = {"Authorization": f"Bearer {TOKEN}"}

FIRST_LOAD = 250_000
SESSION_PAGE = 400_000


@pytest.mark.parametrize("path", PAGES)
def test_the_policy_allows_nothing_from_elsewhere(address: str, path: str) -> None:
    with urllib.request.urlopen(address + path, timeout=10) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible(browser: Browser, address: str, path: str, theme: Literal["light", "dark"]) -> None:
    """Names, roles, and contrast of at least AA, as axe sees them; with everything opened where something opens."""
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce", bypass_csp=True)
    visit = Visit(context, address)
    page = visit.open(path)
    if "/sessions/" in path:
        page.keyboard.press("x")
        visit.wait_until_idle()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result: dict[str, Any] = page.evaluate(VIOLATIONS[theme])
    context.close()
    found = [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in result["violations"]
        for node in violation["nodes"]
    ]
    assert found == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_session_opens_above_itself_is_accessible(
    browser: Browser, address: str, theme: Literal["light", "dark"]
) -> None:
    """The field to find in it, the menu, the player, another branch, a message's details with its raw records."""
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce", bypass_csp=True)
    visit = Visit(context, address)
    page = visit.open(f"/sessions/{VARIED_ID}")
    page.get_by_role("button", name="Abandoned branch").click()
    page.locator(".tool-row", has_text="rm -rf vault").focus()
    page.keyboard.press("r")
    page.locator(".raw-record").first.wait_for()
    page.get_by_role("button", name="Find").click()
    page.get_by_role("textbox", name="Find in this session").fill("vault")
    expect(page.locator(".find-count")).not_to_have_text("")
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Share").click()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    violations: list[dict[str, Any]] = page.evaluate(VIOLATIONS[theme])["violations"]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="show how the context grew").click()
    page.get_by_role("dialog", name="How the context grew").locator("tbody").wait_for()
    violations += page.evaluate(VIOLATIONS[theme])["violations"]
    context.close()
    assert [(found["id"], [node["target"] for node in found["nodes"]]) for found in violations] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_in_one_direction_only(browser: Browser, address: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    page = visit.open(path)
    wait_until(page, "document.documentElement.scrollWidth === 390")
    context.close()
    assert visit.problems == []


def test_a_narrow_phone_shows_every_figure_of_a_session(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 700}, has_touch=True, is_mobile=True)
    page = Visit(context, address).open("/")
    ends = page.locator(".session-link:has(.session-figures)").evaluate_all(
        """links => links.map(link => [link.getBoundingClientRect().right,
            ...[...link.querySelectorAll('.session-figure')].map(figure => figure.getBoundingClientRect().right)])"""
    )
    context.close()
    assert ends
    assert [end for end in ends if max(end[1:]) > end[0] + 0.5] == []


def test_on_a_phone_tags_leave_room_for_the_title(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    session = f"{address}/api/sessions/{HARSH_ID}"
    try:
        context.request.patch(
            session, data={"tags": ["release", "a tag that is longer than anybody needs"]}, headers=SIGNED
        )
        page = visit.open("/")
        title = page.locator(".session-title", has_text="release")
        room, name, tag = (
            box.bounding_box() for box in (title, title.locator(".session-name"), title.get_by_text("release"))
        )
    finally:
        context.request.patch(session, data={"tags": []}, headers=SIGNED)
        context.close()
    assert room
    assert name
    assert tag
    assert name["width"] > room["width"] / 2
    assert name["x"] + name["width"] < tag["x"] < tag["x"] + tag["width"] < room["x"] + room["width"]
    assert visit.problems == []


def test_on_a_phone_a_long_name_leaves_room_for_how_a_call_ended(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    page = visit.open(f"/sessions/{HARSH_ID}")
    row = page.locator(".tool-row", has_text="a_server_that")
    row.get_by_text("error").wait_for()
    fits = row.evaluate("row => row.scrollWidth <= row.clientWidth")
    context.close()
    assert fits
    assert visit.problems == []


ON_THE_SCREEN = """menu => {
  const box = menu.getBoundingClientRect();
  return 0 < box.left && box.left < box.right && box.right < innerWidth;
}"""


@pytest.mark.parametrize("menu", ["Resume", "Share"])
def test_a_menu_is_on_the_screen_wherever_its_button_is(browser: Browser, address: str, menu: str) -> None:
    context = browser.new_context()
    page = Visit(context, address).open(f"/sessions/{VARIED_ID}")
    for width in (700, 390, 320):
        page.set_viewport_size({"width": width, "height": 700})
        page.get_by_role("button", name=menu).click()
        wait_until(page.locator(".menu:popover-open"), ON_THE_SCREEN)
        page.keyboard.press("Escape")
        expect(page.locator(".menu:popover-open")).to_have_count(0)
    context.close()


def test_records_take_no_line_of_a_conversation_on_a_phone(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    page = visit.open(f"/sessions/{VARIED_ID}")
    records = page.locator(".records", has=page.locator(".fold-faint")).first
    records.wait_for()
    folded = records.bounding_box()
    records.get_by_role("button").tap()
    expect(records.locator(".records-kind").first).to_be_visible()
    context.close()
    assert folded is not None
    assert folded["height"] <= 2
    assert visit.problems == []


VISIBLE = """list => [...list.querySelectorAll('li')].every(fact => {
  const box = fact.getBoundingClientRect();
  return box.left >= 0 && box.right <= innerWidth && fact.scrollWidth <= list.clientWidth;
})"""


def test_calls_tokens_and_cost_of_a_session_are_seen_at_every_width(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 844})
    visit = Visit(context, address)
    page = visit.open(f"/sessions/{VARIED_ID}")
    for width in (1440, 1000, 700, 390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        totals = page.get_by_role("list", name="Calls, tokens and cost")
        for each in ("tool calls", "failed", "tokens", "$"):
            expect(totals).to_contain_text(each)
        wait_until(totals, VISIBLE)
    context.close()
    assert visit.problems == []


def test_a_phone_cuts_no_fact_and_shows_actions_in_one_row(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    page = visit.open(f"/sessions/{VARIED_ID}")
    wait_until(page.get_by_role("list", name="About this session"), VISIBLE)
    buttons = page.locator(".session-actions > button:visible")
    expect(buttons.nth(6)).to_be_visible()
    boxes = [button.bounding_box() for button in buttons.all()]
    context.close()
    assert len(boxes) >= 7
    assert len({box["y"] for box in boxes if box}) == 1
    assert all(box and box["x"] + box["width"] <= 390 for box in boxes)
    assert visit.problems == []


SHIFTS = """() => new Promise(done => {
  new PerformanceObserver(list => done(list.getEntries().filter(entry => !entry.hadRecentInput)
    .reduce((sum, entry) => sum + entry.value, 0))).observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(0), 500);
})"""


@pytest.mark.parametrize("session", [LONG_ID, VARIED_ID, f"{VARIED_ID}.a1b2c3"])
@pytest.mark.parametrize("slowdown", [1, 4])
def test_nothing_moves_while_a_session_is_loaded(visit: Visit, session: str, slowdown: int) -> None:
    """Whichever of its answers comes first, and on a slow machine too."""
    visit.slow_down(slowdown)
    page = visit.open(f"/sessions/{session}")
    page.locator(".timeline[aria-busy=false]").wait_for()
    page.locator(".session-facts").wait_for()
    page.wait_for_timeout(1000)
    assert page.evaluate(SHIFTS) < 0.02


def test_the_outline_is_a_drawer_on_a_phone(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    page = visit.open(f"/sessions/{LONG_ID}")
    page.get_by_role("button", name="Outline").tap()
    scroll_outline(page.locator(".drawer-body"), 90)
    page.get_by_role("dialog", name="Prompts").get_by_role("button", name="Prompt number 90:").tap()
    page.get_by_text("I look at shelf 90.", exact=True).wait_for()
    expect(page.get_by_role("dialog", name="Prompts")).to_be_hidden()
    context.close()
    assert visit.problems == []


def compressed(address: str) -> int:
    """Bytes of a built file as a browser receives it, at the least."""
    return len(gzip.compress((STATIC_FOLDER / address.lstrip("/")).read_bytes(), 6))


def test_the_first_load_is_small(visit: Visit) -> None:
    visit.open("/")
    visit.wait_until_idle()
    assets = visit.asked_for("/assets/")
    assert assets
    assert sum(compressed(url.partition("/assets/")[1] + url.partition("/assets/")[2]) for url in assets) < FIRST_LOAD


def test_the_session_page_is_small(visit: Visit) -> None:
    with visit.page.expect_request(re.compile("/assets/.*highlight")):  # it comes with the first code block
        visit.open(f"/sessions/{LONG_ID}")
    visit.wait_until_idle()
    assets = visit.asked_for("/assets/")
    assert sum(compressed(url.partition("/assets/")[1] + url.partition("/assets/")[2]) for url in assets) < SESSION_PAGE
