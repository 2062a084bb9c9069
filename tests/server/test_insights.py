"""Insights over HTTP, as JSON and as CSV."""

from __future__ import annotations

import csv
import io

import pytest
from starlette.testclient import TestClient

from turnlog.store.insights import SECTIONS


def test_insights_are_those_of_the_filter(client: TestClient) -> None:
    found = client.get("/api/insights").json()
    assert found["zone"] == "UTC"
    assert sum(each["calls"] for each in found["activity"]) == 4
    assert {each["model"] for each in found["models"]} == {"large", "small", "secret"}
    assert next(each for each in found["models"] if each["model"] == "secret")["cost"] is None
    none = client.get("/api/insights", params={"since": "2026-11-03", "zone": "Europe/Berlin"}).json()
    assert (none["zone"], none["activity"], none["models"]) == ("Europe/Berlin", [], [])


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_is_csv(client: TestClient, section: str) -> None:
    answer = client.get("/api/insights", params={"section": section})
    assert answer.headers["content-type"].startswith("text/csv")
    assert f'filename="{section}.csv"' in answer.headers["content-disposition"]
    assert csv.DictReader(io.StringIO(answer.text)).fieldnames


@pytest.mark.parametrize("parameters", [{"zone": "Mars/Base"}, {"section": "weather"}, {"model": "large"}])
def test_what_there_is_not_is_refused(client: TestClient, parameters: dict[str, str]) -> None:
    answer = client.get("/api/insights", params=parameters)
    assert answer.status_code == 422
    assert next(iter(parameters)) in answer.text
