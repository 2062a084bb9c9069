"""What requests may ask: page sizes, times, and names that do not exist."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from support.server_history import MAIN
from turnlog.hub.routes.figures import AuditQuery
from turnlog.server import Settings, create_app
from turnlog.server.background import PassProgress
from turnlog.server.routes.overview import UsageQuery
from turnlog.server.routes.parameters import ListPage, LongPage, Moment, SmallPage, WindowSize
from turnlog.server.routes.sessions import SessionQuery
from turnlog.server.routes.tool_calls import ToolCallQuery


@pytest.mark.parametrize(
    ("size", "default", "largest"),
    [
        (TypeAdapter[int](ListPage), 50, 200),
        (TypeAdapter[int](LongPage), 100, 500),
        (TypeAdapter[int](SmallPage), 20, 100),
        (TypeAdapter[int](WindowSize), 40, 200),
    ],
)
def test_page_sizes_that_make_no_sense_are_the_default(size: TypeAdapter[int], default: int, largest: int) -> None:
    """C-b: 0, -1, NaN give the default; 10^6 gives the most there is."""
    for value in ("0", "-1", "NaN", "inf", "1.5", "ten", "", " "):
        assert size.validate_python(value) == default
    assert size.validate_python("1000000") == largest
    assert size.validate_python("9" * 400) == largest
    assert size.validate_python(str(largest + 1)) == largest
    assert size.validate_python("1") == 1


@pytest.mark.parametrize("limit", ["0", "-1", "NaN", "1000000"])
def test_odd_page_sizes_are_answered(client: TestClient, limit: str) -> None:
    for address in ("/api/sessions", "/api/tool-calls", "/api/diagnostics", f"/api/sessions/{MAIN}/window"):
        response = client.get(address, params={"limit": limit})
        assert response.status_code == 200
        assert response.json()["items"]


def test_a_page_size_is_kept(client: TestClient) -> None:
    assert len(client.get("/api/sessions", params={"limit": "2"}).json()["items"]) == 2


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00.250+02:00", datetime(2026, 11, 20, 8, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_times_may_name_their_zone(value: str, moment: datetime) -> None:
    assert TypeAdapter[datetime](Moment).validate_python(value) == moment


@pytest.mark.parametrize("value", ["soon", "2026-13-01", "last century", "1732100000", "2026-W60-1"])
@pytest.mark.parametrize("name", ["since", "until"])
def test_other_times_are_422(client: TestClient, name: str, value: str) -> None:
    for address in ("/api/sessions", "/api/usage", "/api/tool-calls"):
        error = client.get(address, params={name: value}).json()["error"]
        assert error["type"] == "invalid_parameter"
        assert [wrong["field"] for wrong in error["detail"]] == [name]


@pytest.mark.parametrize(
    ("address", "parameters", "field"),
    [
        ("/api/sessions", {"projekt": "x"}, "projekt"),
        ("/api/sessions", {"sort": "size"}, "sort"),
        ("/api/sessions", {"relationship": "cousin"}, "relationship"),
        ("/api/sessions", {"starred": "perhaps"}, "starred"),
        ("/api/usage", {"by": "decade"}, "by"),
        ("/api/tool-calls", {"failed": "2"}, "failed"),
        ("/api/tools", {"limit": "3"}, "limit"),
        ("/api/diagnostics", {"severity": "fatal"}, "severity"),
        ("/api/messages/m1", {"sesion": "x"}, "sesion"),
    ],
)
def test_what_cannot_be_asked_is_422_and_named(
    client: TestClient, address: str, parameters: dict[str, str], field: str
) -> None:
    """R-C16."""
    response = client.get(address, params=parameters)
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["type"] == "invalid_parameter"
    assert [wrong["field"] for wrong in error["detail"]] == [field]
    assert field in error["message"]


def test_every_parameter_of_a_filter_reaches_the_store() -> None:
    query = SessionQuery.model_validate({"agent": "a", "tag": "t", "subagents": "true", "since": "2026-11-20"})
    wanted = query.to_filter()
    assert (wanted.agent, wanted.tag, wanted.subagents) == ("a", "t", True)
    assert wanted.since == datetime(2026, 11, 20, tzinfo=UTC)
    calls = ToolCallQuery.model_validate({"tool": "Bash", "limit": "3", "cursor": "x"}).to_filter()
    assert calls.tool == "Bash"


@pytest.mark.parametrize("parameter", ["agent", "project", "model", "tool"])
def test_a_name_that_nothing_has_is_422_with_a_sentence(client: TestClient, parameter: str) -> None:
    """An empty list would look like an answer; the near names are in the sentence."""
    addresses = {
        "agent": ("sessions", "search", "usage", "insights", "tool-calls", "tools", "files/touched"),
        "project": ("sessions", "search", "usage", "insights", "tool-calls", "tools", "files/touched"),
        "model": ("sessions", "usage"),
        "tool": ("search", "tool-calls", "tools"),
    }
    for address in addresses[parameter]:
        response = client.get(f"/api/{address}", params={parameter: "nosuch"})
        assert response.status_code == 422, address
        assert response.json()["error"]["detail"][0]["field"] == parameter
        assert f"there is no {parameter} 'nosuch'; there are " in response.json()["error"]["message"]


@pytest.mark.parametrize("parameter", ["branch", "task"])
def test_a_branch_or_task_that_no_session_has_is_422_with_the_near_ones(client: TestClient, parameter: str) -> None:
    response = client.get("/api/sessions", params={parameter: "nosuch"})
    assert response.status_code == 422
    assert response.json()["error"]["detail"][0]["field"] == parameter
    assert f"there is no {parameter} 'nosuch'" in response.json()["error"]["message"]


def test_a_tag_that_no_session_has_is_an_empty_list(client: TestClient) -> None:
    answer = client.get("/api/sessions", params={"tag": "nosuch"})
    assert (answer.status_code, answer.json()["items"]) == (200, [])


def test_a_near_branch_is_named(client: TestClient) -> None:
    message = client.get("/api/sessions", params={"branch": "mian"}).json()["error"]["message"]
    assert message == "cannot be used: branch: there is no branch 'mian': did you mean main?"
    assert client.get("/api/sessions", params={"branch": "main", "since": "2031-01-01"}).json()["items"] == []


def test_the_near_names_are_named(client: TestClient) -> None:
    message = client.get("/api/sessions", params={"project": "shopp"}).json()["error"]["message"]
    assert message == "cannot be used: project: there is no project 'shopp': did you mean shop?"
    response = client.get("/api/search", params={"q": "word role:asistant"})
    assert response.json()["error"]["detail"] == [
        {"field": "q", "reason": "there is no role 'asistant': did you mean assistant?"}
    ]


@pytest.mark.parametrize("query", [{"agent": "codex"}, {"project": "shop", "since": "2031-01-01"}])
def test_a_name_that_exists_may_have_nothing(client: TestClient, query: dict[str, str]) -> None:
    assert client.get("/api/sessions", params=query).json()["items"] == []


def test_any_name_may_come_while_logs_are_read_for_the_first_time(library: Path) -> None:
    progress = PassProgress()
    app = create_app(library, Settings(static_folder=library.parent / "no web app"), progress)
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:

        def status() -> int:
            return client.get("/api/tool-calls", params={"tool": "nosuch"}).status_code

        progress.begin()
        assert status() == 200
        progress.end([])
        assert status() == 422
        progress.begin()
        assert status() == 422


def test_days_are_those_of_the_zone_of_the_query_else_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are those of the command; a word, a week, a month or a year of `until` holds to its end."""
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        local = SessionQuery.model_validate({"since": "2026-11-20", "until": "2026-11-20T10:00:00"})
        assert local.since == datetime(2026, 11, 19, 11, tzinfo=UTC)
        assert local.until == datetime(2026, 11, 19, 21, tzinfo=UTC)
        tokyo = UsageQuery.model_validate({"zone": "Asia/Tokyo", "since": "2026-10", "until": "2026-11"})
        assert tokyo.since == datetime(2026, 9, 30, 15, tzinfo=UTC)
        assert tokyo.until == datetime(2026, 11, 30, 15, tzinfo=UTC)
        utc = UsageQuery.model_validate({"since": "2026-11-20", "until": "2026-11-21"})
        assert (utc.since, utc.until) == (datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))
        days = [SessionQuery.model_validate({"until": day}).until for day in ("2026-11-20", "20261120", "2026-W47-5")]
        assert set(days) == {local.since}
        week = SessionQuery.model_validate({"until": "2026-W47"}).until
        assert week == datetime(2026, 11, 22, 11, tzinfo=UTC)
        yesterday = SessionQuery.model_validate({"until": "yesterday"}).until
        assert yesterday == datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        assert AuditQuery.model_validate({"since": "2026-11-20"}).since == datetime(2026, 11, 20, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_unreadable_time_says_what_can_be_written(client: TestClient) -> None:
    for address in ("sessions?since=soon", "usage?until=soon", "search?q=shop&since=soon", "search?q=after:soon"):
        refused = client.get(f"/api/{address}")
        assert refused.status_code in (400, 422), address
        message = refused.json()["error"]["message"]
        assert "'soon' is not a time: " in message or "after:soon names no time: " in message
        assert "write a day (2026-11-20), a week (2026-W47)" in message
