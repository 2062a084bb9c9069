"""`turnlog insights`: when the user works, what it costs where, and how tools, commands and models behave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import click

from turnlog.cli import formatting
from turnlog.cli.filters import agent_option, project_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import complete_session, examples, find_session, json_option, period_options, utc_option
from turnlog.cli.terminal import Column, write_json, write_note, write_table
from turnlog.store.base import InsightFilter
from turnlog.store.names import find_agent, find_project

if TYPE_CHECKING:
    from turnlog.store.insights import CommandFigures, ContextStep, ErrorFigures, Insights, ProjectPeriod, Section

_SECTIONS = ("activity", "projects", "tools", "commands", "files", "models", "subagents", "compactions", "errors")

_CONTEXT = "context"

_SHOWN = 10

"""Rows of a section on the terminal; `--json` and `--csv` have all."""

_SHOWN_STEPS = 20
"""The newest steps of a session on the terminal; a long one has thousands."""

_ORDERS: dict[str, Callable[[CommandFigures], int]] = {
    "time": lambda each: -each.duration_ms,
    "failures": lambda each: -each.failed,
    "calls": lambda each: -each.calls,
}
"""What commands are sorted by: `--sort`."""


@click.command(
    epilog=examples(
        "turnlog insights --since 30d",
        "turnlog insights --project webshop --since 2026-11",
        "turnlog insights --sort failures         # which commands fail most",
        "turnlog insights --csv commands > commands.csv",
        "turnlog insights --session 3f2a91c0       # how its context grew",
        "turnlog insights --json",
    )
)
@period_options()
@utc_option
@agent_option
@project_option
@click.option(
    "--session",
    metavar="SESSION",
    shell_complete=complete_session,
    help="Only how the context of this session grew, step by step.",
)
@click.option(
    "--sort",
    type=click.Choice(tuple(_ORDERS)),
    default="time",
    show_default=True,
    help="List first the commands that took the most time, failed most often or were called most often.",
)
@click.option(
    "--csv",
    "section",
    type=click.Choice((*_SECTIONS, _CONTEXT)),
    help="Write this section as CSV, with all its rows; `context` is that of --session.",
)
@json_option
@fresh_store_option
def insights(
    since: datetime | None,
    until: datetime | None,
    utc: bool,
    agent: str | None,
    project: str | None,
    session: str | None,
    sort: str,
    section: str | None,
    as_json: bool,
    store_path: Path,
) -> None:
    """Show when you work, what it costs, and what fails.

    Projects, tools, commands, files, models, subagents, compactions, limits and errors, each in its own table.
    Hours and days are those of your time zone. A dash is an unknown value.
    """
    if section and as_json:
        raise click.UsageError("--csv and --json cannot be combined.")
    if (session is None) == (section == _CONTEXT) and section:
        raise click.UsageError("--session goes with `--csv context`, and no other section with --session.")
    if session is not None:
        with open_fresh(store_path) as store:
            steps = store.context_steps(find_session(store, session).id)
        _write_context(steps, as_csv=section is not None, as_json=as_json)
        return
    with open_fresh(store_path) as store:
        wanted = InsightFilter(
            since=since, until=until, agent=find_agent(store, agent), project=find_project(store, project)
        )
        is_whole = section is not None or as_json
        report = store.insights(wanted, zone=UTC if utc else None, limit=None if is_whole else 2 * _SHOWN)
    # The store lists them by time, and that order stays among equals.
    report.commands.sort(key=_ORDERS[sort])
    if section:
        from turnlog.store.insights import to_csv

        click.echo(to_csv(report, cast("Section", section)), nl=False)
    elif as_json:
        write_json(report)
    else:
        _write_report(report)


def _write_context(steps: Sequence[ContextStep], *, as_csv: bool, as_json: bool) -> None:
    if as_csv:
        from turnlog.store.insights import context_to_csv

        click.echo(context_to_csv(steps), nl=False)
        return
    if as_json:
        write_json({"context": steps})
        return
    if not steps:
        click.echo("No model call is stored of this session.", err=True)
        return
    click.echo(_context_summary(steps) + "\n")
    titles = ("Turn", "Time", "Context", "From cache", "Output", "")
    rows = [
        (
            formatting.count(each.turn),
            formatting.moment(each.created_at),
            formatting.tokens(each.context),
            formatting.tokens(each.cached),
            formatting.tokens(each.output),
            "after a compaction" if each.is_compacted else "",
        )
        for each in steps[-_SHOWN_STEPS:]
    ]
    write_table([Column(title, right=title not in ("Time", "")) for title in titles], rows)
    if len(steps) > _SHOWN_STEPS:
        click.echo(f"… {formatting.count(len(steps) - _SHOWN_STEPS)} earlier: --csv context has all")


def _context_summary(steps: Sequence[ContextStep]) -> str:
    """How large the context became, what is in it now, and how often it was replaced by a summary."""
    sizes = [each.context for each in steps if each.context is not None]
    compactions = sum(each.is_compacted for each in steps)
    return (
        f"{formatting.plural(len(steps), 'model call')}, {formatting.plural(compactions, 'compaction')}. "
        f"Context: {formatting.tokens(max(sizes, default=None))} tokens at most,"
        f" {formatting.tokens(sizes[-1] if sizes else None)} now."
    )


class _Table(NamedTuple):
    title: str
    columns: tuple[str, ...]
    """The first one is a name, all others are numbers."""
    rows: Callable[[Insights], Sequence[Sequence[str]]]
    found: Literal["commands_found", "files_found", "errors_found"] | None = None
    """The field that has how many rows there are, if the report need not list all of them."""


def _write_report(report: Insights) -> None:
    found = [(table, rows) for table in _TABLES if (rows := table.rows(report))]
    for index, (table, rows) in enumerate(found):
        click.echo(f"{chr(10) if index else ''}{table.title}")
        first, *others = table.columns
        write_table((Column(first, can_shrink=True), *(Column(name, right=True) for name in others)), rows[:_SHOWN])
        count = len(rows) if table.found is None else getattr(report, table.found)
        if count > _SHOWN:
            click.echo(f"… {formatting.count(count - _SHOWN)} more")
    if not found:
        click.echo("Nothing found.", err=True)
        return
    for note in report.notes:
        write_note(note)


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _activity(report: Insights) -> list[tuple[str, ...]]:
    """Days of the week with their busiest hour."""
    by_day = defaultdict[int, list[tuple[int, int, int]]](list)
    for each in report.activity:
        by_day[each.weekday].append((each.prompts, each.calls, each.hour))
    return [
        (
            _DAYS[day - 1],
            formatting.count(sum(prompts for prompts, _, _ in hours)),
            formatting.count(sum(calls for _, calls, _ in hours)),
            f"{max(hours)[2]:02}:00",
        )
        for day, hours in sorted(by_day.items())
    ]


def _projects(report: Insights) -> list[tuple[str, ...]]:
    """Projects by cost. Those that have the same name are called by their paths."""
    by_project: dict[str | None, list[ProjectPeriod]] = defaultdict(list)
    for each in report.projects:
        by_project[each.project].append(each)
    labels = formatting.named_apart((project, periods[0].label) for project, periods in by_project.items())
    spent = {
        project: [each.cost for each in periods if each.cost is not None] for project, periods in by_project.items()
    }
    return [
        (
            labels[project],
            formatting.count(sum(each.calls for each in periods)),
            formatting.money(
                sum(spent[project], Decimal(0)) if spent[project] else None,
                sum(each.unpriced_calls for each in periods),
            ),
        )
        for project, periods in sorted(by_project.items(), key=lambda item: -sum(spent[item[0]], Decimal(0)))
    ]


def _tools(report: Insights) -> list[tuple[str, ...]]:
    return [
        (
            each.tool_name,
            formatting.count(each.calls),
            formatting.count(each.failed),
            formatting.share(each.failed / each.calls),
            formatting.count(each.denied),
            formatting.duration(each.duration_ms if each.unknown_durations < each.calls else None),
        )
        for each in report.tools
    ]


def _commands(report: Insights) -> list[tuple[str, ...]]:
    return [
        (
            each.command or "(no program recognised)",
            formatting.count(each.calls),
            formatting.count(each.failed),
            _time_taken(each.median_ms),
            _time_taken(each.longest_ms),
            _time_taken(each.duration_ms if each.median_ms is not None else None),
        )
        for each in report.commands
    ]


def _time_taken(milliseconds: float | None) -> str:
    """As `formatting.duration`. Logs have whole milliseconds, and no command takes none."""
    return "< 1 ms" if milliseconds is not None and milliseconds < 1 else formatting.duration(milliseconds)


def _files(report: Insights) -> list[tuple[str, ...]]:
    return [(each.path, formatting.count(each.edits), formatting.count(each.sessions)) for each in report.files]


def _models(report: Insights) -> list[tuple[str, ...]]:
    return [
        (
            each.model or "unknown",
            formatting.count(each.calls),
            formatting.money(each.cost, each.unpriced_calls),
            formatting.money(each.cost_per_prompt),
            _number(each.steps_per_prompt),
            formatting.share(each.cache_share),
            _number(each.output_per_call),
            formatting.count(each.failed_tool_calls),
        )
        for each in report.models
    ]


def _subagents(report: Insights) -> list[tuple[str, ...]]:
    each = report.subagents
    if not each.calls:
        return []
    return [("subagents", formatting.count(each.sessions), formatting.money(each.cost), formatting.share(each.share))]


def _compactions(report: Insights) -> list[tuple[str, ...]]:
    return [
        (
            f"{each.agent} {each.trigger or ''}".rstrip(),
            formatting.count(each.compactions),
            formatting.count(each.sessions),
            _number(each.median_tokens_before),
        )
        for each in report.compactions
    ]


def _errors(report: Insights) -> list[tuple[str, ...]]:
    return [
        (
            _error_name(each),
            formatting.count(each.errors),
            formatting.count(each.sessions),
        )
        for each in report.errors
    ]


def _error_name(error: ErrorFigures) -> str:
    """The agent, and the kind in plain words; a kind without them is as the agent has it, marked as code."""
    kind = error.label or (f"`{error.kind}`" if error.kind else None)
    facts = (error.agent, kind, str(error.status or ""), "limit" if error.is_limit else "")
    return ", ".join([fact for fact in facts if fact])


def _number(value: float | None) -> str:
    return formatting.UNKNOWN if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


_TABLES = (
    _Table("Activity", ("Day", "Prompts", "Calls", "Busiest hour"), _activity),
    _Table("Projects", ("Project", "Calls", "Cost"), _projects),
    _Table("Tools", ("Tool", "Calls", "Failed", "Share", "Denied", "Time"), _tools),
    _Table(
        "Commands",
        ("Command", "Calls", "Failed", "Median", "Longest", "Time"),
        _commands,
        "commands_found",
    ),
    _Table("Most edited files", ("File", "Edits", "Sessions"), _files, "files_found"),
    _Table(
        "Models",
        ("Model", "Calls", "Cost", "Per prompt", "Steps/prompt", "Cached", "Output/call", "Failed tools"),
        _models,
    ),
    _Table("Subagents", ("", "Sessions", "Cost", "Share"), _subagents),
    _Table("Compactions", ("Agent", "Compactions", "Sessions", "Tokens before"), _compactions),
    _Table("Limits and errors", ("Error", "Errors", "Sessions"), _errors, "errors_found"),
)
