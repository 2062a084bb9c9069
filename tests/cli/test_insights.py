"""`turnlog insights` as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json

import pytest

from support.cli_runner import Command
from turnlog.cli.insights import insights
from turnlog.store.insights import SECTIONS

pytestmark = pytest.mark.usefixtures("store")


def test_each_section_with_rows_is_a_table(run: Command) -> None:
    result = run("insights", "--utc")
    assert result.exit_code == 0, result.stderr
    titles = [line for line in result.stdout.splitlines() if line in ("Activity", "Projects", "Tools", "Models")]
    assert titles == ["Activity", "Projects", "Tools", "Models"]
    assert "approximate" in result.stderr


def test_json_and_csv_have_the_same_rows(run: Command) -> None:
    document = json.loads(run("insights", "--json").stdout)
    for section in SECTIONS:
        rows = list(csv.DictReader(io.StringIO(run("insights", "--csv", section).stdout)))
        found = document[section]
        assert len(rows) == (1 if isinstance(found, dict) else len(found))


def test_csv_can_be_asked_for_of_every_section() -> None:
    (option,) = [each for each in insights.params if each.name == "section"]
    assert getattr(option.type, "choices", None) == SECTIONS


def test_a_time_without_anything_is_empty(run: Command) -> None:
    result = run("insights", "--since", "2027-01-01")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing found.\n")


def test_a_project_that_there_is_not_is_an_error(run: Command) -> None:
    assert run("insights", "--project", "nowhere").exit_code == 3
    assert run("insights", "--json", "--csv", "tools").exit_code == 2
