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


def test_the_context_of_a_session_is_json_and_csv(client: TestClient) -> None:
    (session, *_) = client.get("/api/sessions", params={"sort": "tokens"}).json()["items"]
    address = f"/api/sessions/{session['id']}/context"
    steps = client.get(address).json()["items"]
    assert [step["position"] for step in steps] == sorted(step["position"] for step in steps)
    assert any(step["context"] for step in steps)
    answer = client.get(address, params={"format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == len(steps)
    assert client.get("/api/sessions/plain:nobody/context").status_code == 404


@pytest.mark.parametrize("parameters", [{"hour": "8-01"}, {"hour": "1-24"}, {"hour": "1-01", "zone": "Mars/Base"}])
def test_an_hour_of_no_week_is_refused(client: TestClient, parameters: dict[str, str]) -> None:
    assert client.get("/api/sessions", params=parameters).status_code == 422


@pytest.mark.parametrize("parameters", [{"zone": "Mars/Base"}, {"section": "weather"}, {"model": "large"}])
def test_what_there_is_not_is_refused(client: TestClient, parameters: dict[str, str]) -> None:
    answer = client.get("/api/insights", params=parameters)
    assert answer.status_code == 422
    assert next(iter(parameters)) in answer.text
