"""Usage, the inventory and the status over HTTP."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

import turnlog
from support.server_history import FORK, MAIN, SUBAGENT
from turnlog import paths
from turnlog.server import Settings
from turnlog.server.responses import (
    AgentColour,
    AgentsResponse,
    DiagnosticPage,
    ModelsResponse,
    ProjectsResponse,
    StatusResponse,
)
from turnlog.store.usage_report import UsageReport

OpenClient = Callable[..., TestClient]


def usage(client: TestClient, **parameters: str) -> UsageReport:
    return msgspec.json.decode(
        client.get("/api/usage", params=parameters).content, type=UsageReport, dec_hook=lambda kind, value: kind(value)
    )


def test_usage_by_day_says_what_it_does_not_know(client: TestClient) -> None:
    report = usage(client)
    assert report.by == "day"
    assert [row.name for row in report.rows] == ["2026-11-02"]
    totals = report.totals
    assert (totals.calls, totals.unpriced_calls, totals.unknown_calls) == (4, 1, 0)
    assert (totals.input, totals.cache_read, totals.output, totals.tokens) == (400, 4000, 200, 4600)
    assert totals.cost == pytest.approx(3.45)
    assert totals.reported_cost is None


def test_usage_by_other_things(client: TestClient) -> None:
    assert {row.name for row in usage(client, by="model").rows} == {"large", "small", "secret"}
    secret = next(row for row in usage(client, by="model").rows if row.name == "secret")
    assert secret.totals.cost is None
    sessions = {row.name: row.label for row in usage(client, by="session").rows}
    assert sessions[MAIN] == "Repair the shop"
    assert set(sessions) == {MAIN, FORK, SUBAGENT}
    assert [row.name for row in usage(client, by="agent").rows] == ["plain"]
    assert "/work/shop" in {row.name for row in usage(client, by="project").rows}


def test_usage_is_divided_again_and_in_days_of_a_zone(client: TestClient) -> None:
    (row,) = usage(client, then_by="model", zone="Pacific/Niue").rows
    assert row.name == "2026-11-01"
    assert {part.name: part.totals.calls for part in row.parts} == {"large": 1, "small": 2, "secret": 1}


def test_a_period_is_compared_with_the_one_before(client: TestClient) -> None:
    period = {"since": "2026-11-02T00:00:00Z", "until": "2026-11-03T00:00:00Z"}
    answer = client.get("/api/usage/comparison", params=period).json()
    assert (answer["earlier"]["until"], answer["later"]["since"]) == (period["since"], period["since"])
    assert (answer["earlier"]["totals"]["calls"], answer["later"]["totals"]["calls"]) == (0, 4)
    assert {row["name"] for row in answer["models"]} == {"large", "small", "secret"}
    assert {each["cause"]: each["cost_change"] for each in answer["causes"] if each["cost_change"]} == {
        "sessions": answer["cost_change"]
    }
    backwards = client.get("/api/usage/comparison", params={"since": period["until"], "until": period["since"]})
    assert (backwards.status_code, "since" in backwards.text) == (422, True)


@pytest.mark.parametrize("parameters", [{"zone": "Mars/Base"}, {"zone": "../x"}, {"then_by": "day"}])
def test_a_wrong_division_or_zone_is_refused(client: TestClient, parameters: dict[str, str]) -> None:
    answer = client.get("/api/usage", params=parameters)
    assert answer.status_code == 422
    assert next(iter(parameters)) in answer.text


@pytest.mark.parametrize(
    ("parameters", "calls"),
    [
        ({"model": "small"}, 2),
        ({"session": FORK}, 1),
        ({"project": "shop"}, 4),
        ({"since": "2026-11-03"}, 0),
        ({"until": "2026-11-03"}, 4),
        ({"agent": "codex"}, 0),
    ],
)
def test_usage_of_a_part(client: TestClient, parameters: dict[str, str], calls: int) -> None:
    assert usage(client, **parameters).totals.calls == calls


def test_usage_by_subagent_has_a_row_for_all_others(client: TestClient) -> None:
    rows = {row.name: row.totals.calls for row in usage(client, by="subagent").rows}
    assert rows == {SUBAGENT: 1, None: 3}


def test_a_report_says_what_it_contains(client: TestClient) -> None:
    report = usage(client, by="session")
    assert any("subagents" in sentence for sentence in report.contains)
    assert report.missing == ("1 call without a known price: their tokens are counted, their cost is not (secret).",)


@pytest.mark.parametrize(
    ("parameters", "accept", "kind"),
    [
        ({"format": "csv"}, "*/*", "text/csv"),
        ({}, "text/csv", "text/csv"),
        ({"format": "json"}, "text/csv", "application/json"),
        ({}, "application/json, text/csv", "application/json"),
        ({}, "*/*", "application/json"),
    ],
)
def test_usage_is_csv_where_that_is_requested(
    client: TestClient, parameters: dict[str, str], accept: str, kind: str
) -> None:
    answer = client.get("/api/usage", params={"by": "model", **parameters}, headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == kind


def test_no_cell_is_a_formula_and_nothing_unknown_is_a_number(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    client.patch(f"/api/sessions/{MAIN}", json={"title": '=HYPERLINK("x"), "a"'})
    text = client.get("/api/usage", params={"by": "session", "format": "csv"}).text
    lines = {line["session"]: line for line in csv.DictReader(io.StringIO(text))}
    assert lines[MAIN]["label"] == '\'=HYPERLINK("x"), "a"'
    model = client.get("/api/usage", params={"by": "model", "format": "csv"}).text
    (secret,) = [line for line in csv.DictReader(io.StringIO(model)) if line["model"] == "secret"]
    assert (secret["cost"], secret["reported_cost"], secret["unpriced_calls"]) == ("", "", "1")


def test_what_there_is(client: TestClient) -> None:
    projects = msgspec.json.decode(client.get("/api/projects").content, type=ProjectsResponse).items
    assert [(project.name, project.sessions) for project in projects] == [("blog", 1), ("shop", 2)]
    (agent,) = msgspec.json.decode(client.get("/api/agents").content, type=AgentsResponse).items
    assert (agent.agent, agent.sessions, agent.subagents) == ("plain", 3, 1)
    assert (agent.display_name, agent.colour) == ("plain", None)
    models = msgspec.json.decode(client.get("/api/models").content, type=ModelsResponse).items
    assert {model.name: model.calls for model in models} == {"small": 2, "large": 1, "secret": 1}


@pytest.mark.usefixtures("plain_agent")
def test_an_agent_is_shown_by_its_name_and_colour(client: TestClient) -> None:
    (agent,) = msgspec.json.decode(client.get("/api/agents").content, type=AgentsResponse).items
    assert agent.display_name == "Plain"
    assert agent.colour == AgentColour(light="#3d6b4f", dark="#8fd0a8")


def test_what_could_not_be_read(client: TestClient, library: Path) -> None:
    page = msgspec.json.decode(client.get("/api/diagnostics").content, type=DiagnosticPage)
    (diagnostic,) = page.items
    assert page.total == 1
    log = library.parent / "home" / "main.jsonl"
    assert diagnostic.path == str(log)
    assert log.read_bytes()[diagnostic.offset :].startswith(b"{this is no record")
    assert client.get("/api/diagnostics", params={"severity": "note"}).json()["items"] == []
    assert client.get("/api/diagnostics", params={"session": MAIN}).json()["total"] == 1


# -- status


def status(client: TestClient) -> StatusResponse:
    return msgspec.json.decode(client.get("/api/status").content, type=StatusResponse)


def test_the_status_counts_what_there_is(client: TestClient, library: Path) -> None:
    found = status(client)
    assert found.version == turnlog.__version__
    assert found.sample is False
    assert found.sync.state == "off"
    assert (found.store.sessions, found.store.subagents, found.store.messages) == (3, 1, 8)
    assert found.store.diagnostics == 1
    assert found.store.path == str(library)
    assert found.change_sequence > 0


def test_the_sample_is_marked(library: Path, open_client: OpenClient) -> None:
    assert status(open_client(library, Settings(sample=True))).sample is True


def test_the_change_sequence_grows_with_every_change(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    before = status(client).change_sequence
    assert status(client).change_sequence == before
    client.patch(f"/api/sessions/{MAIN}", json={"starred": True})
    assert status(client).change_sequence > before


def test_usage_has_the_budgets_that_the_user_has_set(client: TestClient, home: Path) -> None:
    assert usage(client).budgets == ()
    paths.settings_path().parent.mkdir(parents=True, exist_ok=True)
    paths.settings_path().write_text("[budgets]\nday = 0.5\n")
    (budget,) = usage(client, agent="codex").budgets
    assert (budget.period, float(budget.limit), len(budget.name)) == ("day", 0.5, len("2026-11-20"))


def test_settings_that_cannot_be_used_are_an_error_that_names_them(client: TestClient, home: Path) -> None:
    paths.settings_path().parent.mkdir(parents=True, exist_ok=True)
    paths.settings_path().write_text("[budgets]\nday = -1\n")
    answer = client.get("/api/usage")
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "settings")
    assert str(paths.settings_path()) in answer.json()["error"]["message"]
