"""Tokens and cost, from the totals that every write keeps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.plain_agent import Log
from support.plain_store import START, at, read_home
from turnlog.agents.changes import Link
from turnlog.model import Cost, Message, Usage
from turnlog.store import open_store
from turnlog.store.base import Store, UsageBy, UsageFilter
from turnlog.store.usage_report import Dollars, UsageTotals

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
def costs(store: Store, by: UsageBy, wanted: UsageFilter = UsageFilter()) -> dict[str | None, str | None]:  # noqa: B008
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


def test_what_nobody_could_price_costs_none_and_not_zero(store: Store) -> None:
    assert costs(store, "model") == {"large": "2.72", "secret": None, None: None}


def test_by_project_session_and_agent(store: Store) -> None:
    assert costs(store, "project") == {"/w/shop": "2.2", None: "0.5", "/w/site": "0.02"}
    assert costs(store, "session") == {"plain:shop": "2.2", "plain:shop.scout": "0.5", "plain:site": "0.02"}
    assert costs(store, "agent") == {"plain": "2.72"}
    labels = {row.name: row.label for row in store.usage("project").rows}
    assert labels == {"/w/shop": "shop", "/w/site": "site", None: None}


def test_every_grouping_has_the_same_total(store: Store) -> None:
    reports = [store.usage(by) for by in ("day", "model", "project", "session", "agent")]
    assert len({report.totals for report in reports}) == 1


def test_a_session_has_the_total_that_its_agent_kept(store: Store) -> None:
    """It holds helper calls that no log shows, so it is a fact of the whole session only."""
    shop = store.usage("session").rows[0]
    assert (shop.label, shop.totals.reported_cost) == ("Till", Decimal("9.5"))
    today = store.usage("session", UsageFilter(since=START - timedelta(hours=9), until=START + timedelta(hours=1)))
    assert today.rows[0].totals.reported_cost is None
    store.annotate("plain:shop", title="Mine")
    assert store.usage("session").rows[0].label == "Mine"


@pytest.mark.parametrize(
    ("wanted", "tokens"),
    [
        (UsageFilter(agent="plain"), 2732),
        (UsageFilter(agent="other"), 0),
        (UsageFilter(project="shop"), 2202),
        (UsageFilter(project="/w/site"), 30),
        (UsageFilter(model="secret"), 2),
        (UsageFilter(session="plain:shop.scout"), 500),
        (UsageFilter(since=at(DAY)), 720),
        (UsageFilter(until=at(0) + timedelta(hours=15)), 2002),
        (UsageFilter(until=at(0)), 2002),
        (UsageFilter(since=at(DAY), until=at(DAY)), 700),
        (UsageFilter(user="nobody"), 0),
    ],
)
def test_filters(store: Store, wanted: UsageFilter, tokens: int) -> None:
    """A day that is touched is counted whole: totals are kept by UTC day."""
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
