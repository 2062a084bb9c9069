"""Insights: activity, projects, tools, commands, files, models, subagents, compactions and errors."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.agents.changes import Link
from turnlog.errors import NotFoundError
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Message,
    MessageError,
    Origin,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolState,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import HourOfWeek, InsightFilter, SessionFilter, Store
from turnlog.store.choices import SESSION_HAVINGS
from turnlog.store.commands import call_head, command_head
from turnlog.store.insights import SECTIONS, Insights, context_to_csv, to_csv
from turnlog.store.periods import QUARTER_HOUR, shifts, start_of
from turnlog.store.sqlite.reading import Connections

DAY = 24 * 60


def test_a_short_list_of_files_is_the_beginning_of_the_whole_one(tmp_path: Path) -> None:
    """Also of a file that is edited under more names than others, each of them rarely."""
    written = ("till.py", "./till.py", "x/../till.py", "../shop/till.py", "/w/shop/till.py", "/w/./shop/till.py")
    others = [f"/w/shop/other{number}.py" for number in range(8)]
    home = tmp_path / "named"
    home.mkdir()
    for session, folder in enumerate(("/w/shop", "/w/shop", "/elsewhere")):
        log = Log(home, f"s{session}")
        log.session(project_path=folder, cwd=folder)
        edits = [path for path in (*written, *others, *others) if session == 0 or path.startswith("till")]
        calls = [
            call(f"e{session}.{number}", "Edit", 4 + session, OK, {"file_path": path}, ToolKind.EDIT)
            for number, path in enumerate(edits)
        ]
        log.message(answer(f"a{session}", 1, Usage(input=1), *calls), turn=1, step=1)
    read_home(tmp_path / "named.db", home)
    with open_store(tmp_path / "named.db") as opened:
        whole = opened.insights().files
        assert [(each.path, each.edits, each.sessions, each.last_at) for each in whole[:2]] == [
            ("/w/shop/till.py", 7, 2, at(5)),
            ("/w/shop/other0.py", 2, 1, at(4)),
        ]
        for limit in (1, 3, 20):
            assert opened.insights(limit=limit).files == whole[:limit]


SECOND = 1 / 60


def call(id: str, name: str, minute: float, state: ToolState, input: dict[str, Any], kind: ToolKind) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=id,
        tool_name=name,
        kind=kind,
        state=state,
        input=msgspec.Raw(msgspec.json.encode(input)),
        started_at=at(minute),
    )


def prompt(id: str, minute: float) -> Message:
    return Message(id=id, role="user", origin=Origin.PROMPT, created_at=at(minute), parts=(TextPart(text="Go on"),))


def answer(id: str, minute: float, usage: Usage | None, *parts: ToolCallPart, model: str = "large") -> Message:
    return Message(id=id, role="assistant", model=model, created_at=at(minute), usage=usage, parts=parts)


OK, FAILED, DENIED = ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR, ToolState.OUTPUT_DENIED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The prompts are at 9:00 UTC on Monday, and the subagent works on Tuesday."""
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    shop.session(project_path="/w/shop", cwd="/w/shop")
    shop.message(prompt("p1", 0), turn=1)
    runs = [
        call("c1", "Bash", 1, OK, {"command": "cd shop && CI=1 npm test -- --watch"}, ToolKind.EXECUTE),
        call("c2", "Bash", 2, FAILED, {"command": ["bash", "-lc", "npm test"]}, ToolKind.EXECUTE),
        call("c3", "Bash", 3, DENIED, {"command": "rm -rf /"}, ToolKind.EXECUTE),
    ]
    shop.message(answer("a1", 1, Usage(input=1000, cache_read=3000, output=500), *runs), turn=1, step=1)
    edits = [
        call("e1", "Edit", 4, OK, {"file_path": "/w/shop/till.py"}, ToolKind.EDIT),
        call("e2", "Edit", 4, OK, {"file_path": "till.py"}, ToolKind.EDIT),
        call("e3", "Edit", 4, FAILED, {"file_path": "till.py"}, ToolKind.EDIT),
        call("e4", "Read", 4, OK, {"file_path": "/w/shop/read.py"}, ToolKind.READ),
    ]
    shop.message(answer("a2", 4, Usage(input=500, output=100), *edits), turn=1, step=2)
    shop.event(CompactionEvent(id="k1", created_at=at(5), trigger="auto", tokens_before=1000))
    shop.event(CompactionEvent(id="k2", created_at=at(6), trigger="auto", tokens_before=3000))
    shop.event(ErrorEvent(id="f1", created_at=at(7), error_text="Too many requests", kind="api", status=429))
    shop.event(ErrorEvent(id="f2", created_at=at(8), error_text="hook failed", kind="hook"))
    child = Log(home, "shop.scout")
    child.link(Link(kind="subagent", parent_session_id="plain:shop", child_session_id="plain:shop.scout"))
    child.message(answer("s1", DAY, Usage(input=800, output=100), model="small"))
    site = Log(home, "site")
    site.session(project_path="/w/site")
    site.message(answer("t1", 30 * DAY, None, model="secret"))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as opened:
        yield opened


@pytest.fixture
def report(store: Store) -> Insights:
    return store.insights()


def test_activity_has_prompts_and_calls_by_hour_of_the_week(store: Store) -> None:
    def hours(zone: str) -> list[tuple[int, ...]]:
        found = store.insights(InsightFilter(project="shop"), zone=ZoneInfo(zone)).activity
        return [(each.weekday, each.hour, each.prompts, each.calls) for each in found]

    assert hours("UTC") == [(1, 9, 1, 2), (2, 9, 0, 1)]
    assert hours("Asia/Tokyo") == [(1, 18, 1, 2), (2, 18, 0, 1)]


def ids(store: Store, wanted: SessionFilter) -> list[str]:
    return sorted(session.id for session in store.sessions(wanted).items)


def test_an_hour_of_the_week_leads_to_its_sessions(store: Store) -> None:
    """A subagent's hour leads to the session that it belongs to, which is the one in lists."""
    assert ids(store, SessionFilter(hour=HourOfWeek(1, 9))) == ["plain:shop"]
    assert ids(store, SessionFilter(hour=HourOfWeek(2, 9))) == ["plain:shop"]
    assert ids(store, SessionFilter(hour=HourOfWeek(2, 9), subagents=True)) == ["plain:shop", "plain:shop.scout"]
    assert ids(store, SessionFilter(hour=HourOfWeek(1, 18, ZoneInfo("Asia/Tokyo")))) == ["plain:shop"]
    assert ids(store, SessionFilter(hour=HourOfWeek(1, 18))) == []
    for each in store.insights(zone=UTC).activity:
        assert ids(store, SessionFilter(hour=HourOfWeek(each.weekday, each.hour)))
    assert ids(store, SessionFilter(hour=HourOfWeek(2, 9), until=at(60))) == []


def test_compactions_errors_and_subagents_lead_to_their_sessions(store: Store) -> None:
    for having in SESSION_HAVINGS:
        assert ids(store, SessionFilter(having=having)) == ["plain:shop"]
    assert ids(store, SessionFilter(having="error", project="site")) == []


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"])
def test_the_clocks_of_a_zone_are_known_for_every_quarter_hour(zone: str) -> None:
    """A year has two nights in which the clocks change; in Lord Howe they change by half an hour."""
    first = 20_700
    days = range(first, first + 365)
    found = shifts(days, ZoneInfo(zone))
    assert len(found) == (1 if zone in ("UTC", "Asia/Kathmandu") else 3)
    for quarter_hour in range(first * 96, (first + 365) * 96):
        shift = [shift for start, shift in found if start <= quarter_hour][-1]
        assert start_of(quarter_hour, ZoneInfo(zone)).utcoffset() == shift * QUARTER_HOUR


def test_activity_is_that_of_the_clocks_on_both_sides_of_a_change(tmp_path: Path) -> None:
    home = tmp_path / "autumn"
    home.mkdir()
    log = Log(home, "autumn")
    for number, time in enumerate((datetime(2026, 10, 24, 7, tzinfo=UTC), datetime(2026, 10, 25, 8, tzinfo=UTC))):
        log.message(Message(id=f"a{number}", role="assistant", created_at=time, usage=Usage(input=1, output=1)))
    read_home(tmp_path / "autumn.db", home)
    with open_store(tmp_path / "autumn.db") as opened:
        found = opened.insights(zone=ZoneInfo("Europe/Berlin"))
    assert [(each.weekday, each.hour) for each in found.activity] == [(6, 9), (7, 9)]
    assert [each.period for each in found.projects] == ["2026-10-24", "2026-10-25"]


def test_projects_have_sessions_and_cost_by_day(report: Insights) -> None:
    assert report.granularity == "day"
    found = [(each.period, each.label, each.sessions, each.calls, each.cost) for each in report.projects]
    assert [(*each[:4], None if each[4] is None else float(each[4])) for each in found] == [
        ("2026-11-02", "shop", 1, 2, 5.1),
        ("2026-11-03", "shop", 0, 1, 0.9),
        ("2026-12-02", "site", 1, 1, None),
    ]


def test_commands_of_one_program_count_together(report: Insights) -> None:
    found = {each.command: (each.calls, each.failed) for each in report.commands}
    assert found == {"npm test": (2, 1), "rm": (1, 0)}
    npm = next(each for each in report.commands if each.command == "npm test")
    assert (npm.median_ms, npm.longest_ms, npm.unknown_durations) == (None, None, 2)
    assert (npm.longest_session_id, npm.longest_message_id) == ("plain:shop", "a1")


def test_tools_distinguish_failures_from_refusals(report: Insights) -> None:
    found = {each.tool_name: (each.calls, each.failed, each.denied) for each in report.tools}
    assert found == {"Bash": (3, 1, 1), "Edit": (3, 1, 0), "Read": (1, 0, 0)}


@pytest.mark.parametrize("filter", [InsightFilter(), InsightFilter(project="shop"), InsightFilter(since=at(0))])
def test_a_file_is_one_however_it_is_written_and_failed_edits_do_not_count(store: Store, filter: InsightFilter) -> None:
    found = store.insights(filter).files
    assert [(each.path, each.edits, each.sessions) for each in found] == [("/w/shop/till.py", 2, 1)]


def test_lists_have_all_rows_or_say_how_many_there_are(tmp_path: Path) -> None:
    home = tmp_path / "long"
    home.mkdir()
    log = Log(home, "long")
    log.session(project_path="/w/shop", cwd="/w/shop")
    calls: list[ToolCallPart] = []
    for number in range(300):
        path = {"file_path": f"{'/w/shop/' * (number % 2)}f{number}.py"}
        calls += [
            call(f"e{number}", "Edit", 4, OK, path, ToolKind.EDIT),
            call(f"r{number}", "Bash", 4, OK, {"command": f"tool{number}"}, ToolKind.EXECUTE),
        ]
        log.event(ErrorEvent(id=f"x{number}", created_at=at(7), error_text="failed", kind=f"kind{number}"))
    both = call("again", "Edit", 5, OK, {"file_path": "/w/shop/f0.py"}, ToolKind.EDIT)
    log.message(answer("a1", 1, Usage(input=1), *calls, both), turn=1, step=1)
    read_home(tmp_path / "long.db", home)
    with open_store(tmp_path / "long.db") as opened:
        for limit, listed in ((None, 300), (50, 50)):
            found = opened.insights(limit=limit)
            assert (len(found.files), len(found.errors)) == (listed, listed)
            assert len(found.commands) == (300 if limit is None else 25)
            assert (found.files_found, found.commands_found, found.errors_found) == (300, 300, 300)
            assert (found.files[0].path, found.files[0].edits) == ("/w/shop/f0.py", 2)


def test_models_are_compared(report: Insights) -> None:
    large = next(each for each in report.models if each.model == "large")
    assert (large.calls, large.failed_tool_calls, large.compared_sessions) == (2, 2, 1)
    assert large.cache_share == pytest.approx(3000 / 4500)
    assert large.output_per_call == 300
    assert large.steps_per_prompt == 2
    assert large.cost_per_prompt is not None
    assert float(large.cost_per_prompt) == pytest.approx(5.1)
    secret = next(each for each in report.models if each.model == "secret")
    assert (secret.cost, secret.cache_share, secret.output_per_call, secret.cost_per_prompt) == (None,) * 4


def test_subagents_have_a_share_of_the_cost(report: Insights) -> None:
    found = report.subagents
    assert (found.sessions, found.calls, found.total_calls) == (1, 1, 4)
    assert found.share == pytest.approx(0.9 / 6)


def test_compactions_and_limits_are_counted(report: Insights) -> None:
    (found,) = report.compactions
    assert (found.agent, found.trigger, found.compactions, found.sessions) == ("plain", "auto", 2, 1)
    assert found.median_tokens_before == 2000
    errors = {each.kind: (each.errors, each.is_limit, each.last_session_id) for each in report.errors}
    assert errors == {"api": (1, True, "plain:shop"), "hook": (1, False, "plain:shop")}
    assert {each.kind: each.label for each in report.errors} == {"api": "model request failed", "hook": "hook failed"}


def test_a_kind_of_error_that_is_not_known_has_no_plain_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    for number, kind in enumerate(("api_req_failed", "hologram_error", None)):
        shop.event(ErrorEvent(id=f"e{number}", created_at=at(number), error_text="No.", kind=kind))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as store:
        labels = {each.kind: each.label for each in store.insights().errors}
    assert labels == {"api_req_failed": "model request failed", "hologram_error": None, None: None}


def test_the_context_of_a_session_grows_step_by_step_until_it_is_compacted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    shop.message(prompt("p1", 0), turn=1)
    shop.message(answer("a1", 1, Usage(input=1000, output=50)), turn=1, step=1)
    shop.message(answer("a2", 2, Usage(input=200, cache_read=1000, cache_write_5m=300, output=9, reasoning=1)), turn=1)
    shop.event(CompactionEvent(id="k1", created_at=at(3), trigger="auto", tokens_before=1500))
    shop.message(answer("a3", 4, Usage(input=400, output=20)), turn=2, step=1)
    shop.message(answer("a4", 5, None), turn=2, step=2)
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as opened:
        steps = opened.context_steps("plain:shop")
        assert [(each.message_id, each.context, each.cached, each.output, each.is_compacted) for each in steps] == [
            ("a1", 1000, None, 50, False),
            ("a2", 1500, 1000, 10, False),
            ("a3", 400, None, 20, True),
            ("a4", None, None, None, False),
        ]
        header, *rows = csv.reader(io.StringIO(context_to_csv(steps)))
        assert header[5:9] == ["context", "cached", "output", "is_compacted"]
        assert [row[5] for row in rows] == ["1000", "1500", "400", ""]
        with pytest.raises(NotFoundError):
            opened.context_steps("plain:nobody")


def test_model_calls_that_failed_are_errors_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    shop.event(ErrorEvent(id="f1", created_at=at(2), error_text="Overloaded", kind="api", status=529))
    failures = [
        (1, MessageError(text="Overloaded", kind="api", status=529)),
        (3, MessageError(text="API Error: rate limit reached")),
        (34, MessageError(text="API Error: rate limit reached")),
        (35, MessageError(text="prompt is too long", kind="invalid_request", status=400)),
    ]
    for minute, error in failures:
        failed = Message(id=f"m{minute}", role="assistant", created_at=at(minute), stop_reason="error", error=error)
        shop.message(failed)
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as store:
        assert ids(store, SessionFilter(having="error")) == ["plain:shop"]
        found = [
            (each.kind, each.status, each.is_limit, each.errors, each.last_session_id, each.last_message_id)
            for each in store.insights().errors
        ]
        assert sorted(found, key=str) == [
            ("api", 529, True, 2, "plain:shop", None),
            ("invalid_request", 400, False, 1, "plain:shop", "m35"),
            (None, None, True, 2, "plain:shop", "m34"),
        ]
        assert [each.errors for each in store.insights(InsightFilter(since=at(30))).errors] == [1, 1]


@pytest.mark.parametrize("filter", [InsightFilter(), InsightFilter(agent="plain"), InsightFilter(since=at(0))])
def test_failed_model_calls_are_found_without_reading_the_others(store: Store, filter: InsightFilter) -> None:
    assert isinstance(store, Connections)
    seen: list[str] = []
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    connection.set_trace_callback(seen.append)
    store.insights(filter)
    connection.set_trace_callback(None)
    (asked,) = [statement for statement in seen if "stop_reason = 'error'" in statement]
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked}")]
    assert not any("SCAN m" in step and "messages_failed" not in step for step in plan), plan


@pytest.mark.parametrize(
    ("asks", "index"), [("origin = 'prompt'", "messages_typed"), ("p.tool_kind = 'edit'", "parts_by_edit")]
)
def test_prompts_and_last_edits_are_found_in_their_indexes(store: Store, asks: str, index: str) -> None:
    assert isinstance(store, Connections)
    seen: list[str] = []
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    connection.set_trace_callback(seen.append)
    store.insights(InsightFilter())
    connection.set_trace_callback(None)
    asked = [statement for statement in seen if asks in statement]
    assert asked
    for statement in asked:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert any(index in step for step in plan), plan


def test_a_filter_selects_by_time_project_and_agent(store: Store) -> None:
    late = store.insights(InsightFilter(since=at(DAY) - timedelta(hours=1)))
    assert (late.commands, late.files, late.compactions, late.errors) == ([], [], [], [])
    assert {each.model for each in late.models} == {"small", "secret"}
    assert store.insights(InsightFilter(until=at(0))).activity == []
    assert store.insights(InsightFilter(agent="nobody")).tools == []
    assert {each.model for each in store.insights(InsightFilter(project="/w/site")).models} == {"secret"}


def test_a_long_time_is_divided_by_week(store: Store, tmp_path: Path) -> None:
    home = tmp_path / "later"
    home.mkdir()
    Log(home, "late").message(answer("l1", 200 * DAY, None))
    read_home(tmp_path / "turnlog.db", home)
    found = store.insights()
    assert found.granularity == "week"
    assert [each.period for each in found.projects] == ["2026-11-02", "2026-11-30", "2027-05-17"]


def test_each_section_is_csv_with_a_column_a_field(report: Insights) -> None:
    for section in SECTIONS:
        header, *rows = csv.reader(io.StringIO(to_csv(report, section)))
        assert rows
        assert all(len(row) == len(header) for row in rows)
    (row, *_) = [row for row in csv.DictReader(io.StringIO(to_csv(report, "models"))) if row["model"] == "secret"]
    assert (row["cost"], row["cache_share"]) == ("", "")


@pytest.mark.parametrize(
    ("command", "head"),
    [
        ("git push origin main", "git push"),
        ("git -C /x status", "git"),
        ("cd a && make -j4 test", "make"),
        ("sudo -E apt-get install jq", "apt-get install"),
        ("timeout 60s ./run.sh --token=secret", "run.sh"),
        ("TOKEN=secret /usr/bin/python3 -m pytest -q", "python3 -m pytest"),
        ("cat a | grep b", "cat"),
        ("cd /tmp", "cd"),
        ("sk-123/?=secret", None),
        ("", None),
        ("env", "env"),
        ("cat missing.txt; exit 3", "cat"),
        ("echo oops >&2; exit 3", "exit"),  # `echo` counts as preparing what follows
    ],
)
def test_the_head_of_a_command_is_its_program_without_arguments(command: str, head: str | None) -> None:
    assert command_head(command) == head


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ({"command": "git push origin main"}, "git push"),
        ({"cmd": ["bash", "-lc", "npm test"]}, "npm test"),
        ({"commands": ["cd shop", "git push origin main", "ls"]}, "git push"),
        ({"commands": []}, None),
        ({"commands": [{"run": "ls"}]}, None),
        ({"commands": "ls"}, None),
        ({"code": "print(1)"}, None),
    ],
)
def test_a_command_is_found_where_agents_put_it(given: dict[str, object], head: str | None) -> None:
    part = ToolCallPart(
        tool_call_id="c", tool_name="run", kind=ToolKind.EXECUTE, input=msgspec.Raw(json.dumps(given).encode())
    )
    assert call_head(part) == head
