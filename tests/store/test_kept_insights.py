"""Sums of quiet sessions that are kept: whatever happens to a store, insights say what they say row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from support.changing_history import DAY, HAPPENINGS, History
from support.plain_agent import Log, PlainAgent
from support.plain_store import at, read_home
from turnlog.model import Message, TextPart, ToolCallPart, ToolKind, ToolState
from turnlog.model.codec import to_json
from turnlog.store import open_store
from turnlog.store.sqlite import kept_insights
from turnlog.store.sqlite.insights import InsightQueries
from turnlog.sync.rebuild import rebuild

ZONES = (UTC, ZoneInfo("Asia/Kathmandu"), ZoneInfo("Australia/Lord_Howe"))


class RowByRow(InsightQueries):
    """Insights that read no kept sums."""

    _keeps_sums = False


@pytest.fixture(autouse=True)
def quiet_early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sessions are quiet in the middle of the history, and few are enough."""
    with monkeypatch.context() as patch:
        patch.setattr(kept_insights, "_FEW", 0)
        patch.setattr(kept_insights, "_now", lambda: int(at(37 * DAY).timestamp() * 1000))
        yield


def check(path: Path) -> None:
    with open_store(path) as store, RowByRow(path) as other:
        for zone in ZONES:
            expected = other.insights(zone=zone)
            # Twice: the first report keeps what the second one reads.
            assert store.insights(zone=zone) == expected
            assert store.insights(zone=zone) == expected


def kept(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM kept_sessions").fetchone()[0]


def is_rebuilt(history: History) -> None:
    """With other prices than those that it was read with."""
    rebuild(history.path, agents=[PlainAgent()])


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_insights_say_what_they_say_row_by_row(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    for _ in range(3):
        history.begins()
    check(history.path)
    assert kept(history.path) > 0
    # Only a rebuild changes prices.
    happenings = [is_rebuilt, *(each for each in HAPPENINGS if each is not History.changes_price)]
    history.random.shuffle(happenings)
    for happening in happenings:
        happening(history)
        check(history.path)


STEPS = 100
"""Instructions of SQLite that are counted together."""


def test_a_report_takes_hardly_longer_where_more_sessions_are_kept(tmp_path: Path) -> None:
    """All of them edit one file, under one name."""
    few, many = (instructions(tmp_path / str(sessions), sessions) for sessions in (20, 400))
    assert many < 2 * few


def instructions(folder: Path, sessions: int) -> int:
    """How many instructions SQLite runs for a report of so many sessions whose sums are kept."""
    home = folder / "home"
    home.mkdir(parents=True)
    for number in range(sessions):
        edit(home, f"s{number}")
    path = folder / "turnlog.db"
    read_home(path, home)
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += STEPS

    with InsightQueries(path) as store:
        store.insights()
        assert kept(path) == sessions
        connection = store._connection()  # pyright: ignore[reportPrivateUsage]
        connection.set_progress_handler(count, STEPS)
        report = store.insights(limit=10)
        connection.set_progress_handler(None, 0)
    assert [(file.edits, file.sessions) for file in report.files] == [(sessions, sessions)]
    return counted


def edit(home: Path, name: str) -> None:
    log = Log(home, name)
    log.session(project_path="/w/shop", cwd="/w/shop")
    log.message(Message(id=f"{name}.p", role="user", created_at=at(0), parts=(TextPart(text="Go on"),)))
    call = ToolCallPart(
        tool_call_id=f"{name}.c",
        tool_name="Edit",
        kind=ToolKind.EDIT,
        state=ToolState.OUTPUT_AVAILABLE,
        input=to_json({"file_path": "/w/shop/till.py"}),
        started_at=at(1),
    )
    log.message(Message(id=f"{name}.a", role="assistant", model="large", created_at=at(1), parts=(call,)))
