"""Budgets of a team on a hub: who sets them, who is warned, and that nobody is told more than team figures say."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from support.hubs import Hub, save_session
from turnlog import paths
from turnlog.hub.people.figures import Figures

PRICED = "claude-opus-4-5"
"""5 $ for a million tokens of input."""

Budgets = dict[tuple[str, str | None], dict[str, Any]]


def set_budget(client: TestClient, scope: str, limit: float, subject: str | None = None) -> int:
    return client.post("/hub/v1/budgets", json={"scope": scope, "subject": subject, "limit": limit}).status_code


def budgets(client: TestClient) -> Budgets:
    answer = client.get("/hub/v1/budgets")
    assert answer.status_code == 200, answer.text
    return {(each["scope"], each["subject"]): each for each in answer.json()["items"]}


def spend(client: TestClient, name: str, folder: str, dollars: float, model: str | None = PRICED) -> None:
    """Have a session of this month that cost so much."""
    session = save_session(client, name, name, cwd=folder)
    message = {
        "id": f"{name}-3",
        "role": "assistant",
        "model": model,
        "created_at": datetime.now(UTC).isoformat(),
        "parts": [{"type": "text", "text": "words"}],
        "usage": {"input": round(dollars / 5 * 1_000_000), "output": 0},
    }
    answer = client.post(f"/api/sessions/{session}/messages", json={"messages": [message]})
    assert answer.status_code == 200, answer.text


def always_count(hub: Hub) -> None:
    """Count sums anew with every question."""
    hub.people.figures = hub.people.budgets.figures = Figures(hub.database, fresh_seconds=-1)


def test_a_budget_warns_from_80_percent_but_not_about_small_groups(new_hub: Hub) -> None:
    always_count(new_hub)
    olga = new_hub.browser("Olga", "owner")
    people = [new_hub.browser(name) for name in ("Ana", "Ben", "Cid", "Dan", "Eve")]
    for scope, subject in (("team", None), ("project", "/work/shop"), ("project", "/work/two"), ("project", "/none")):
        assert set_budget(olga, scope, 100, subject) == 200
    for client, name in zip(people[:4], "abcd", strict=True):
        spend(client, name, "/work/shop", 15)
    assert {each["spent"] for each in budgets(olga).values()} == {None}  # four people
    spend(people[4], "e", "/work/shop", 15)
    spend(people[0], "f", "/work/shop", 4.9)
    team, shop = budgets(olga)["team", None], budgets(olga)["project", "/work/shop"]
    assert (team["spent"], team["state"]) == (shop["spent"], shop["state"]) == (79.9, "within")
    spend(people[1], "g", "/work/shop", 0.1)
    team, shop = budgets(olga)["team", None], budgets(olga)["project", "/work/shop"]
    assert (team["state"], shop["state"], shop["spent"]) == ("nearly spent", "nearly spent", 80)
    assert team["month"] == f"{datetime.now(UTC):%Y-%m}"
    spend(people[1], "h", "/work/shop", 20.1)
    assert budgets(olga)["project", "/work/shop"]["state"] == "exceeded"

    # Two people in a project of their own: it is the same whether they used it or nobody did. And the project of all
    # five is no more told of than on the page, where the difference to the team would be those two.
    spend(people[0], "i", "/work/two", 500)
    spend(people[1], "j", "/work/two", 500)
    hidden = [budgets(olga)["project", folder] for folder in ("/work/two", "/none", "/work/shop")]
    assert {(each["spent"], each["unpriced_calls"], each["state"]) for each in hidden} == {(None, None, None)}
    assert budgets(olga)["team", None]["spent"] == 1100.1


def test_members_are_warned_without_figures_about_their_own_budgets(new_hub: Hub) -> None:
    always_count(new_hub)
    olga, vic = new_hub.browser("Olga", "owner"), new_hub.browser("Vic", "viewer")
    people = [new_hub.browser(name) for name in ("Ana", "Ben", "Cid", "Dan", "Eve")]
    for client, name in zip(people, "abcde", strict=True):
        spend(client, name, "/work/shop", 20)
    ana, ben = new_hub.ids["Ana"], new_hub.ids["Ben"]
    for scope, subject in (("team", None), ("project", "/work/shop"), ("person", ana), ("person", ben)):
        assert set_budget(olga, scope, 21, subject) == 200
    seen = budgets(people[0])
    assert set(seen) == {("team", None), ("project", "/work/shop"), ("person", ana)}
    for shared in (seen["team", None], seen["project", "/work/shop"]):
        assert (shared["state"], shared["spent"], shared["unpriced_calls"]) == ("exceeded", None, None)
    assert (seen["person", ana]["state"], seen["person", ana]["spent"]) == ("nearly spent", 20)
    assert set(budgets(vic)) == {("team", None)}
    # Those who set it do not learn what one person spends, unless the team has agreed to groups of one.
    assert budgets(olga)["person", ana]["spent"] is None
    assert budgets(olga)["person", ana]["state"] is None
    assert olga.patch("/hub/v1/team", json={"smallest_group": 1}).status_code == 200
    assert budgets(olga)["person", ana]["spent"] == 20
    assert olga.delete(f"/hub/v1/members/{ana}").status_code == 204
    assert ("person", ana) not in budgets(olga)


def test_only_owners_and_admins_set_and_drop_budgets_of_their_own_team(new_hub: Hub) -> None:
    olga, zoe, ben = new_hub.browser("Olga", "owner"), new_hub.browser("Zoe", "admin"), new_hub.browser("Ben")
    assert set_budget(zoe, "team", 10) == 200
    assert set_budget(olga, "team", 12.5) == 200  # there is one budget of the team
    found = budgets(zoe)["team", None]
    assert found["limit"] == 12.5
    assert set_budget(ben, "team", 1) == 403
    assert ben.delete(f"/hub/v1/budgets/{found['id']}").status_code == 403
    other = olga.post("/hub/v1/teams", json={"name": "Other"}).json()["id"]
    eve = new_hub.browser("Eve", "owner", team=int(other))
    assert budgets(eve) == {}
    assert eve.delete(f"/hub/v1/budgets/{found['id']}").status_code == 404
    assert set_budget(eve, "person", 1, new_hub.ids["Ben"]) == 404
    for body in ({"scope": "team", "limit": 0}, {"scope": "team", "subject": "x", "limit": 1}):
        assert zoe.post("/hub/v1/budgets", json=body).status_code == 422
    assert zoe.post("/hub/v1/budgets", json={"scope": "project", "limit": 1}).status_code == 422
    assert zoe.delete(f"/hub/v1/budgets/{found['id']}").status_code == 204
    assert budgets(zoe) == {}
    # A project of which one sees nothing is warned of, whether it is there or not.
    spend(olga, "a", "/work/shop", 1)
    said: dict[tuple[str, str], str | None] = {}
    for name, client in (("olga", olga), ("zoe", zoe)):
        for subject in ("/work/shop", "/work/shp"):
            body = {"scope": "project", "limit": 1, "subject": subject}
            said[name, subject] = client.post("/hub/v1/budgets", json=body).json()["note"]
    assert said["olga", "/work/shop"] is None
    assert said["olga", "/work/shp"] == "of what you see, there is no project '/work/shp': did you mean /work/shop?"
    assert said["zoe", "/work/shop"] == "of what you see, there is no project '/work/shop'"
    assert said["zoe", "/work/shp"] == "of what you see, there is no project '/work/shp'"
    actions = [each["action"] for each in zoe.get("/hub/v1/audit/team").json()["items"]]
    assert {"set a budget", "drop a budget"} <= set(actions)


def test_unknown_prices_are_reported_alike_in_page_csv_and_prometheus(new_hub: Hub) -> None:
    always_count(new_hub)
    olga = new_hub.browser("Olga", "owner")
    olga.patch("/hub/v1/team", json={"smallest_group": 1})
    ana = new_hub.browser("Ana")
    assert set_budget(olga, "team", 10) == 200
    assert set_budget(olga, "project", 10, "/work/new") == 200
    assert budgets(olga)["team", None]["spent"] == 0
    spend(ana, "a", "/work/new", 3, model="nobody-prices-this")
    new = budgets(olga)["project", "/work/new"]
    assert (new["spent"], new["unpriced_calls"], new["state"]) == (None, 2, None)
    spend(ana, "b", "/work/shop", 9.123456)
    team = budgets(olga)["team", None]
    assert (team["spent"], team["state"]) == (9.123455, "nearly spent")  # whole tokens

    page = olga.get("/hub/v1/usage", params={"by": "project"}).json()
    answer = olga.get("/hub/v1/usage", params={"by": "project", "format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert {row["project"]: row["cost"] for row in rows} == {
        row["name"]: "" if row["sums"]["cost"] is None else str(row["sums"]["cost"]) for row in page["rows"]
    }
    assert sum(Decimal(row["cost"] or 0) for row in rows) == Decimal(str(page["totals"]["cost"]))

    metrics = new_hub.client().get("/metrics").text
    samples = dict(re.findall(r'(turnlog_hub_budget_\w+\{budget="\w+",scope="\w+",team="1"\}) (\S+)', metrics))
    labels = f'{{budget="{team["id"]}",scope="team",team="1"}}'
    assert float(samples[f"turnlog_hub_budget_spent_dollars{labels}"]) == page["totals"]["cost"] == team["spent"]
    assert float(samples[f"turnlog_hub_budget_limit_dollars{labels}"]) == 10
    unknown = f'{{budget="{new["id"]}",scope="project",team="1"}}'
    assert f"turnlog_hub_budget_spent_dollars{unknown}" not in samples
    assert float(samples[f"turnlog_hub_budget_unpriced_calls{unknown}"]) == 2
    assert "/work/" not in metrics


def test_reports_have_no_budgets_of_who_runs_the_hub(new_hub: Hub, home: Path) -> None:
    settings = paths.settings_path()
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[budgets]\nmonth = 5\n")
    ben = new_hub.browser("Ben")
    spend(ben, "one", "/w/shop", 9)
    assert ben.get("/api/usage").json()["budgets"] == []
