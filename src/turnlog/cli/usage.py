"""`turnlog usage`: tokens and costs by hour, day, week, month, model, project, session, agent or subagent.

Answers from totals in the store and imports nothing of the model, so that it starts fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog import paths
from turnlog.cli import formatting
from turnlog.cli.budgets import write_budget_warning
from turnlog.cli.filters import agent_option, model_option, project_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import (
    examples,
    json_option,
    period_options,
    utc_option,
)
from turnlog.cli.short_ids import shown_ids
from turnlog.cli.terminal import Column, write_json, write_note, write_table
from turnlog.cli.usage_sums import KINDS, token_sums
from turnlog.store.base import UsageFilter
from turnlog.store.budgets import budget_state
from turnlog.store.choices import USAGE_BY, UsageBy
from turnlog.store.names import find_agent, find_model, find_project
from turnlog.store.usage_report import UsageBlock, UsageBudget, UsagePart, UsageReport, UsageRow, UsageTotals, to_csv

if TYPE_CHECKING:
    from turnlog.store.base import Store

UNNAMED = "unknown"
"""Name of a row for calls whose log does not name the model or project."""

NO_SUBAGENT = "no subagent"


@click.command(
    epilog=examples(
        "turnlog usage --since 30d",
        "turnlog usage --by week --by project",
        "turnlog usage --by block --since today",
        "turnlog usage --by model --since 2026-11 --until 2026-11",
        "turnlog usage --by session --project webshop --json",
        "turnlog usage --by subagent --csv > subagents.csv",
        "turnlog usage --compare --since 2026-11 --until 2026-11",
    )
)
@click.option(
    "--by",
    "divisions",
    type=click.Choice(USAGE_BY),
    multiple=True,
    help="Write one row for each of these; a second --by divides each row.  [default: day]",
)
@click.option(
    "--compare",
    "is_compared",
    is_flag=True,
    help="Compare with the time before: what changed, and why it cost more or less."
    " Without --since, the last 7 days, today included.",
)
@period_options()
@utc_option
@agent_option
@project_option
@model_option()
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV for a spreadsheet.")
@json_option
@fresh_store_option
def usage(
    divisions: tuple[UsageBy, ...],
    is_compared: bool,
    since: datetime | None,
    until: datetime | None,
    utc: bool,
    agent: str | None,
    project: str | None,
    model: str | None,
    as_csv: bool,
    as_json: bool,
    store_path: Path,
) -> None:
    """Add up tokens and costs. Days are those of your time zone.

    Costs are computed from tokens and the prices of the day (docs/reference/pricing.md). A `≥` before a cost means
    that it leaves out calls without a known price.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot be combined.")
    if is_compared and (divisions or as_csv):
        raise click.UsageError(f"--compare and {'--csv' if as_csv else '--by'} cannot be combined.")
    by, *inner = divisions or ("day",)
    if len(inner) > 1 or by in inner:
        raise click.UsageError("Give --by once, or twice with different values.")
    zone = UTC if utc else None
    with open_fresh(store_path) as store:
        wanted = UsageFilter(
            since=since,
            until=until,
            agent=find_agent(store, agent),
            project=find_project(store, project),
            model=find_model(store, model),
        )
        if is_compared:
            _compare(store, wanted, zone, as_json)
            return
        report = store.usage(by, wanted, then_by=inner[0] if inner else None, zone=zone, active=not as_csv)
        report = replace(report, budgets=_budgets(store, zone))
        shown: Mapping[str, str] = {}
        if report.by in _SESSIONS and not (as_csv or as_json):
            shown = shown_ids(store, (row.name for row in report.rows if row.name))
    if as_csv:
        click.echo(to_csv(report), nl=False)
    elif as_json:
        write_json(report)
    else:
        if since is not None or until is not None:
            click.echo(_covered(since, until, zone))
        _write_report(report, shown)


def _covered(since: datetime | None, until: datetime | None, zone: tzinfo | None) -> str:
    """The time that a report covers, in words: `last week` may be read as that week, or as the time since then."""
    first = "the first call" if since is None else _edge(since, zone)
    # A day ends where the next one begins.
    last = "now" if until is None else _edge(until, zone, day_before=timedelta(days=1))
    return f"From {first} to {last}."


def _edge(at: datetime, zone: tzinfo | None, *, day_before: timedelta = timedelta()) -> str:
    shown = at.astimezone(zone)
    if shown.time() == time():
        return (shown - day_before).date().isoformat()
    return f"{shown:%Y-%m-%d %H:%M}"


def _compare(store: Store, wanted: UsageFilter, zone: tzinfo | None, as_json: bool) -> None:
    from turnlog.cli.usage_comparison import compare, write_comparison

    comparison = compare(store, wanted, zone)
    if as_json:
        write_json(comparison)
    else:
        write_comparison(comparison)


def _budgets(store: Store, zone: tzinfo | None) -> tuple[UsageBudget, ...]:
    if not paths.has_settings():
        return ()
    from turnlog.settings import load_settings
    from turnlog.store.budgets import spent_budgets

    return spent_budgets(store, load_settings().budgets.limits(), zone)


_NAMES: dict[UsageBy, tuple[str, ...]] = {
    "session": ("Session", "Title"),
    "subagent": ("Subagent", "Title"),
    "project": ("Project", "Path"),
    "week": ("Week of",),
}
"""Titles of the columns that name a row, where it is not one with the title of what a row is."""

_WHOLE = ("Hour", "Block", "Day", "Week of", "Month", "Session", "Subagent")
"""Columns that are never cut, because users copy their values into other commands."""


_SESSIONS = ("session", "subagent")
"""What is named by the id of a session."""


def _write_report(report: UsageReport, shown: Mapping[str, str]) -> None:
    has_reported = _has_reported(report)
    titles = _NAMES.get(report.by, (report.by.capitalize(),))
    if report.then_by is not None:
        titles = (*titles, report.then_by.capitalize())
    columns = (
        *(Column(title, can_shrink=title not in _WHOLE, is_path=title == "Path") for title in titles),
        *((Column("Active", right=True),) if report.active_ms is not None else ()),
        Column("Calls", right=True),
        *(Column(kind, right=True) for kind in KINDS),
        Column("Cost", right=True),
        *((Column("Reported", right=True),) if has_reported else ()),
    )
    rows = list(_lines(report, shown))
    active = _active(report, formatting.duration(report.active_ms))
    totals = report.totals
    if report.by in _SESSIONS and totals.reported_cost != _reported(report.rows):
        # An agent also reports of a session what a fork began with, and what no call of it cost.
        totals = replace(totals, reported_cost=None)
    write_table(columns, rows, ("Total", *[""] * (len(titles) - 1), *active, *_cells(totals, has_reported)))
    for row in report.rows:
        if row.block is not None and row.block.is_running:
            click.echo(_running(row.block))
    for budget in report.budgets:
        state = budget_state(budget.spent, budget.limit)
        write_budget_warning(f"the {budget.period}", state, budget.spent, budget.limit, budget.unpriced_calls)
    for note in report.missing:
        write_note(note)


def _reported(rows: Iterable[UsageRow]) -> Decimal | None:
    """What the rows have together that agents reported; None if they have nothing."""
    costs = [row.totals.reported_cost for row in rows if row.totals.reported_cost is not None]
    return sum(costs, Decimal()) if costs else None


def _has_reported(report: UsageReport) -> bool:
    """Whether an agent reported a cost of what is in the report."""
    return any(each.totals.reported_cost is not None for each in report.rows) or report.totals.reported_cost is not None


def _lines(report: UsageReport, shown: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The cells of each row, and below a row those of its parts."""
    has_reported = _has_reported(report)
    labels = formatting.named_apart((part.name, part.label) for row in report.rows for part in row.parts)
    for name, row in zip(_row_names(report, shown), report.rows, strict=True):
        yield (
            *name,
            *([""] if report.then_by else []),
            *_active(report, formatting.duration(row.active_ms)),
            *_cells(row.totals, has_reported),
        )
        for part in row.parts:
            yield (
                *[""] * len(name),
                _part_name(report, part, labels),
                *_active(report, ""),
                *_cells(part.totals, has_reported),
            )


def _active(report: UsageReport, duration: str) -> tuple[str, ...]:
    """The cell of active time, where a report has it."""
    return () if report.active_ms is None else (duration,)


def _part_name(report: UsageReport, part: UsagePart, labels: Mapping[str | None, str]) -> str:
    if part.name is None:
        return NO_SUBAGENT if report.then_by == "subagent" else UNNAMED
    return _without_offset(part.name) if report.then_by in _HOURS else labels[part.name]


def _running(block: UsageBlock) -> str:
    """When the running block ends, its rate, and what it comes to at that rate."""
    until = f"Running until {formatting.clock(block.end)[:5]}"
    if block.tokens_per_minute is None:
        return f"{until}."
    return (
        f"{until}: {formatting.tokens(round(block.tokens_per_minute))} tokens a minute,"
        f" {formatting.money(block.cost_per_hour)} an hour; at this rate"
        f" {formatting.tokens(block.projected_tokens)} tokens and {formatting.money(block.projected_cost)} at its end."
    )


def _row_names(report: UsageReport, shown: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    unnamed = NO_SUBAGENT if report.by == "subagent" else UNNAMED
    names = [row.name or unnamed for row in report.rows]
    for name, row in zip(names, report.rows, strict=True):
        if report.by in _SESSIONS:
            yield shown.get(name, name), row.label or formatting.UNKNOWN
        elif report.by == "project":
            yield row.label or unnamed, row.name or formatting.UNKNOWN
        elif report.by in _HOURS:
            yield (_without_offset(name),)
        else:
            yield (name,)


_HOURS = ("hour", "block")
"""What is named after an hour."""


def _without_offset(hour: str) -> str:
    return hour.replace("T", " ")[: len("2026-11-20 14:00")]


def _cells(totals: UsageTotals, has_reported: bool) -> tuple[str, ...]:
    return (
        formatting.count(totals.calls),
        *token_sums(totals),
        formatting.money(totals.cost, totals.unpriced_calls + totals.unknown_calls, totals.exactness),
        *((formatting.money(totals.reported_cost),) if has_reported else ()),
    )
