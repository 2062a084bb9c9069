"""`turnlog task`: the tasks, and their names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, pass_options_on
from turnlog.cli.options import examples, json_option, open_existing, store_option
from turnlog.cli.terminal import Column, write_json, write_table
from turnlog.plain_text import one_line

if TYPE_CHECKING:
    from turnlog.cli.documents import TasksDocument
    from turnlog.store.values import Task


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "turnlog run --task T-17 -- claude -p 'fix the tests'",
        "turnlog annotate 3f2a91c0 --task T-17",
        "turnlog task                             # list them",
        'turnlog task rename T-17 "Till on Postgres"',
        "turnlog sessions --task T-17",
    ),
)
@json_option
@fresh_store_option
@click.pass_context
def task(ctx: click.Context, as_json: bool, store_path: Path) -> None:
    """List tasks, to which sessions of one or several agents belong; name or delete them.

    A task is there as soon as a session names it: `run --task`, `annotate --task`, or the variable TURNLOG_TASK in the
    environment of an agent with hooks.
    """
    if ctx.invoked_subcommand is None:
        _list(store_path, as_json)
    pass_options_on(ctx)


@task.command("list", epilog=examples("turnlog task list --json | jq .items"))
@json_option
@fresh_store_option
def list_tasks(as_json: bool, store_path: Path) -> None:
    """List tasks, the most recently used first."""
    _list(store_path, as_json)


def _list(store_path: Path, as_json: bool) -> None:
    with open_fresh(store_path) as store:
        tasks = store.tasks()
    if as_json:
        document: TasksDocument = {"items": tasks}
        write_json(document)
    else:
        columns = (Column("Task", style="cyan"), Column("Sessions", right=True), Column("Updated"), Column("Name"))
        write_table(
            columns,
            [
                (one_line(found.id), formatting.count(found.sessions), formatting.moment(found.updated_at), found.name)
                for found in tasks
            ],
        )


@task.command(epilog=examples('turnlog task rename T-17 "Till on Postgres"', 'turnlog task rename T-17 ""'))
@click.argument("task")
@click.argument("name")
@json_option
@store_option
def rename(task: str, name: str, as_json: bool, store_path: Path) -> None:
    """Show TASK under another NAME; its id stays. An empty one restores the id."""
    with open_existing(store_path) as store:
        renamed = store.rename_task(task, name)
    _report(renamed, f"{renamed.id} is named {renamed.name}.", as_json)


@task.command(epilog=examples("turnlog task delete T-17"))
@click.argument("task")
@json_option
@store_option
def delete(task: str, as_json: bool, store_path: Path) -> None:
    """Delete TASK; its sessions stay, in no task."""
    with open_existing(store_path) as store:
        deleted = store.task(task)
        store.delete_task(task)
    _report(deleted, f"{deleted.name} is deleted.", as_json)


def _report(task: Task, sentence: str, as_json: bool) -> None:
    if as_json:
        write_json(task)
    else:
        click.echo(one_line(sentence))
