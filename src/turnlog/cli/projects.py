"""`turnlog project`: the projects, and the user's names and merges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.filters import project_argument
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, pass_options_on
from turnlog.cli.options import examples, json_option, open_existing, store_option
from turnlog.cli.terminal import Column, write_json, write_table
from turnlog.plain_text import one_line
from turnlog.store.names import find_project, folder_name

if TYPE_CHECKING:
    from turnlog.cli.documents import ProjectsDocument
    from turnlog.store.base import Store
    from turnlog.store.usage_report import ProjectSummary


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "turnlog project                          # list them",
        'turnlog project rename ~/work/shop "Web shop"',
        "turnlog project merge ~/old/shop ~/work/shop",
        "turnlog project split ~/old/shop         # undo the merge",
    ),
)
@json_option
@fresh_store_option
@click.pass_context
def project(ctx: click.Context, as_json: bool, store_path: Path) -> None:
    """List projects; rename them, or merge two that are one.

    A git worktree belongs to the project of its repository without being merged.
    """
    if ctx.invoked_subcommand is None:
        _list(store_path, as_json)
    pass_options_on(ctx)


@project.command("list", epilog=examples("turnlog project list", "turnlog project list --json | jq .items"))
@json_option
@fresh_store_option
def list_projects(as_json: bool, store_path: Path) -> None:
    """List projects, the most recently used first."""
    _list(store_path, as_json)


def _list(store_path: Path, as_json: bool) -> None:
    with open_fresh(store_path) as store:
        projects = store.projects()
    if as_json:
        document: ProjectsDocument = {"items": projects}
        write_json(document)
    else:
        _write_list(projects)


@project.command(epilog=examples('turnlog project rename shop "Web shop"', 'turnlog project rename shop ""'))
@project_argument("project")
@click.argument("name")
@json_option
@store_option
def rename(project: str, name: str, as_json: bool, store_path: Path) -> None:
    """Show PROJECT under another NAME; an empty one restores the name of its folder."""
    with open_existing(store_path) as store:
        renamed = store.rename_project(_find(store, project), name)
    _report(renamed, f"{renamed.path} is named {renamed.name}.", as_json)


@project.command(epilog=examples("turnlog project merge ~/old/shop ~/work/shop"))
@project_argument("project")
@project_argument("into")
@json_option
@store_option
def merge(project: str, into: str, as_json: bool, store_path: Path) -> None:
    """Count the sessions of PROJECT, also future ones, to the project INTO."""
    with open_existing(store_path) as store:
        merged = store.merge_projects(_find(store, project), _find(store, into))
    _report(merged, f"{merged.name} has {formatting.plural(merged.sessions, 'session')} now.", as_json)


@project.command(epilog=examples("turnlog project split ~/old/shop"))
@click.argument("folder")
@json_option
@store_option
def split(folder: str, as_json: bool, store_path: Path) -> None:
    """Undo the merge of the project in FOLDER."""
    with open_existing(store_path) as store:
        parted = store.split_project(_merged_folder(store, folder) or folder)
    _report(parted, f"{parted.name} is a separate project again.", as_json)


def _find(store: Store, text: str) -> str:
    """The path or name of a project; a merged one is not taken for the one that has its sessions."""
    return _merged_folder(store, text) or find_project(store, text) or text


def _merged_folder(store: Store, text: str) -> str | None:
    """The folder of a project which is merged into another, by its path, or by its name if no other one has it."""
    projects = store.projects()
    merged = {path for project in projects for path in project.merged}
    named = [path for path in merged if folder_name(path) == text and text not in {each.name for each in projects}]
    paths = (text, str(Path(text).absolute()), *(named if len(named) == 1 else ()))
    return next((path for path in paths if path in merged), None)


def _report(project: ProjectSummary, sentence: str, as_json: bool) -> None:
    if as_json:
        write_json(project)
    else:
        click.echo(one_line(sentence))


def _write_list(projects: list[ProjectSummary]) -> None:
    columns = (
        Column("Project", style="cyan"),
        Column("Sessions", right=True),
        Column("Updated"),
        Column("Folder", can_shrink=True),
    )
    rows = [
        (
            found.name,
            formatting.count(found.sessions),
            formatting.moment(found.updated_at),
            ", ".join((found.path, *found.merged)),
        )
        for found in projects
    ]
    write_table(columns, rows)
