"""Tokens that an agent counts for a whole session, and not for its calls."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from support.store_dump import check_integrity, open_read_only
from turnlog.agents.changes import SessionChange
from turnlog.model import Message, SessionTotal, Usage
from turnlog.store import open_store
from turnlog.store.base import Store, UsageFilter
from turnlog.store.reconcile.merge import merge_session_changes

DAY = 24 * 60


def answer(id: str, minute: float, usage: Usage | None = None) -> Message:
    return Message(id=id, role="assistant", model="large", created_at=at(minute), usage=usage)


def total(tokens: int, model: str | None = "large") -> SessionTotal:
    return SessionTotal(model=model, usage=Usage(input=tokens, output=1))


def log_of(folder: Path) -> Log:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return Log(home, "shop")


def synced(folder: Path) -> Store:
    read_home(folder / "turnlog.db", folder / "home")
    connection = open_read_only(folder / "turnlog.db")
    check_integrity(connection)
    connection.close()
    return open_store(folder / "turnlog.db")


def test_a_total_replaces_the_calls_without_tokens(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.message(answer("a1", 0))
    log.message(answer("a2", 1))
    log.session(first_at=at(0), last_at=at(1), totals={"all": total(999)})
    with synced(tmp_path) as store:
        session, report = store.session("plain:shop"), store.usage("session")
    used = session.usage
    assert (used.usage.input, used.usage.output, used.usage.exactness) == (999, 1, "estimated")
    assert (used.calls, used.unknown_calls, used.covered_calls) == (2, 0, 2)
    assert (session.totals, session.models) == ((total(999),), ("large",))
    assert session.cost is not None
    assert (session.cost.amount, session.unpriced_calls) == (1, 0)
    sums = report.totals
    assert (sums.calls, sums.unknown_calls, sums.covered_calls, sums.session_totals) == (2, 0, 2, 1)
    assert (sums.tokens, sums.cost) == (1000, Decimal(1))
    [note] = report.missing
    assert note.startswith("2 calls without their own token count")


def test_a_call_with_tokens_counts_beside_the_total(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.message(answer("a1", 0, Usage(input=5, output=5)))
    log.message(answer("a2", 1))
    log.session(last_at=at(1), totals={"all": total(999)})
    with synced(tmp_path) as store:
        used = store.session("plain:shop").usage
    assert (used.usage.total, used.calls, used.covered_calls) == (1010, 2, 1)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_total_of_calls_that_count_themselves_is_left_out_in_any_order(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    log = log_of(tmp_path)
    of_calls = SessionTotal(model="large", usage=Usage(input=999), answer="a1")
    beside = SessionTotal(model="large", usage=Usage(input=5), answer="unknown")
    write = (
        lambda: log.session(last_at=at(1), totals={"turn": of_calls, "beside": beside}),
        lambda: log.message(answer("a1", 0)),
        lambda: log.message(answer("a1", 0, Usage(input=998, output=1))),
    )
    for step in order:
        write[step]()
        synced(tmp_path).close()
    with synced(tmp_path) as store:
        session, report = store.session("plain:shop"), store.usage()
    assert session.totals == (beside,)
    assert (session.usage.usage.input, session.usage.calls, session.usage.covered_calls) == (1003, 1, 0)
    assert (report.totals.tokens, report.totals.session_totals) == (1004, 1)


def test_a_total_is_at_the_last_day_of_its_session_and_moves_with_it(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.message(answer("a1", 0))
    log.session(last_at=at(0), totals={"all": total(9)})
    synced(tmp_path).close()
    log.message(answer("a2", DAY))
    log.session(last_at=at(DAY), totals={"all": total(99)})
    with synced(tmp_path) as store:
        rows = store.usage().rows
        before = store.usage(filter=UsageFilter(until=at(2 * 60)))
    assert [(row.name, row.totals.calls, row.totals.covered_calls, row.totals.tokens) for row in rows] == [
        ("2026-11-02", 1, 1, 0),
        ("2026-11-03", 1, 1, 100),
    ]
    # What the first day cost is not known, rather than nothing.
    assert (before.totals.cost, rows[1].totals.cost) == (None, Decimal("0.1"))


def test_totals_without_a_price_are_reported_to_have_none(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.message(answer("a1", 0))
    log.session(last_at=at(0), totals={"all": total(9, "secret"), "titles": total(19)})
    with synced(tmp_path) as store:
        session = store.session("plain:shop")
        models = {row.model: row.cost for row in store.insights().models}
    assert session.cost is not None
    assert (session.cost.amount, session.unpriced_calls, session.usage.usage.total) == (Decimal("0.02"), 1, 30)
    assert models == {"large": Decimal("0.02"), "secret": None}


def test_calls_of_a_session_without_totals_stay_unknown(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.message(answer("a1", 0))
    log.session(last_at=at(0))
    with synced(tmp_path) as store:
        session = store.session("plain:shop")
        assert (session.usage.unknown_calls, session.usage.covered_calls, session.cost) == (1, 0, None)
        assert store.usage().missing == ("1 call without any token count: they are in no sum.",)


def test_of_two_readings_of_a_total_the_larger_counts_in_any_order() -> None:
    changes = [
        SessionChange(session_id="plain:shop", totals={"all": total(tokens, model), "titles": total(3)})
        for tokens, model in ((9, "large"), (99, "small"), (99, None))
    ]
    merged = set[str]()
    for one, two, three in permutations(changes):
        left = merge_session_changes(merge_session_changes(one, two), three)
        right = merge_session_changes(one, merge_session_changes(two, three))
        merged |= {repr(left.totals), repr(right.totals)}
    [only] = merged
    assert "99" in only


def test_of_two_estimates_the_later_counts_in_any_order() -> None:
    """An estimate shrinks when a journal that arrives late shows the tokens of a call."""
    usages = [Usage(input=count, exactness="estimated") for count in (9, 99, 0)]
    changes = [
        SessionChange(session_id="plain:shop", position=number, totals={"rest": SessionTotal(usage=usage)})
        for number, usage in enumerate(usages)
    ]
    for one, two, three in permutations(changes):
        left = merge_session_changes(merge_session_changes(one, two), three)
        right = merge_session_changes(one, merge_session_changes(two, three))
        assert left.totals == right.totals == {"rest": SessionTotal(usage=usages[-1])}
