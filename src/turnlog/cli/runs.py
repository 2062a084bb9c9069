"""`turnlog runs`: recorded runs, their results and their sessions."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from turnlog.cli import formatting
from turnlog.cli.filters import agent_option
from turnlog.cli.options import (
    examples,
    json_option,
    limit_option,
    open_existing,
    period_options,
    store_option,
)
from turnlog.cli.terminal import PARTIAL, Column, is_terminal, write_json, write_table
from turnlog.plain_text import one_line, plain
from turnlog.store.base import RunFilter
from turnlog.store.choices import RUN_STATUSES
from turnlog.store.names import find_agent

if TYPE_CHECKING:
    from turnlog.cli.documents import RunDocument, RunImportDocument, RunsDocument
    from turnlog.store.values import Run

SHORT = 8
"""Characters of a run's id in a list for people."""


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "turnlog runs",
        "turnlog runs --status failed --since 7d",
        "turnlog runs show 5d1f0c2a",
        "turnlog runs link 5d1f0c2a      # look for its log again",
        "turnlog runs import old.jsonl   # records of prompt and result",
    ),
)
@agent_option
@click.option("--status", type=click.Choice(RUN_STATUSES), help="Only runs with this status.")
@click.option("--session", metavar="SESSION", help="Only runs of this session; takes a whole id.")
@period_options()
@limit_option(50)
@click.option("--cursor", help="Continue a list: the `next_cursor` of its last page.")
@json_option
@store_option
@click.pass_context
def runs(
    ctx: click.Context,
    *,
    agent: str | None,
    status: str | None,
    session: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
    store_path: Path,
) -> None:
    """List runs that `turnlog run` or a chat started, newest first."""
    from turnlog.runs.abandoned import close_abandoned_runs

    close_abandoned_runs(store_path)
    if ctx.invoked_subcommand is not None:
        return
    with open_existing(store_path) as store:
        try:
            wanted = RunFilter(find_agent(store, agent), status, session, since, until)
            page = store.runs(wanted, limit=limit, cursor=cursor)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    if as_json:
        document: RunsDocument = {
            "items": [run_document(run) for run in page.items],
            "next_cursor": page.next_cursor,
            "total": page.total,
        }
        write_json(document)
        return
    _write_list(page.items)
    if page.next_cursor is not None:
        click.echo(f"{len(page.items)} of {formatting.plural(page.total or 0, 'run')}; --limit shows more.", err=True)


@runs.command(epilog=examples("turnlog runs show 5d1f0c2a", "turnlog runs show 5d1f0c2a --json | jq .usage"))
@click.argument("run_id", metavar="RUN")
@json_option
@store_option
def show(run_id: str, as_json: bool, store_path: Path) -> None:
    """Show everything that is recorded about one run.

    RUN is an id or the beginning of one.
    """
    with open_existing(store_path) as store:
        run = store.run(run_id)
    if as_json:
        write_json(run_document(run))
    else:
        _write_run(run)


@runs.command(epilog=examples("turnlog runs link 5d1f0c2a"))
@click.argument("run_id", metavar="RUN")
@json_option
@store_option
def link(run_id: str, as_json: bool, store_path: Path) -> None:
    """Look for the log of a run again.

    New records of the log are read, and the run is linked to its session. Repeating this adds nothing twice.
    """
    from turnlog.runs.sessions import link_run

    with open_existing(store_path) as store:
        run = store.run(run_id)
    run = link_run(store_path, run)
    if as_json:
        write_json(run_document(run))
    else:
        _write_run(run)


@runs.command(epilog=examples("turnlog runs forget 5d1f0c2a"))
@click.argument("run_id", metavar="RUN")
@json_option
@store_option
def forget(run_id: str, as_json: bool, store_path: Path) -> None:
    """Remove a recorded run permanently. Its session stays; `turnlog forget` removes a session with its runs."""
    from turnlog.runs.lifecycle import forget_run

    with open_existing(store_path) as store:
        found = store.run(run_id)
    run = forget_run(store_path, found.id)
    if as_json:
        write_json(run_document(run))
    else:
        click.echo(f"Forgot run {plain(run.id)}.")


@runs.command(
    "import",
    epilog=examples(
        "turnlog runs import executions.jsonl",
        "sqlite3 -json smithers.db 'SELECT * FROM agents' | turnlog runs import -",
    ),
)
@click.argument("file", type=click.File("rb"))
@json_option
@store_option
@click.pass_context
def import_records(ctx: click.Context, file: BinaryIO, as_json: bool, store_path: Path) -> None:
    """Read runs that another program recorded.

    FILE holds prompts and results as JSON or JSON lines, with the fields of Smithers' executions; `-` reads a pipe. If
    a record names a readable log, the run is linked to the session of that log. Otherwise its prompt and result become
    a session of two messages, marked as such. Importing the same file again changes nothing.
    """
    from turnlog.runs.imports import import_runs

    summary = import_runs(store_path, file.read())
    if as_json:
        document: RunImportDocument = {
            "runs": summary.runs,
            "new_runs": summary.new_runs,
            "linked": summary.linked,
            "histories": summary.histories,
            "problems": [{"path": problem.path, "reason": problem.reason} for problem in summary.problems],
        }
        write_json(document)
    else:
        histories = formatting.plural(summary.histories, "history", "histories")
        click.echo(
            f"{formatting.plural(summary.new_runs, 'new run')} of {formatting.count(summary.runs)}:"
            f" {formatting.plural(summary.linked, 'log')} read, {histories} of prompt and result."
        )
        for problem in summary.problems:
            click.echo(f"turnlog: {plain(problem.path)}: {plain(problem.reason)}", err=True)
    if summary.problems:
        ctx.exit(PARTIAL)


def run_document(run: Run) -> RunDocument:
    """The run in the JSON of the HTTP API."""
    from turnlog.server.responses import RunResponse

    return RunResponse.of_run(run)


def _write_list(found: tuple[Run, ...]) -> None:
    columns = (
        Column("Run", style="cyan"),
        Column("Started"),
        Column("Status"),
        Column("Agent"),
        Column("Prompt", can_shrink=True),
        Column("Took", right=True),
        Column("Tools", right=True),
        Column("Tokens", right=True),
        Column("Cost", right=True),
    )
    rows = [
        (
            run.id[:SHORT] if is_terminal() else run.id,
            formatting.moment(run.started_at or run.created_at),
            run.status,
            run.agent or formatting.UNKNOWN,
            one_line(run.prompt or " ".join(run.command), 100),
            formatting.duration(_took(run)),
            formatting.count(run.tool_calls),
            formatting.tokens(run.usage.total if run.usage else None),
            formatting.money(run.cost),
        )
        for run in found
    ]
    write_table(columns, rows)


def _took(run: Run) -> int | None:
    if run.started_at is None or run.ended_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds() * 1000)


def _write_run(run: Run) -> None:
    facts = {
        "Run": run.id,
        "Status": run.status,
        "Why": run.error,
        "Agent": run.agent,
        "Command": " ".join(run.command) or None,
        "Folder": run.cwd,
        "Model": run.model,
        "Started": formatting.moment(run.started_at or run.created_at),
        "Took": formatting.duration(_took(run)),
        "Exit code": None if run.exit_code is None else str(run.exit_code),
        "Tool calls": None if run.tool_calls is None else formatting.count(run.tool_calls),
        "Tokens": None if run.usage is None else formatting.tokens(run.usage.total),
        "Cost": None if run.cost is None else formatting.money(run.cost),
        "Session": run.session_id,
        "Log": run.log_path,
        "Remark": run.log_problem,
    }
    for name, value in facts.items():
        if value is not None:
            click.echo(f"{name + ':':<12}{one_line(value)}")
    for name, text in (("System prompt", run.system_prompt), ("Prompt", run.prompt), ("Result", run.result)):
        if text:
            click.echo(f"\n{name}\n{plain(text)}")
