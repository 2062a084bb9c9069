"""No query of a hub crosses teams: a plan reads every table by its team, so that teams can be on other servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

import psycopg
import pytest

from support.hubs import Hub, save_session
from turnlog.store.postgres.connection import TeamConnection, connect

OF_NO_TEAM: Final = frozenset({"schema_version", "users", "identities", "secrets"})
"""A person may be in several teams, and is known by a secret before a team is."""

OF_ALL_TEAMS: Final = (
    "FROM turnlog.members m JOIN turnlog.teams t ON t.team_key = m.team_key WHERE m.user_id = $1",
    "FROM turnlog.teams WHERE retention_days > 0",
    "SELECT team_key FROM turnlog.teams ORDER BY team_key",
    "SELECT DISTINCT team_key FROM turnlog.blob_garbage",
)
"""Which teams there are on a server: those of a person, asked when somebody signs in, those that keep sessions for a
time only, and those with large contents that nobody uses any more.
"""

READS: Final = (
    *("/api/sessions?subagents=true&project=x&model=m&having=errors", "/api/projects", "/api/models", "/api/agents"),
    *("/api/usage?by=session&then_by=model", "/api/usage?by=project&task=T-1", "/api/insights", "/api/tool-calls"),
    *("/api/tools", "/api/files?path=/work", "/api/files/touched", "/api/runs", "/api/diagnostics", "/api/status"),
    *("/api/search?q=xylophone", "/api/tasks", "/api/tasks/T-1", "/api/sessions/turnlog:a", "/api/messages/a-2"),
    *("/api/sessions/turnlog:a/window", "/api/sessions/turnlog:a/outline", "/api/sessions/turnlog:a/replay"),
    *("/api/sessions/turnlog:a/export?as=json", "/api/sessions/turnlog:a/files", "/api/messages/a-2/raw"),
    *("/hub/v1/me", "/hub/v1/team", "/hub/v1/members", "/hub/v1/tokens", "/hub/v1/machines?everybody=true"),
    *("/hub/v1/audit", "/hub/v1/audit/team", "/hub/v1/sessions/turnlog:a/sharing", "/hub/v1/invitations"),
    *("/hub/v1/usage?by=person", "/hub/v1/usage?by=project", "/hub/v1/usage?by=model", "/hub/v1/usage?by=day"),
)


Statements = dict[str, Any]
"""Text of a statement -> the values of its parameters, when it was first run."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Statements:
    """Every statement that the driver is given."""
    found: Statements = {}
    execute = psycopg.RawCursor.execute

    def noted(self: Any, query: Any, values: Any = None, **options: Any) -> Any:
        found.setdefault(query.decode() if isinstance(query, bytes) else str(query), values)
        return execute(self, query, values, **options)

    monkeypatch.setattr(psycopg.RawCursor, "execute", noted)
    return found


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a plan."""
    if isinstance(value, dict):
        yield cast("dict[str, Any]", value)
        value = list(cast("dict[str, Any]", value).values())
    for inner in cast("list[Any]", value) if isinstance(value, list) else ():
        yield from nodes(inner)


def without_team(plan: Any) -> Iterator[str]:
    """Tables of a plan that are read without their team."""
    for node in nodes(plan):
        table = node.get("Relation Name", "")
        if not table or table in OF_NO_TEAM or table.startswith("pg_") or node["Node Type"] == "ModifyTable":
            continue
        conditions = [str(value) for key, value in node.items() if key.endswith(("Cond", "Filter"))]
        if not any("team_key" in condition for condition in conditions):
            yield table


def plans_without_team(url: str, statements: Statements) -> dict[str, list[str]]:
    """Statement -> the tables that it reads of all teams."""
    wrong: dict[str, list[str]] = {}
    with connect(url) as connection:
        for statement, values in sorted(statements.items()):
            if re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b", statement) is None:
                continue
            row = connection.execute(b"EXPLAIN (FORMAT JSON) " + statement.encode(), values).fetchone()
            assert row is not None
            if tables := sorted(without_team(row[0])):
                wrong[statement] = tables
    return wrong


def test_every_plan_reads_tables_by_their_team(new_hub: Hub, asked: Statements) -> None:
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    save_session(ana, "a", "xylophone", cwd="/work", ownership={"task": "T-1"})
    ana.put("/hub/v1/sessions/turnlog:a/sharing", json={"visibility": "people", "people": [new_hub.ids["Ben"]]})
    for client in (ana, ben):
        for path in READS:
            assert client.get(path).status_code in (200, 403, 422), path
    ana.patch("/api/tasks/T-1", json={"name": "x"})
    ana.delete("/api/tasks/T-1")
    ana.patch("/api/sessions/turnlog:a", json={"title": "y", "tags": ["t"]})
    ana.post("/api/sessions/turnlog:a/forget", json={"dry_run": False})
    ana.delete(f"/hub/v1/members/{new_hub.ids['Ben']}")
    assert len(asked) > 100
    found = plans_without_team(new_hub.url, dict(asked))
    assert [statement for statement in found if not any(known in statement for known in OF_ALL_TEAMS)] == []


def test_what_concerns_some_sessions_does_not_read_the_owners_of_all(new_hub: Hub, asked: Statements) -> None:
    ana = new_hub.browser("Ana", "owner")
    save_session(ana, "a", "xylophone", cwd="/work")
    with connect(new_hub.url) as connection:
        connection.execute(
            "INSERT INTO turnlog.memberships (team_key, session_key, position, message_key)"
            " SELECT 1, s.key, n, -n FROM turnlog.sessions s, generate_series(1000, 4000) n"
        )
        connection.execute(
            "INSERT INTO turnlog.session_owners (team_key, session_id, owner_user)"
            " SELECT 1, 'turnlog:' || n, 'somebody' FROM generate_series(1, 3000) n"
        )
        connection.execute("ANALYZE")
    asked.clear()
    for path in ("/sessions/turnlog:a", "/sessions/turnlog:a/window", "/messages/a-2", "/sessions?limit=1"):
        assert ana.get(f"/api{path}").status_code == 200
    plans = list(reader_plans(new_hub.url, new_hub.ids["Ana"], dict(asked)))
    assert len(plans) > 10
    assert [statement for statement, plan in plans if '"usage"' not in statement and reads_all_owners(plan)] == []


def reads_all_owners(plan: Any) -> bool:
    """Whether a plan makes a set of all sessions that somebody sees, to look them up in it."""
    sets = {f"SubPlan {number}" for number in re.findall(r"hashed SubPlan (\d+)", str(plan))}
    owners = [node for node in nodes(plan) if node.get("Relation Name") == "session_owners"]
    return any(node.get("Subplan Name") in sets for node in owners)


def reader_plans(url: str, viewer: str, statements: Statements) -> Iterator[tuple[str, Any]]:
    """The plans of queries for any values, as the hub makes them for somebody who reads."""
    with connect(url) as connection:
        store = TeamConnection(connection, 1, "the hub")
        store.begin_snapshot(viewer)
        for statement, values in statements.items():
            if not statement.startswith("SELECT") or '"turnlog"."' not in statement:
                continue
            row = connection.execute(b"EXPLAIN (FORMAT JSON) " + statement.encode(), values, prepare=True).fetchone()
            assert row is not None
            yield statement, row[0]


def test_the_check_sees_a_query_of_all_teams(new_hub: Hub) -> None:
    crossing = "SELECT count(*) FROM turnlog.sessions s JOIN turnlog.owners o ON o.key = s.owner_key WHERE s.key = 1"
    assert plans_without_team(new_hub.url, {crossing: None}) == {crossing: ["owners", "sessions"]}
