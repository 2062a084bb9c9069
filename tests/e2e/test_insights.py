"""The insights page in a browser, and the menu of pages on a phone."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.browser_history import LONG_ID, VARIED_ID
from support.browser_visit import Visit

pytestmark = pytest.mark.browser


def test_a_chart_has_its_table(visit: Visit) -> None:
    page = visit.open("/insights")
    chart = page.get_by_role("figure", name="Activity by day of the week and hour")
    expect(chart).to_be_visible()
    page.get_by_role("button", name="Activity by hour of the week as a table").click()
    expect(chart).to_have_count(0)
    expect(page.get_by_role("columnheader", name="Hour")).to_be_visible()


def test_an_hour_of_the_week_leads_to_its_sessions(visit: Visit) -> None:
    """The request names the hour of the browser's clocks, which are in Berlin."""
    page = visit.open("/insights")
    cell = page.locator(".activity-cell").last
    label = cell.locator("title").text_content() or ""
    cell.click()
    expect(page.get_by_role("button", name=label.split(": ")[0])).to_be_visible()
    expect(page.locator(".session-row")).not_to_have_count(0)
    page.get_by_role("button", name=label.split(": ")[0]).click()
    expect(page).not_to_have_url(re.compile("hour="))


def test_the_growth_of_a_context_leads_to_its_steps(visit: Visit) -> None:
    page = visit.open(f"/sessions/{LONG_ID}")
    page.get_by_role("button", name="show how the context grew").click()
    growth = page.get_by_role("dialog", name="How the context grew")
    expect(growth.locator(".chart-bar")).not_to_have_count(0)
    with page.expect_download() as download:
        growth.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "context.csv"
    growth.locator("tbody a").first.click()
    expect(growth).to_have_count(0)
    expect(page).to_have_url(re.compile("#.+"))


def test_what_is_unknown_is_no_number(visit: Visit) -> None:
    page = visit.open("/insights")
    row = page.get_by_role("row", name="mystery-model-9")
    expect(row.get_by_role("cell").nth(1)).to_have_text("unknown")


def test_a_model_leads_to_its_sessions(visit: Visit) -> None:
    page = visit.open("/insights")
    page.get_by_role("link", name="mystery-model-9").click()
    expect(page).to_have_url(re.compile("model=mystery-model-9"))
    expect(page.locator(".session-row")).not_to_have_count(0)


def test_a_section_downloads_as_csv(visit: Visit) -> None:
    page = visit.open("/insights")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV of Tools").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert download.value.suggested_filename == "tools.csv"
    assert header[:3] == ["tool_name", "kind", "calls"]
    assert rows


SMALL = """() => [...document.querySelectorAll('main :is(a[href], button, select, summary)')].flatMap(one => {
  // The table of a chart has the same links; a link within a sentence is as high as its line.
  if (one.closest('svg, .markdown')) return [];
  const { width, height } = one.getBoundingClientRect();
  const isSeen = width > 0 && getComputedStyle(one).visibility === 'visible';
  return isSeen && Math.min(width, height) < 24 ? [`${one.textContent} ${width} x ${height}`] : [];
})"""


@pytest.mark.parametrize("path", ["/insights", "/usage?by=project", f"/sessions/{VARIED_ID}"])
def test_a_finger_hits_every_link_of_a_phone(browser: Browser, address: str, path: str) -> None:
    """WCAG 2.5.8 wants 24 pixels each way."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = Visit(context, address).open(path)
    expect(page.locator("main a")).not_to_have_count(0)
    assert page.evaluate(SMALL) == []
    context.close()


def test_a_phone_reaches_every_page_and_the_search(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(context, address)
    page = visit.open("/usage")
    expect(page.get_by_role("searchbox", name="Search everything")).to_be_visible()
    menu = page.get_by_role("navigation", name="All pages")
    menu.get_by_role("button", name="Usage").click()
    expect(menu.get_by_role("link")).to_have_count(6)
    menu.get_by_role("link", name="Insights").click()
    expect(page.get_by_role("heading", name="Insights")).to_be_visible()
    expect(menu.get_by_role("link", name="Files")).not_to_be_visible()
    context.close()
