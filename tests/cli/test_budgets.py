"""Budgets in the settings, and the warnings about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.cli_runner import Command
from support.plain_agent import Log
from support.plain_store import read_home
from turnlog import paths
from turnlog.model import Message, Usage


@pytest.fixture
def spent_now(home: Path) -> None:
    """One call of now, of $0.10."""
    folder = home / "now"
    folder.mkdir()
    log = Log(folder, "now")
    now = datetime.now(UTC)
    log.message(Message(id="now", role="assistant", model="large", created_at=now, usage=Usage(input=60, output=40)))
    read_home(paths.database_path(), folder)


def write_settings(text: str) -> None:
    paths.settings_path().parent.mkdir(parents=True, exist_ok=True)
    paths.settings_path().write_text(text)


@pytest.mark.usefixtures("spent_now")
def test_a_budget_that_is_nearly_spent_is_a_warning(run: Command) -> None:
    write_settings("[budgets]\nday = 0.08\nweek = 0.12\nmonth = 5\n")
    warnings = run("usage", "--since", "2020-01", "--until", "2020-01", "--no-sync").stderr
    assert "Budget of the day exceeded: $0.10 of $0.08 (125 %)." in warnings
    assert "Budget of the week nearly spent: $0.10 of $0.12 (83 %)." in warnings
    assert "month" not in warnings
    budgets = json.loads(run("usage", "--json", "--no-sync").stdout)["budgets"]
    assert [(each["period"], each["limit"], each["spent"], each["is_exceeded"]) for each in budgets] == [
        ("day", 0.08, 0.1, True),
        ("week", 0.12, 0.1, False),
        ("month", 5, 0.1, False),
    ]


@pytest.mark.parametrize("text", ["day = 0", "day = -1", "day = inf", "year = 3", 'day = "much"'])
@pytest.mark.usefixtures("home")
def test_a_wrong_budget_is_an_error(text: str, run: Command) -> None:
    write_settings(f"sync_before_reading = false\n[budgets]\n{text}\n")
    result = run("usage")
    assert result.exit_code == 1
    assert "cannot use the settings" in result.stderr
