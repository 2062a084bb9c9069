"""`turnlog usage`: tokens and costs by day, model, project, session, agent or subagent.

Answers from totals in the store and imports nothing of the model, so that it starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from turnlog.cli import figures
from turnlog.cli.lookup import abbreviations, external_id, find_agent, open_existing
from turnlog.cli.options import examples, json_option, period_options, store_option
from turnlog.cli.terminal import Column, is_terminal, write_json, write_table
from turnlog.store.base import USAGE_BY, UsageBy, UsageFilter
from turnlog.store.usage_report import UsageReport, UsageTotals, to_csv

UNNAMED = "unknown"
"""What a row is called of which the log does not tell the name."""

NO_SUBAGENT = "no subagent"


@click.command(
    epilog=examples(
        "turnlog usage --since 30d",
        "turnlog usage --by model --since 2026-11 --until 2026-11",
        "turnlog usage --by session --project webshop --json",
        "turnlog usage --by subagent --csv > subagents.csv",
    )
)
@click.option("--by", type=click.Choice(USAGE_BY), default="day", show_default=True, help="What a row is.")
@period_options(utc=True)
@click.option("--agent", help="Only this agent, as `turnlog agents` names it, or the beginning of that.")
@click.option("--project", help="Only this project: its path or name.")
@click.option("--model", help="Only this model.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV, a row for each, for a spreadsheet.")
@json_option
@store_option
def usage(
    by: UsageBy,
    since: datetime | None,
    until: datetime | None,
    agent: str | None,
    project: str | None,
    model: str | None,
    as_csv: bool,
    as_json: bool,
    store_path: Path,
) -> None:
    """Add up tokens and costs. Days are UTC.

    Costs are computed from tokens and the prices of the day (docs/reference/pricing.md). A `+` behind a cost says that
    some calls have no known price and are not in it.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot be combined.")
    with open_existing(store_path) as store:
        whose = find_agent(store, agent)
        report = store.usage(by, UsageFilter(since=since, until=until, agent=whose, project=project, model=model))
    if as_csv:
        click.echo(to_csv(report), nl=False)
    elif as_json:
        write_json(report)
    else:
        _write_report(report)


_NAMES: dict[UsageBy, tuple[str, ...]] = {
    "session": ("Session", "Title"),
    "subagent": ("Subagent", "Title"),
    "project": ("Project", "Path"),
}
"""Titles of the columns that name a row, where it is not one with the title of what a row is."""

_WHOLE = ("Day", "Session", "Subagent")
"""Names that are copied to ask further, and never cut."""


def _write_report(report: UsageReport) -> None:
    titles = _NAMES.get(report.by, (report.by.capitalize(),))
    columns = (
        *(Column(title, gives_way=title not in _WHOLE, is_path=title == "Path") for title in titles),
        Column("Calls", right=True),
        Column("Input", right=True),
        Column("Cache write", right=True),
        Column("Cache read", right=True),
        Column("Output", right=True),
        Column("Cost", right=True),
    )
    rows = [(*name, *_cells(row.totals)) for name, row in zip(_row_names(report), report.rows, strict=True)]
    write_table(columns, rows, ("Total", *[""] * (len(titles) - 1), *_cells(report.totals)))
    for note in report.missing:
        click.echo(note, err=True)


def _row_names(report: UsageReport) -> Iterator[tuple[str, ...]]:
    unnamed = NO_SUBAGENT if report.by == "subagent" else UNNAMED
    names = [row.name or unnamed for row in report.rows]
    are_sessions = report.by in ("session", "subagent")
    short = abbreviations(external_id(name) for name in names) if are_sessions and is_terminal() else {}
    for name, row in zip(names, report.rows, strict=True):
        if are_sessions:
            yield short.get(external_id(name), name), row.label or figures.UNKNOWN
        elif report.by == "project":
            yield row.label or unnamed, row.name or figures.UNKNOWN
        else:
            yield (name,)


def _cells(totals: UsageTotals) -> tuple[str, ...]:
    return (
        figures.count(totals.calls),
        figures.tokens(totals.input + totals.tool_prompt),
        figures.tokens(totals.cache_write_5m + totals.cache_write_1h + totals.cache_write),
        figures.tokens(totals.cache_read),
        figures.tokens(totals.output + totals.reasoning),
        figures.money(totals.cost, totals.unpriced_calls + totals.unknown_calls),
    )
