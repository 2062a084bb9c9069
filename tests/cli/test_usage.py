import csv
import io
import json
import re
import time
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import pytest

from support.cli_runner import Command, on_terminal
from support.plain_agent import Log
from support.plain_history import OTHER, SESSION, SUBAGENT
from support.plain_store import read_home
from turnlog.cli.formatting import UNKNOWN
from turnlog.model import Cost, Message, Usage
from turnlog.store.usage_report import UsageReport, UsageRow, UsageTotals, to_csv

pytestmark = pytest.mark.usefixtures("store")


def rows(run: Command, *arguments: str) -> dict[str, dict[str, object]]:
    result = run("usage", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return {row["name"]: row["totals"] for row in json.loads(result.stdout)["rows"]}


def test_usage_adds_up_by_day_and_in_all(run: Command) -> None:
    """R-S41."""
    document = json.loads(run("usage", "--json").stdout)
    assert [row["name"] for row in document["rows"]] == ["2026-11-02", "2026-11-03"]
    assert [row["totals"]["calls"] for row in document["rows"]] == [3, 1]
    assert (document["by"], document["totals"]["tokens"], document["totals"]["cost"]) == ("day", 600, 0.45)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), ["2026-11-01", "2026-11-03"]),
        (("--utc",), ["2026-11-02", "2026-11-03"]),
        (("--since", "2026-11-02"), ["2026-11-03"]),
        (("--since", "2026-11-03", "--utc"), ["2026-11-03"]),
        (("--utc", "--until", "2026-11-02"), ["2026-11-02"]),
        (("--by", "month"), ["2026-11"]),
        (("--by", "week"), ["2026-10-26", "2026-11-02"]),
        (("--by", "hour"), ["2026-11-01T22:00-11:00", "2026-11-03T04:00-11:00"]),
    ],
)
def test_days_are_those_of_this_machine_or_of_utc(
    arguments: tuple[str, ...], names: list[str], run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Niue")
    time.tzset()
    try:
        document = json.loads(run("usage", "--json", *arguments).stdout)
        assert [row["name"] for row in document["rows"]] == names
        assert document["zone"] == ("UTC" if "--utc" in arguments else "local")
        table = run("usage", *arguments).stdout.splitlines()[1:-1]
        if table[0].startswith("Day "):
            table = table[1:]  # a line before it says which time is covered
        assert all(line.startswith(name[:16].replace("T", " ")) for line, name in zip(table, names, strict=True))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_second_division_adds_up_to_the_first(run: Command) -> None:
    document = json.loads(run("usage", "--utc", "--by", "day", "--by", "model", "--json").stdout)
    assert (document["by"], document["then_by"]) == ("day", "model")
    first = document["rows"][0]
    assert {part["name"] for part in first["parts"]} == {"large", "small", "secret"}
    assert sum(part["totals"]["tokens"] for part in first["parts"]) == first["totals"]["tokens"]
    lines = list(csv.DictReader(io.StringIO(run("usage", "--by", "project", "--by", "month", "--csv").stdout)))
    assert {(line["project"], line["month"]) for line in lines} >= {("/work/blog", "2026-11")}
    assert sum(int(line["tokens"]) for line in lines) == 600
    head, *table = run("usage", "--by", "project", "--by", "model").stdout.splitlines()
    assert head.split()[:3] == ["Project", "Path", "Model"]
    assert any(line.split()[0] == "small" for line in table)


@pytest.mark.parametrize("arguments", [("day", "day"), ("day", "model", "agent")])
def test_a_report_is_divided_at_most_twice(arguments: tuple[str, ...], run: Command) -> None:
    assert run("usage", *(word for by in arguments for word in ("--by", by))).exit_code == 2


def test_blocks_are_those_of_claude_unless_an_agent_is_named(run: Command) -> None:
    assert rows(run, "--by", "block") == {}
    assert list(rows(run, "--by", "block", "--agent", "plain", "--utc")) == ["2026-11-02T09:00Z", "2026-11-03T15:00Z"]


def test_a_call_of_unknown_price_is_counted_and_not_priced(run: Command) -> None:
    """R-C22."""
    secret = rows(run, "--by", "model")["secret"]
    assert (secret["calls"], secret["unpriced_calls"], secret["tokens"], secret["cost"]) == (1, 1, 150, None)


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("model", {"large", "small", "secret"}),
        ("project", {"/work/webshop", "/work/blog"}),
        ("session", {SESSION, SUBAGENT, OTHER}),
        ("agent", {"plain"}),
        ("subagent", {SUBAGENT, None}),
    ],
)
def test_usage_is_grouped_by(by: str, names: set[str | None], run: Command) -> None:
    assert set(rows(run, "--by", by)) == names


def test_filters_hold(run: Command) -> None:
    assert set(rows(run, "--by", "model", "--project", "blog")) == {"small"}
    assert set(rows(run, "--by", "project", "--model", "large")) == {"/work/webshop"}
    assert set(rows(run, "--since", "2026-11-03")) == {"2026-11-03"}
    assert set(rows(run, "--until", "2026-11-02")) == {"2026-11-02"}
    assert rows(run, "--agent", "plai") == rows(run)


ABOUT = Usage(input=5, output=5, exactness="estimated")


def test_for_people_it_is_a_table_with_what_is_missing_beside_it(run: Command) -> None:
    result = run("usage", "--by", "project")
    head, *lines, total = result.stdout.splitlines()
    assert head.split() == ["Project", "Path", "Calls", "Input", "Cache", "write", "Cache", "read", "Output", "Cost"]
    assert {line.split()[0] for line in lines} == {"webshop", "blog"}
    assert total.split() == ["Total", "4", "400", *"00", "200", "≥", "$0.45"]
    assert result.stderr.startswith("1 call without a known price")


def test_uncounted_usage_is_unknown_and_reported_costs_are_separate(run: Command, tmp_path: Path) -> None:
    home = tmp_path / "plain"
    home.mkdir()
    paid, silent = Log(home, "paid"), Log(home, "silent")
    paid.session(project_path="/w/paid", reported_cost=0.7)
    cost = Cost(amount=Decimal("0.7"), kind="reported")
    paid.message(Message(id="a", role="assistant", model="secret", usage=ABOUT, cost=cost))
    silent.session(project_path="/w/silent")
    silent.message(Message(id="b", role="assistant", model="secret"))
    read_home(tmp_path / "own.db", home)
    own = ("--store", str(tmp_path / "own.db"), "--no-sync")
    head, *lines, total = run("usage", "--by", "project", *own).stdout.splitlines()
    assert head.split()[-2:] == ["Cost", "Reported"]
    cells = {line.split()[0]: line.split()[2:] for line in lines}
    assert cells == {
        "paid": ["1", "≈", "5", UNKNOWN, UNKNOWN, "≈", "5", UNKNOWN, "$0.70"],
        "silent": ["1", *[UNKNOWN] * 6],
    }
    assert total.split() == ["Total", "2", "≥", "5", UNKNOWN, UNKNOWN, "≥", "5", UNKNOWN, "$0.70"]
    assert "$0.70 reported" in run("sessions", *own).stdout
    *_, total = run("usage", "--by", "session", *own).stdout.splitlines()
    assert total.split()[-2:] == [UNKNOWN, "$0.70"]


def test_reported_costs_of_sessions_are_no_sums_of_calls(run: Command, tmp_path: Path) -> None:
    """A session's own total may have calls in it whose cost nobody told, or what its origin had cost."""
    home = tmp_path / "plain"
    home.mkdir()
    log = Log(home, "paid")
    log.session(reported_cost=0.7)
    cost = Cost(amount=Decimal("0.2"), kind="reported")
    log.message(Message(id="a", role="assistant", model="secret", usage=Usage(input=5, output=5), cost=cost))
    read_home(tmp_path / "own.db", home)
    own = ("--store", str(tmp_path / "own.db"), "--no-sync")
    _, row, total = run("usage", "--by", "session", *own).stdout.splitlines()
    assert (row.split()[-1], total.split()[-1]) == ("$0.70", UNKNOWN)
    *_, total = run("usage", "--by", "model", *own).stdout.splitlines()
    assert total.split()[-1] == "$0.20"


def test_calls_without_a_time_are_not_known_to_be_none_in_a_period(run: Command, tmp_path: Path) -> None:
    home = tmp_path / "plain"
    home.mkdir()
    Log(home, "timeless").message(Message(id="a", role="assistant", model="large", usage=Usage(input=5, output=5)))
    read_home(tmp_path / "own.db", home)
    own = ("--store", str(tmp_path / "own.db"), "--no-sync", "--by", "model", "--since", "2026-11-01")
    result = run("usage", *own)
    assert result.stdout.splitlines()[-1].split() == ["Total", "0", *[UNKNOWN] * 5]
    assert result.stderr.startswith("1 call has no time")
    assert json.loads(run("usage", *own, "--json").stdout)["totals"]["cost"] is None


def test_nothing_used_is_an_empty_table(run: Command) -> None:
    result = run("usage", "--since", "2030-01-01")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].split() == ["Total", "0", "ms", "0", "0", "0", "0", "0", "$0"]


def test_another_store_can_be_named(run: Command, tmp_path: Path, store: Path) -> None:
    copy = tmp_path / "copy.db"
    store.rename(copy)
    assert run("usage", "--no-sync").exit_code == 3
    assert run("usage", "--store", str(copy)).exit_code == 0


def test_sessions_have_their_titles_beside_them(run: Command) -> None:
    lines = run("usage", "--by", "session").stdout.splitlines()
    assert re.search(rf"^{OTHER} +Write a post +1 +100 ", "\n".join(lines), re.MULTILINE)


def test_a_narrow_terminal_cuts_names_and_no_numbers() -> None:
    written = click.unstyle(on_terminal("usage", "--by", "session", columns=72)[1])
    assert re.search(r"^3f2a91c0 +Repair .*… +2 +200 +0 +0 +100 +≥ \$0\.15", written, re.MULTILINE)
    assert max(len(line) for line in written.splitlines() if "call" not in line) <= 72


def test_a_spreadsheet_gets_rows_with_empty_cells_for_what_is_unknown(run: Command) -> None:
    lines = list(csv.DictReader(io.StringIO(run("usage", "--by", "model", "--csv").stdout)))
    by_name = {line["model"]: line for line in lines}
    assert set(by_name) == {"large", "small", "secret"}
    assert by_name["secret"]["cost"] == by_name["secret"]["label"] == ""
    assert by_name["secret"]["tokens"] == "150"
    assert float(by_name["large"]["cost"]) > 0


def test_csv_obeys_no_name(run: Command) -> None:
    name = "\x1b]0;owned\x07\n\u202e＝cmd;=1+1"  # noqa: RUF001  # a full-width sign is meant
    assert run("annotate", OTHER, "--title", name).exit_code == 0
    report = UsageReport("model", (UsageRow(name, name, UsageTotals(calls=2)),), UsageTotals(), (), ())
    for text in (to_csv(report), run("usage", "--by", "session", "--csv").stdout):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert '"\'＝cmd;=1+1"' in text  # noqa: RUF001  # a full-width sign is meant


def test_the_document_says_what_it_contains(run: Command) -> None:
    document = json.loads(run("usage", "--by", "session", "--json").stdout)
    assert any("subagents" in sentence for sentence in document["contains"])
    (missing,) = document["missing"]
    assert missing == "1 call without a known price: their tokens are counted, their cost is not (secret)."


def test_two_periods_are_compared_and_the_causes_add_up(run: Command) -> None:
    arguments = ("usage", "--compare", "--utc", "--since", "2026-11-03", "--until", "2026-11-03")
    document = json.loads(run(*arguments, "--json").stdout)
    assert [document[period]["since"] for period in ("earlier", "later")] == [
        "2026-11-02T00:00:00Z",
        "2026-11-03T00:00:00Z",
    ]
    assert [document[period]["totals"]["calls"] for period in ("earlier", "later")] == [3, 1]
    assert document["cost_change"] == pytest.approx(
        document["later"]["totals"]["cost"] - document["earlier"]["totals"]["cost"]
    )
    assert document["causes"]
    assert sum(each["cost_change"] for each in document["causes"]) == pytest.approx(document["cost_change"])
    text = run(*arguments).stdout
    assert re.search(r"^Calls +3 +1 +-67 %$", text, re.MULTILINE)
    assert "Why the cost changed" in text
    assert re.search(r"^sessions with a known price +\S+ +\S+ +[+-]?\$", text, re.MULTILINE)
    assert re.search(r"^calls without a known price +1 +0 +not in it$", text, re.MULTILINE)


@pytest.mark.parametrize(("zone", "utc"), [("Europe/Berlin", ()), ("America/New_York", ()), ("Asia/Tokyo", ("--utc",))])
def test_without_dates_seven_whole_days_are_compared_with_the_seven_before(
    zone: str, utc: tuple[str, ...], run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    clocks = ZoneInfo("UTC" if utc else zone)
    today = datetime.now(clocks).date()
    try:
        document = json.loads(run("usage", "--compare", *utc, "--json").stdout)
        heading = run("usage", "--compare", *utc).stdout.splitlines()[0]
    finally:
        monkeypatch.undo()
        time.tzset()
    first, middle, end = (datetime.combine(today + timedelta(days=days), clock(), clocks) for days in (-13, -6, 1))
    found = [datetime.fromisoformat(document[period][at]) for period, at in EDGES]
    assert found == [first, middle, middle, end]
    assert f"{first.date()} to {today - timedelta(days=7)}  {middle.date()} to {today}" in heading


EDGES = (("earlier", "since"), ("earlier", "until"), ("later", "since"), ("later", "until"))


def test_a_later_period_without_sessions_is_reported_as_empty(run: Command) -> None:
    empty = run("usage", "--compare", "--utc", "--since", "2031-05-01", "--until", "2031-05-07")
    assert empty.stderr == "No session used a model 2031-05-01 to 2031-05-07: --since names another time.\n"
    full = run("usage", "--compare", "--utc", "--since", "2026-11-02", "--until", "2026-11-03")
    assert "No session" not in full.stderr


def test_what_cannot_be_compared_is_wrong_use(run: Command) -> None:
    for arguments in (("--by", "model"), ("--csv",), ("--until", "2026-11-03"), ("--since", "2090-01-01")):
        result = run("usage", "--compare", *arguments)
        assert result.exit_code == 2, arguments
        assert "Error:" in result.stderr


def test_a_report_of_a_period_says_which_time_it_covers(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """`last week` is the time since then on, which a reader may take for that week alone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        monday = datetime.now(UTC).date() - timedelta(days=datetime.now(UTC).weekday() + 7)
        sunday = monday + timedelta(days=6)
        for words in ("last week", "last-week", "LAST  WEEK"):
            assert run("usage", "--since", words).stdout.splitlines()[0] == f"From {monday} to now."
        both = run("usage", "--since", "last-week", "--until", "last-week").stdout.splitlines()[0]
        assert both == f"From {monday} to {sunday}."
        hour = run("usage", "--until", "2026-11-02T10:30").stdout.splitlines()[0]
        assert hour == "From the first call to 2026-11-02 10:30."
        assert run("usage").stdout.startswith("Day ")
    finally:
        monkeypatch.undo()
        time.tzset()
