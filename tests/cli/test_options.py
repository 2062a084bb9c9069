"""Times as people write them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click
import pytest

from support.cli_runner import Command
from turnlog.cli.options import When
from turnlog.store.times import days_of


@pytest.fixture(autouse=True)
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine nine hours before UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("2026-11-20", utc(2026, 11, 19, 15), utc(2026, 11, 20, 15)),
        ("2026-12", utc(2026, 11, 30, 15), utc(2026, 12, 31, 15)),
        ("9999-12-31", utc(9999, 12, 30, 15), datetime.max.replace(tzinfo=UTC)),
        ("9999-12", utc(9999, 11, 30, 15), datetime.max.replace(tzinfo=UTC)),
        ("2026-11-20T10:30", utc(2026, 11, 20, 1, 30), utc(2026, 11, 20, 1, 30)),
        ("2026-11-20T10:30:00Z", utc(2026, 11, 20, 10, 30), utc(2026, 11, 20, 10, 30)),
        (" 2026-11-20t10:30+01:00 ", utc(2026, 11, 20, 9, 30), utc(2026, 11, 20, 9, 30)),
    ],
)
def test_a_time_without_a_zone_is_this_machines(text: str, since: datetime, until: datetime) -> None:
    assert When().convert(text, None, None) == since
    assert When(end=True).convert(text, None, None) == until


def test_days_of_usage_are_utc() -> None:
    assert When(utc=True).convert("2026-11-20", None, None) == utc(2026, 11, 20)
    assert When(utc=True, end=True).convert("2026-11-20", None, None) == utc(2026, 11, 21)
    assert When(utc=True, end=True).convert("2026-12", None, None) == utc(2027, 1, 1)


@pytest.mark.parametrize(
    ("zone", "day", "begin"),
    [
        ("Europe/Berlin", "2026-03-29", utc(2026, 3, 28, 23)),
        ("Africa/Cairo", "2026-04-24", utc(2026, 4, 23, 22)),
        ("America/Havana", "2026-03-08", utc(2026, 3, 8, 5)),
        ("America/Havana", "2026-11-01", utc(2026, 11, 1, 4)),
    ],
)
def test_a_day_begins_when_the_clocks_first_show_it(
    zone: str, day: str, begin: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they are changed at midnight."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", zone)
        time.tzset()
        assert When().convert(day, None, None) == begin


@pytest.mark.parametrize(("text", "ago"), [("12h", timedelta(hours=12)), ("7d", timedelta(7)), ("2w", timedelta(14))])
def test_a_while_ago(text: str, ago: timedelta) -> None:
    moment = When().convert(text, None, None)
    assert abs(datetime.now(UTC) - ago - moment) < timedelta(seconds=5)


def test_today_and_yesterday_begin_at_midnight() -> None:
    today, yesterday = (When().convert(word, None, None) for word in ("today", "yesterday"))
    assert today - yesterday == timedelta(days=1)
    assert (today.utcoffset(), today.hour, today.minute) == (timedelta(hours=9), 0, 0)
    assert When(end=True).convert("today", None, None) - today == timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("this week", date(2028, 2, 28), date(2028, 3, 6)),
        ("Last Week", date(2028, 2, 21), date(2028, 2, 28)),
        ("this month", date(2028, 3, 1), date(2028, 4, 1)),
        ("last-month", date(2028, 2, 1), date(2028, 3, 1)),
        ("this year", date(2028, 1, 1), date(2029, 1, 1)),
        ("last year", date(2027, 1, 1), date(2028, 1, 1)),
        ("2028", date(2028, 1, 1), date(2029, 1, 1)),
        ("2028-W08", date(2028, 2, 21), date(2028, 2, 28)),
        ("2028W08", date(2028, 2, 21), date(2028, 2, 28)),
        ("2028-W08-3", date(2028, 2, 23), date(2028, 2, 24)),
    ],
)
def test_weeks_months_and_years_are_named(text: str, first: date, end: date) -> None:
    """On a Wednesday; weeks begin on Monday."""
    days = days_of(text, date(2028, 3, 1))
    assert days is not None
    assert (days.first, days.last + timedelta(days=1)) == (first, end)


def test_last_week_ends_where_this_week_begins() -> None:
    assert When(end=True).convert("last week", None, None) == When().convert("this week", None, None)


@pytest.mark.parametrize(
    "text", ["", "soon", "last", "next week", "2026-13", "2026-02-30", "7q", "99999999999d", "2026-11-20T25:00"]
)
def test_a_value_that_is_not_a_time_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        When().convert(text, None, None)


STORE_COMMANDS = [("sessions",), ("search", "x"), ("show", "x"), ("usage",), ("serve",), ("doctor",), ("sync",)]


@pytest.mark.parametrize("arguments", [*STORE_COMMANDS, ("export", "x", "--as", "json")])
def test_a_pipe_is_no_store_and_keeps_nobody_waiting(arguments: tuple[str, ...], run: Command, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run(*arguments, "--store", str(pipe))
    assert (result.exit_code, result.stderr) == (1, f"turnlog: {pipe}: this is a pipe, not a file\n")


def test_sockets_and_devices_are_no_stores(run: Command, tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / "s"))
        link = tmp_path / "link"
        link.symlink_to(tmp_path / "s")
        assert "this is a socket, not a file" in run("sessions", "--store", str(link)).stderr
    assert "this is a device, not a file" in run("sessions", "--store", "/dev/null").stderr
