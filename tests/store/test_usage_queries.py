"""Tokens and cost, from the totals that every write keeps."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from support.plain_agent import Log
from support.plain_store import START, at, read_home
from turnlog.agents.changes import Link
from turnlog.model import Cost, Message, MessageError, Origin, Usage
from turnlog.model.usage import BUCKETS
from turnlog.store import connection as module
from turnlog.store import open_store
from turnlog.store.base import Store, UsageFilter
from turnlog.store.choices import UsageBy
from turnlog.store.dollars import Dollars
from turnlog.store.usage_report import UsageBlock, UsageTotals, running_block

DAY = 24 * 60


def answer(id: str, minute: float | None, usage: Usage | None, model: str | None = "large", **fields: Any) -> Message:
    created_at = None if minute is None else at(minute)
    return Message(id=id, role="assistant", model=model, created_at=created_at, usage=usage, **fields)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    shop.session(project_path="/w/shop", titles={"prompt": "Till"}, reported_cost=9.5)
    shop.message(answer("s1", 0, Usage(input=1000, cache_read=500, output=500)))
    shop.message(answer("s2", 1, Usage(input=1, output=1), "secret"))
    shop.message(answer("s3", 2, None))
    shop.message(answer("s4", DAY, Usage(input=100, output=100, exactness="lower_bound")))
    child = Log(home, "shop.scout")
    child.link(Link(kind="subagent", parent_session_id="plain:shop", child_session_id="plain:shop.scout"))
    child.message(answer("c1", DAY, Usage(input=300, reasoning=100, output=100)))
    site = Log(home, "site")
    site.session(project_path="/w/site")
    site.message(answer("t1", 2 * DAY, Usage(input=10, output=10), cost=Cost(amount=Decimal("0.7"), kind="reported")))
    site.message(answer("t2", None, Usage(input=5, output=5), model=None))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as opened:
        yield opened


# The default is frozen, so it may be shared.
def costs(store: Store, by: UsageBy, wanted: UsageFilter = UsageFilter()) -> dict[str | None, str | None]:  # noqa: B008  # a frozen value
    rows = store.usage(by, wanted).rows
    return {row.name: None if row.totals.cost is None else str(row.totals.cost) for row in rows}


def test_days_run_forwards_and_what_has_no_time_comes_last(store: Store) -> None:
    report = store.usage()
    assert [(row.name, row.totals.calls, row.totals.tokens) for row in report.rows] == [
        ("2026-11-02", 3, 2002),
        ("2026-11-03", 2, 700),
        ("2026-11-04", 1, 20),
        (None, 1, 10),
    ]


def names(store: Store, by: UsageBy, zone: str | None = None) -> list[str | None]:
    return [row.name for row in store.usage(by, zone=UTC if zone is None else ZoneInfo(zone)).rows]


def test_periods_are_those_of_the_zone(store: Store) -> None:
    """The calls are at 9:00 UTC on Monday, Tuesday and Wednesday."""
    assert names(store, "day", "Pacific/Kiritimati") == ["2026-11-02", "2026-11-03", "2026-11-04", None]
    assert names(store, "day", "Pacific/Niue") == ["2026-11-01", "2026-11-02", "2026-11-03", None]
    assert names(store, "week") == ["2026-11-02", None]
    assert names(store, "week", "Pacific/Niue") == ["2026-10-26", "2026-11-02", None]
    assert names(store, "month") == ["2026-11", None]
    assert names(store, "hour") == ["2026-11-02T09:00Z", "2026-11-03T09:00Z", "2026-11-04T09:00Z", None]
    assert names(store, "hour", "Asia/Kathmandu")[0] == "2026-11-02T14:00+05:45"
    assert store.usage("hour", zone=ZoneInfo("Asia/Kathmandu")).zone == "Asia/Kathmandu"


def active(store: Store, by: UsageBy = "day", zone: str = "UTC", **wanted: Any) -> dict[str | None, int]:
    """Minutes of each row."""
    report = store.usage(by, UsageFilter(**wanted), zone=ZoneInfo(zone), active=True)
    minutes = {row.name: row.active_ms // 60_000 for row in report.rows if row.active_ms is not None}
    assert sum(minutes.values()) == (report.active_ms or 0) // 60_000
    return minutes


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Store]:
    """Sessions from 9:00 UTC: 20 minutes in one day; from 23:54 to 0:06 and half an hour later; and a subagent."""
    home = tmp_path / "nights"
    home.mkdir()
    minutes = {"one": (0, 8, 12, 20), "two": (894, 900, 906, 940, 944), "two.scout": (895, 899)}
    logs = {name: Log(home, name) for name in minutes}
    for name, log in logs.items():
        log.session(project_path=f"/w/{name}")
        for minute in minutes[name]:
            log.message(answer(f"{name}{minute}", minute, Usage(input=1, output=1)))
    logs["two.scout"].link(Link(kind="subagent", parent_session_id="plain:two", child_session_id="plain:two.scout"))
    read_home(tmp_path / "nights.db", home)
    with open_store(tmp_path / "nights.db") as opened:
        yield opened


def test_days_say_how_long_sessions_were_active(nights: Store) -> None:
    """Gaps of more than ten minutes are left out, and midnight divides what is between two messages."""
    assert active(nights) == {"2026-11-02": 26, "2026-11-03": 10}
    assert active(nights, zone="Pacific/Kiritimati") == {"2026-11-02": 20, "2026-11-03": 16}
    assert active(nights, "week") == {"2026-11-02": 36}
    assert active(nights, "month") == {"2026-11": 36}
    assert active(nights, project="two") == {"2026-11-02": 6, "2026-11-03": 10}
    assert active(nights, since=at(15), until=at(900)) == {"2026-11-02": 11}
    # A time within a quarter hour means all of it, as for calls: 9:07 is 9:00.
    assert active(nights, since=at(7), until=at(10)) == {"2026-11-02": 15}
    others = nights.usage("day"), nights.usage("hour", active=True), nights.usage("project", active=True)
    for report in (*others, nights.usage("day", UsageFilter(model="large"), active=True)):
        assert report.active_ms is None
        assert {row.active_ms for row in report.rows} == {None}


def test_days_of_which_no_log_has_two_times_have_an_unknown_active_time(tmp_path: Path) -> None:
    """As of agents that log one time for a whole run: unknown is not none."""
    home = tmp_path / "untimed"
    home.mkdir()
    log = Log(home, "one")
    for number in range(3):
        log.message(answer(f"m{number}", 0, Usage(input=1, output=1)))
    read_home(tmp_path / "store.db", home)
    with open_store(tmp_path / "store.db") as store:
        report = store.usage(active=True)
        assert ([row.active_ms for row in report.rows], report.active_ms) == ([None], None)
        assert not any(sentence.startswith("Active") for sentence in report.contains)
    for number in range(2):
        log.message(answer(f"later{number}", 1440 + number, Usage(input=1, output=1)))
    read_home(tmp_path / "store.db", home)
    with open_store(tmp_path / "store.db") as store:
        report = store.usage(active=True)
        assert ([row.active_ms for row in report.rows], report.active_ms) == ([None, 60_000], 60_000)


def test_the_hour_that_comes_twice_is_two_hours(tmp_path: Path) -> None:
    home = tmp_path / "autumn"
    home.mkdir()
    log = Log(home, "autumn")
    for hour in range(2):
        time = datetime(2026, 10, 25, hour, 30, tzinfo=UTC)
        log.message(Message(id=f"a{hour}", role="assistant", created_at=time, usage=Usage(input=1, output=1)))
    read_home(tmp_path / "autumn.db", home)
    with open_store(tmp_path / "autumn.db") as opened:
        assert names(opened, "hour", "Europe/Berlin") == ["2026-10-25T02:00+01:00", "2026-10-25T02:00+02:00"]
        assert names(opened, "day", "Europe/Berlin") == ["2026-10-25"]


def test_a_store_with_totals_by_day_gets_them_by_quarter_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "old"
    home.mkdir()
    log = Log(home, "old")
    for minute in (0, 20, 21, 300, DAY):
        log.message(answer(f"a{minute}", minute, Usage(input=minute + 1, output=3)))
    log.message(answer("failed", 40, None, error=MessageError(text="overloaded")))
    log.message(answer("secret", 50, Usage(input=7), "secret"))
    log.message(answer("timeless", None, None, None))
    read_home(tmp_path / "old.db", home)
    counts = "calls, unknown_calls, unpriced_calls, input, cache_read, cache_write_5m, cache_write_1h, cache_write"
    counts += ", output, reasoning, tool_prompt, lower_bound, cost, reported_cost"
    every = f"SELECT quarter_hour, model_key, session_key, {counts} FROM usage ORDER BY quarter_hour, model_key"
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        before = connection.execute(every).fetchall()
        sums = ", ".join(f"sum({name}) AS {name}" for name in counts.split(", "))
        connection.execute(
            f"CREATE TABLE days AS SELECT quarter_hour / 96 AS day, model_key, session_key, {sums} FROM usage"
            " GROUP BY quarter_hour / 96, model_key, session_key"
        )
        connection.execute("DROP TRIGGER usage_by_day_of_session")
        connection.execute("DROP TABLE usage")
        connection.execute("ALTER TABLE days RENAME TO usage")
        connection.execute("PRAGMA user_version = 18")
    every_migration = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    until = {number: every_migration[number] for number in every_migration if number < 20}
    monkeypatch.setattr(module, "_migrations", lambda: until)
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    open_store(tmp_path / "old.db").close()
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        assert connection.execute(every).fetchall() == before
        by_day = connection.execute("SELECT sum(calls) FROM usage GROUP BY quarter_hour / 96").fetchall()
    assert by_day == [(1,), (5,), (1,)]


def test_a_store_without_totals_of_sessions_keeps_its_usage(tmp_path: Path) -> None:
    home = tmp_path / "old"
    home.mkdir()
    log = Log(home, "old")
    log.message(answer("a1", 0, Usage(input=10, output=3)))
    log.message(answer("a2", 300, None))
    read_home(tmp_path / "old.db", home)
    with open_store(tmp_path / "old.db") as opened:
        before = opened.usage("session", then_by="hour")
    older = ("unknown_calls", "unpriced_calls", *BUCKETS, "lower_bound", "cost", "reported_cost")
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        connection.execute(
            f"CREATE TABLE older AS SELECT quarter_hour, model_key, session_key, calls, {', '.join(older)} FROM usage"
        )
        connection.execute("DROP TRIGGER usage_by_day_of_session")
        connection.execute("DROP TABLE usage_by_day")
        connection.execute("DROP TABLE usage")
        connection.execute("ALTER TABLE older RENAME TO usage")
        for name in ("totals", "covered_calls", "session_totals"):
            connection.execute(f"ALTER TABLE sessions DROP COLUMN {name}")
        for name in ("TRIGGER kept_session_updated", "TRIGGER kept_session_deleted"):
            connection.execute(f"DROP {name}")
        for name in ("kept_insights", "kept_sessions"):
            connection.execute(f"DROP TABLE {name}")
        connection.execute("DROP TABLE kept_activity")
        connection.execute("DROP TABLE source_sessions")
        connection.execute("DROP TABLE call_orders")
        connection.execute("DROP TABLE tasks")
        connection.execute("PRAGMA user_version = 25")
    with open_store(tmp_path / "old.db") as opened:
        assert opened.usage("session", then_by="hour") == before
    assert [row.totals.calls for row in before.rows] == [2]


def write_calls(folder: Path, times: list[datetime]) -> Path:
    home = folder / "calls"
    home.mkdir()
    log = Log(home, "calls")
    for number, time in enumerate(times):
        log.message(
            Message(id=f"a{number}", role="assistant", model="large", created_at=time, usage=Usage(input=60, output=40))
        )
    read_home(folder / "calls.db", home)
    return folder / "calls.db"


def test_a_block_is_five_hours_from_the_full_hour_of_its_first_call(tmp_path: Path) -> None:
    day = datetime(2026, 11, 2, tzinfo=UTC)
    hours = (9.7, 12, 13.99, 14, 18.9, 30, 34.8)
    with open_store(write_calls(tmp_path, [day + timedelta(hours=hour) for hour in hours])) as opened:
        found = opened.usage("block", UsageFilter(agent="plain"))
        assert [(row.name, row.totals.calls) for row in found.rows] == [
            ("2026-11-02T09:00Z", 3),
            ("2026-11-02T14:00Z", 2),
            ("2026-11-03T06:00Z", 2),
        ]
        block = found.rows[0].block
        assert block == UsageBlock(day + timedelta(hours=9), day + timedelta(hours=14))
        # Where a block begins does not depend on the request.
        late = opened.usage("block", UsageFilter(agent="plain", since=day + timedelta(hours=13)))
        assert (late.rows[0].name, late.rows[0].totals.calls) == ("2026-11-02T09:00Z", 1)
        assert opened.usage("block").rows == ()


def test_the_running_block_has_a_rate_and_a_projection(tmp_path: Path) -> None:
    start = datetime(2026, 11, 2, 9, tzinfo=UTC)
    totals = UsageTotals(calls=3, tokens=6000, cost=Dollars(3))
    block = running_block(start, start, start + timedelta(hours=5), start + timedelta(hours=2), totals)
    assert block == UsageBlock(
        start,
        start + timedelta(hours=5),
        True,
        50,
        Dollars("1.5"),
        projected_tokens=15000,
        projected_cost=Dollars("7.5"),
    )


def test_the_rate_of_a_running_block_is_since_its_first_call(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    calls = [now - timedelta(minutes=minutes) for minutes in (130, 90, 50)]
    with open_store(write_calls(tmp_path, calls)) as opened:
        (row,) = opened.usage("block", UsageFilter(agent="plain")).rows
        assert row.block is not None
        assert row.block.is_running
        assert row.block.tokens_per_minute == pytest.approx(300 / 130, abs=0.02)


def test_a_block_begins_where_those_before_it_let_it_whatever_is_requested(tmp_path: Path) -> None:
    start, chance = datetime(2026, 11, 2, tzinfo=UTC), Random(5)
    times = sorted(start + timedelta(minutes=15 * chance.randrange(1, 1600)) for _ in range(120))
    with open_store(write_calls(tmp_path, times)) as opened:
        everything = {row.name for row in opened.usage("block", UsageFilter(agent="plain")).rows}
        for since in times[::7]:
            found = {row.name for row in opened.usage("block", UsageFilter(agent="plain", since=since)).rows}
            assert found <= everything


@pytest.mark.parametrize("minutes", [(130, 90, 50), (20, 2), (), (400, 301), (900, 290, 40)])
def test_what_was_just_spent_is_what_reports_say(minutes: tuple[int, ...], tmp_path: Path) -> None:
    now = datetime.now(UTC)
    path = write_calls(tmp_path, [now - timedelta(minutes=each) for each in minutes])
    with closing(module.connect(path)) as connection:
        connection.execute("INSERT OR REPLACE INTO settings (name, value) VALUES ('limited_agent', 'plain')")
    with open_store(path) as opened:
        since = now - timedelta(minutes=100)
        found, report = opened.spending(since), opened.usage("day", UsageFilter(since=since)).totals
        assert found.spent == (report.cost, report.unpriced_calls + report.unknown_calls)
        running = [(row, row.block) for row in opened.usage("block").rows if row.block and row.block.is_running]
        assert bool(running) == (found.block is not None)
        for row, block in running:
            assert found.block is not None
            assert found.block.ends_at == block.end
            assert found.block.spent.cost == row.totals.cost
            assert float(found.block.cost_per_hour or 0) == pytest.approx(float(block.cost_per_hour or 0), rel=0.01)


def test_a_report_that_is_divided_again_has_the_same_totals(store: Store) -> None:
    every: tuple[UsageBy, ...] = ("hour", "day", "week", "month", "model", "project", "session", "agent", "subagent")
    for by, then_by in permutations(every, 2):
        divided, plain = store.usage(by, then_by=then_by), store.usage(by)
        assert divided.totals == plain.totals
        assert [replace(row, parts=()) for row in divided.rows] == list(plain.rows)
        for row in divided.rows:
            assert sum(part.totals.calls for part in row.parts) == row.totals.calls
    with pytest.raises(ValueError, match="twice"):
        store.usage("day", then_by="day")


def test_totals_say_what_they_do_not_contain(store: Store) -> None:
    """Unknown is not zero; reported money is never added to priced money."""
    report = store.usage("day")
    assert report.totals == UsageTotals(
        calls=7,
        unknown_calls=1,
        unpriced_calls=2,
        tokens=2732,
        input=1416,
        cache_read=500,
        output=716,
        reasoning=100,
        lower_bound_calls=1,
        cost=Dollars("2.72"),
        reported_cost=Dollars("0.7"),
    )
    assert report.rows[0].totals.unknown_calls == 1
    assert report.rows[0].totals.reported_cost is None


def test_a_period_says_which_calls_it_leaves_out_because_they_have_no_time(store: Store) -> None:
    sentence = "1 call has no time: it is in no period, and not in these sums."
    assert sentence not in store.usage("day").missing
    for period in (UsageFilter(since=START), UsageFilter(until=START + timedelta(days=9))):
        report = store.usage("day", period)
        assert (report.totals.calls, report.missing[-1]) == (6, sentence)
        assert sentence not in store.usage("day", period._replace(project="/w/shop")).missing
    assert store.usage("agent", UsageFilter(since=START + timedelta(days=9))).missing == (sentence,)


def test_what_nobody_could_price_costs_none_and_not_zero(store: Store) -> None:
    assert costs(store, "model") == {"large": "2.72", "secret": None, None: None}


def test_by_project_session_and_agent(store: Store) -> None:
    assert costs(store, "project") == {"/w/shop": "2.7", "/w/site": "0.02"}
    assert costs(store, "session") == {"plain:shop": "2.2", "plain:shop.scout": "0.5", "plain:site": "0.02"}
    assert costs(store, "agent") == {"plain": "2.72"}
    labels = {row.name: row.label for row in store.usage("project").rows}
    assert labels == {"/w/shop": "shop", "/w/site": "site"}


def test_every_grouping_has_the_same_total(store: Store) -> None:
    reports = [store.usage(by) for by in ("day", "model", "project", "session", "agent")]
    assert len({report.totals for report in reports}) == 1


def test_a_session_has_the_total_that_its_agent_kept(store: Store) -> None:
    """It holds helper calls that no log shows: beside calls with a cost it is a fact of the whole session only."""
    shop = store.usage("session").rows[0]
    assert (shop.label, shop.totals.reported_cost) == ("Till", Decimal("9.5"))
    today = store.usage("session", UsageFilter(since=START - timedelta(hours=9), until=START + timedelta(hours=1)))
    assert today.rows[0].totals.reported_cost is None
    store.annotate("plain:shop", title="Mine")
    assert store.usage("session").rows[0].label == "Mine"


def test_what_only_a_whole_session_cost_is_in_all_sums(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    told = Log(home, "told")
    told.session(project_path="/w/told", reported_cost=0.4)
    told.message(answer("a", 0, None, "secret"))
    told.message(answer("b", DAY, None, "secret"))
    mixed = Log(home, "mixed")
    mixed.session(project_path="/w/told", reported_cost=0.2)
    mixed.message(answer("c", 0, None, "secret"))
    mixed.message(answer("d", 0, None, "large"))
    itself = Log(home, "itself")
    itself.session(project_path="/w/itself", reported_cost=0.8)
    own = Cost(amount=Decimal("0.7"), kind="reported")
    itself.message(answer("e", DAY, Usage(input=1, output=1), "secret", cost=own))
    Log(home, "empty").session(project_path="/w/empty", reported_cost=0.1, last_at=at(DAY))
    copied = Log(home, "copied")
    copied.link(Link(kind="fork", parent_session_id="plain:told", child_session_id="plain:copied"))
    copied.session(project_path="/w/told", reported_cost=0.5)
    copied.message(answer("f", DAY, None, "secret"))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as store:

        def reported(by: UsageBy, wanted: UsageFilter = UsageFilter()) -> dict[str | None, str]:  # noqa: B008  # a frozen value
            rows = store.usage(by, wanted).rows
            return {row.name: str(row.totals.reported_cost) for row in rows}

        assert reported("day") == {"2026-11-02": "0.2", "2026-11-03": "1.2"}
        assert reported("project") == {"/w/told": "0.6", "/w/itself": "0.7", "/w/empty": "0.1"}
        assert reported("model") == {"secret": "1.1", "large": "None", None: "0.3"}
        assert reported("agent") == {"plain": "1.4"}
        assert reported("agent", UsageFilter(project="/w/told")) == {"plain": "0.6"}
        assert reported("day", UsageFilter(until=at(60))) == {"2026-11-02": "0.2"}
        assert store.usage("session").totals.reported_cost == Decimal("1.4")
        assert store.usage("project", then_by="day").rows[0].totals.cost is None
        (empty,) = [row for row in store.usage("project").rows if row.name == "/w/empty"]
        assert (empty.totals.calls, empty.totals.cost, empty.totals.has_tokens) == (0, None, False)


@pytest.mark.parametrize(
    ("wanted", "tokens"),
    [
        (UsageFilter(agent="plain"), 2732),
        (UsageFilter(agent="other"), 0),
        (UsageFilter(project="shop"), 2702),
        (UsageFilter(project="/w/site"), 30),
        (UsageFilter(model="secret"), 2),
        (UsageFilter(session="plain:shop.scout"), 500),
        (UsageFilter(since=at(DAY)), 720),
        (UsageFilter(until=at(0) + timedelta(hours=15)), 2002),
        (UsageFilter(until=at(0)), 0),
        (UsageFilter(until=at(1)), 2002),
        (UsageFilter(since=at(14), until=at(DAY)), 2002),
        (UsageFilter(since=at(15), until=at(DAY)), 0),
        (UsageFilter(since=at(DAY), until=at(DAY)), 0),
        (UsageFilter(since=at(DAY), until=at(DAY + 1)), 700),
        (UsageFilter(user="nobody"), 0),
    ],
)
def test_filters(store: Store, wanted: UsageFilter, tokens: int) -> None:
    """A quarter hour that is cut is counted whole: totals are kept by quarter hour."""
    assert store.usage("day", wanted).totals.tokens == tokens
    assert sum(row.totals.tokens for row in store.usage("session", wanted).rows) == tokens


def test_nothing_costs_nothing(store: Store) -> None:
    assert store.usage("day", UsageFilter(agent="other")).totals == UsageTotals(cost=Dollars(0))


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="time zone"):
        store.usage("day", UsageFilter(since=datetime(2026, 1, 1)))  # noqa: DTZ001  # naive on purpose


def test_a_report_does_not_load_what_decodes_messages(tmp_path: Path, store: Store) -> None:
    """A light command must start fast."""
    script = (
        "import sys; from turnlog import open_store;"
        f" open_store({str(tmp_path / 'turnlog.db')!r}).usage();"
        " print([name for name in ('turnlog.model', 'msgspec', 'zstandard') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_sum_is_as_exact_as_the_calls_in_it(tmp_path: Path) -> None:
    """Of sessions, and of reports by anything, in each of their rows."""
    home = tmp_path / "home"
    home.mkdir()
    guessed, known = Log(home, "guessed"), Log(home, "known")
    guess = Usage(input=100, output=10, exactness="estimated")
    guessed.message(answer("g1", 0, guess))
    guessed.message(answer("g2", DAY, Usage(input=100, output=10, exactness="lower_bound")))
    guessed.message(answer("g3", None, guess, "small"))
    guessed.message(answer("g4", 1, guess, error=MessageError(text="No"), stop_reason="error"))
    known.message(answer("k1", DAY, Usage(input=100, output=10)))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as store:
        sessions = {session.id: session.usage.usage.exactness for session in store.sessions().items}
        assert sessions == {"plain:guessed": "estimated", "plain:known": "exact"}
        assert (store.usage("day").totals.estimated_calls, store.usage("day").totals.exactness) == (2, "estimated")
        assert estimated(store, "day") == {"2026-11-02": 1, "2026-11-03": 0, None: 1}
        assert estimated(store, "model") == {"large": 1, "small": 1}
        assert estimated(store, "session") == {"plain:guessed": 2, "plain:known": 0}
        parts = {each.name: each.totals.exactness for each in store.usage("day", then_by="session").rows[1].parts}
        assert parts == {"plain:guessed": "lower_bound", "plain:known": "exact"}
        assert store.usage("day", UsageFilter(since=START + timedelta(days=1))).totals.exactness == "lower_bound"
        assert "2 calls whose tokens are estimated." in store.usage("model").missing


@pytest.mark.parametrize(
    ("fields", "calls"),
    [
        ({"error": MessageError(text="No")}, 0),
        ({"error": MessageError(text="No"), "stop_reason": "aborted"}, 0),
        ({"error": MessageError(text="No"), "stop_reason": "error"}, 0),
        ({"stop_reason": "error"}, 1),
        ({"origin": Origin.NOTIFICATION}, 0),
    ],
)
def test_what_counts_as_a_call_counts_as_an_estimated_one(fields: dict[str, Any], calls: int, tmp_path: Path) -> None:
    """In sums as in sessions: a request that failed is no call, as long as its provider counted no tokens."""
    home = tmp_path / "home"
    home.mkdir()
    guessed = Log(home, "guessed")
    guessed.message(answer("g1", 0, Usage(input=100, output=10, exactness="estimated"), **fields))
    guessed.message(answer("g2", 1, Usage(input=100, output=10)))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as store:
        totals, session = store.usage("day").totals, store.sessions().items[0]
    assert (totals.calls, totals.estimated_calls) == (1 + calls, calls)
    assert totals.exactness == session.usage.usage.exactness == ("estimated" if calls else "exact")


def estimated(store: Store, by: UsageBy) -> dict[str | None, int]:
    return {row.name: row.totals.estimated_calls for row in store.usage(by).rows}
