"""The usage page in a browser."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from support.browser_visit import Visit, wait_until

pytestmark = pytest.mark.browser


def test_days_are_a_chart_and_a_table_that_says_what_it_contains(visit: Visit) -> None:
    page = visit.open("/usage")
    expect(page.get_by_role("figure", name="Cost by day")).to_be_visible()
    expect(page.locator(".chart-bar")).to_have_count(1)
    total = page.get_by_role("row", name="Total")
    expect(total).to_contain_text("≥ $5.1")
    unpriced = "without a known price: their tokens are counted, their cost is not (mystery-model-9)."
    expect(page.get_by_text(unpriced)).to_be_visible()


def test_a_day_is_under_its_bar(visit: Visit) -> None:
    page = visit.open("/usage")
    expect(page.locator(".chart-bar")).to_have_count(1)
    wait_until(page.locator("main"), UNDER_ITS_BAR)  # it is drawn again once it knows its width


UNDER_ITS_BAR = """main => {
  const [name, bar] = ['.visx-axis-bottom .chart-label text', '.chart-bar'].map(found => {
    const box = [...main.querySelectorAll(found)].at(-1)?.getBoundingClientRect();
    return box && box.x + box.width / 2;
  });
  return Math.abs(name - bar) < 2;
}"""


def test_a_bar_leads_to_the_sessions_of_its_day(visit: Visit) -> None:
    page = visit.open("/usage?then_by=project")
    expect(page.get_by_role("figure", name="Cost by day and project")).to_be_visible()
    page.locator(".chart-bar").first.click()
    expect(page).to_have_url(re.compile(r"project=.*&since=\d{4}-\d\d-\d\d&until="))
    expect(page.locator(".session-row")).not_to_have_count(0)


def test_two_periods_are_compared_with_the_reasons(visit: Visit) -> None:
    page = visit.open("/usage?since=2000-01-01")
    page.get_by_role("button", name="Compare").click()
    both = page.get_by_role("region", name="Both periods")
    expect(both.get_by_role("row", name="Cost")).to_contain_text("≥ $5.1")
    models = page.get_by_role("region", name="Models")
    expect(models.get_by_role("row", name="mystery-model-9")).to_contain_text("unknown")
    models.get_by_role("link", name="mystery-model-9").click()
    expect(page.locator(".session-row")).not_to_have_count(0)


def test_rows_are_divided_again(visit: Visit) -> None:
    page = visit.open("/usage?by=month")
    page.get_by_label("Then by").select_option("Model")
    expect(page).to_have_url(re.compile("then_by=model"))
    expect(page.locator(".usage-part").filter(has_text="mystery-model-9")).to_have_count(1)


def test_a_row_leads_to_its_sessions(visit: Visit) -> None:
    page = visit.open("/usage?by=project")
    page.get_by_role("link", name="shop").click()
    expect(page.locator(".session-row")).to_have_count(1)
    expect(page.get_by_label("Project")).to_have_value("/home/ada/shop")


def test_usage_downloads_as_csv(visit: Visit) -> None:
    page = visit.open("/usage?by=model&agent=claude-code")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert download.value.suggested_filename == "usage-by-model.csv"
    assert rows[0][:3] == ["model", "label", "calls"]
    assert any(row[0] == "mystery-model-9" for row in rows)


def test_a_division_that_there_is_not_is_reported(visit: Visit) -> None:
    visit.expect_refusal(422)
    page = visit.open("/usage?by=moon")
    expect(page.get_by_role("heading", name="This choice cannot be used")).to_be_visible()
    expect(page.locator(".usage-table")).to_have_count(0)


def test_large_figures_and_the_row_of_totals_are_the_same(visit: Visit) -> None:
    page = visit.open("/usage?by=model")
    total = page.get_by_role("row", name="Total")
    for name in ("Output tokens", "All tokens"):
        large = page.locator(".usage-summary div").filter(has_text=name).locator("dd").first
        column = page.get_by_role("columnheader", name=name.removesuffix(" tokens") if "Out" in name else name)
        place = column.evaluate("cell => cell.cellIndex")
        expect(large).to_have_text(total.locator("th, td").nth(place).inner_text())
