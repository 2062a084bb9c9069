"""A session of a hundred thousand parts: it opens at once, scrolls without a stall, and has no place out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser_history import HUGE_CALLS, HUGE_ID, HUGE_TURNS, write_huge_home
from support.browser_server import serving
from support.browser_visit import Visit, settle

# Reading the session takes half a minute where nothing else runs.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

HUGE = f"/sessions/{HUGE_ID}"

MIDDLE = HUGE_TURNS // 2


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("huge-home")
    write_huge_home(home)
    with serving(home, tmp_path_factory.mktemp("huge-data"), seconds=480) as found:
        yield found


@pytest.fixture
def page(browser: Browser, huge: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    visit = Visit(context, huge)
    yield visit.open(HUGE)
    context.close()
    assert visit.problems == []


def test_it_has_a_hundred_thousand_parts() -> None:
    assert HUGE_TURNS * (HUGE_CALLS + 3) >= 100_000


def test_it_opens_at_either_end_and_anywhere_between(page: Page) -> None:
    expect(page.get_by_text("Shelf 1 is done.", exact=True)).to_be_attached()
    page.keyboard.press("End")
    expect(page.get_by_text(f"Shelf {HUGE_TURNS} is done.", exact=True)).to_be_in_viewport()
    page.evaluate(f"location.hash = 'msg_huge_{MIDDLE}'")
    expect(page.get_by_text(f"I look at shelf {MIDDLE}.", exact=True)).to_be_in_viewport()
    page.evaluate(f"location.hash = 'msg_huge_{MIDDLE}/{HUGE_CALLS}'")
    last = page.locator(".tool-open", has_text=f"ls shelf/{MIDDLE}/{HUGE_CALLS}")
    expect(last).to_be_in_viewport()


SCROLL = """async () => {
  const timeline = document.querySelector('.timeline');
  for (let frame = 0; frame < 240; frame += 1) {
    timeline.scrollTop += 120;
    await new Promise(requestAnimationFrame);
  }
  return document.querySelectorAll('.entry, .outline-entry').length;
}"""


def test_it_scrolls_without_a_stall(page: Page) -> None:
    """What is counted is the page's own time, with all that is loaded on the way: other programs run beside it."""
    page.evaluate(f"location.hash = 'msg_huge_{MIDDLE}'")
    expect(page.get_by_text(f"I look at shelf {MIDDLE}.", exact=True)).to_be_in_viewport()
    settle(page)
    before = _task_seconds(page)
    rows = page.evaluate(SCROLL)
    assert (_task_seconds(page) - before) / 240 < 0.030
    assert rows < 150


def _task_seconds(page: Page) -> float:
    """Processor time that the page has taken so far."""
    devtools: Any = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def test_find_reaches_the_far_end(page: Page) -> None:
    page.keyboard.press("f")
    field = page.get_by_role("textbox", name="Find in this session")
    field.fill("thelastjarofall")
    expect(page.locator(".find-count")).to_have_text("1 block")
    field.press("Enter")
    expect(page.locator(".tool-output", has_text="thelastjarofall")).to_be_in_viewport()


def test_a_replay_begins_anywhere_and_requests_little(page: Page) -> None:
    """Playing, scrubbing and stepping there cost the same as at the start."""
    page.evaluate(f"location.hash = 'msg_huge_{MIDDLE}'")
    expect(page.get_by_text(f"I look at shelf {MIDDLE}.", exact=True)).to_be_in_viewport()
    settle(page)
    answers: list[str] = []
    page.on("response", lambda response: answers.append(response.url) if "/replay" in response.url else None)
    page.get_by_role("button", name="Replay").click()
    player = page.get_by_role("region", name="Replay")
    player.get_by_label("Speed").select_option("16")
    expect(page.get_by_text(f"I look at shelf {MIDDLE + 2}.", exact=True)).to_be_in_viewport()
    player.get_by_role("button", name="Pause").click()
    slider = player.get_by_role("slider")
    slider.fill(slider.evaluate("slider => slider.max"))
    expect(page.get_by_text(f"Shelf {HUGE_TURNS} is done.", exact=True)).to_be_in_viewport()
    page.keyboard.press(",")
    expect(page.get_by_text(f"Shelf {HUGE_TURNS} is done.", exact=True)).to_have_count(0)
    assert 0 < len(answers) < 12
