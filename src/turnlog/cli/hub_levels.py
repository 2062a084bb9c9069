"""`turnlog hub level`: how much of each project leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli.filters import project_argument
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.hub_readers import write_readers
from turnlog.cli.options import examples
from turnlog.errors import ConflictError, NotFoundError
from turnlog.plain_text import one_line, plain
from turnlog.store.names import find_project

if TYPE_CHECKING:
    from turnlog.hub.machine.state import MachineState
    from turnlog.store.base import Store
    from turnlog.store.usage_report import ProjectSummary


@click.command(
    epilog=examples(
        "turnlog hub level                            # what holds now",
        "turnlog hub level shop metrics",
        "turnlog hub level ~/work/client none         # this folder and all below",
        "turnlog hub level ~/work/client --remove     # as what is above says, again",
    )
)
@project_argument("project", required=False)
@click.argument("level", required=False, type=click.Choice(["none", "metrics", "redacted", "full"]))
@click.option("--remove", is_flag=True, help="Remove the rule that was chosen for this folder.")
@fresh_store_option
def level(project: str | None, level: str | None, remove: bool, store_path: Path) -> None:
    """Choose how much of a project leaves this machine; without a level, show the levels.

    PROJECT is the name or the folder of a project, or any other folder. The level holds for the folder and all below.
    What was sent at a higher level is taken back with the next push. Where more leaves than before, who may read it on
    the hub is named. Without its rule, a folder has the level of the
    folder above that has one, or of the settings.
    """
    from turnlog.hub.machine.levels import MEANINGS
    from turnlog.hub.machine.pusher import current_levels
    from turnlog.hub.machine.state import MachineState

    if remove and (project is None or level is not None):
        raise click.UsageError("name the folder whose rule is removed, and no level")
    with open_fresh(store_path) as store, MachineState(store_path) as state:
        if project is None:
            _write_levels(store.projects(), state)
            return
        folders = _folders(store, project, state.levels())
        if remove and not any([state.drop_level(folder) for folder in folders]):
            raise NotFoundError(f"no rule was chosen for {one_line(folders[0])}: `turnlog hub level` lists all")
        for folder in folders:
            if level is not None:
                state.set_level(folder, level)
            holds = current_levels(state).of(folder)
            click.echo(f"{plain(folder)}: {holds} ({MEANINGS[holds]})")
            _note_project_above(folder, store.projects())
        write_readers(store_path, state)


def _folders(store: Store, text: str, chosen: Collection[str]) -> list[str]:
    """The folder that is meant. Where a link leads to it, both: a log may name it either way.

    Raises NotFoundError for what is neither a project nor a folder, ConflictError where several projects have the name.
    """
    projects = store.projects()
    folder = os.path.normpath(Path(text).expanduser().absolute())
    names = {name for project in projects for name in (project.path, project.name)}
    known = {path for project in projects for path in (project.path, *project.merged)}
    of_project = _known_folder(folder, known)
    if text not in names and of_project is None:
        if Path(folder).is_dir():
            return list(dict.fromkeys((folder, os.path.realpath(folder))))
        # Also one that is gone, as the folders of finished work are: projects of the store lie below it.
        if folder in chosen or any(folder in map(str, Path(path).parents) for path in known):
            return [folder]
    try:
        named = find_project(store, text if text in names else of_project or text)
    except NotFoundError as error:
        raise NotFoundError(f"there is no folder {one_line(folder)}, and {error}") from error
    found = [project.path for project in projects if named in (project.path, project.name)]
    if len(found) > 1:
        raise ConflictError(f"several projects are named {text!r}: give one of {', '.join(map(one_line, found))}")
    return found


def _note_project_above(folder: str, projects: Collection[ProjectSummary]) -> None:
    """Say that the level of a folder within a project raises nothing: the project's is the highest of its sessions."""
    paths = {project.path for project in projects}
    above = next((str(each) for each in Path(folder).parents if str(each) in paths), None)
    if above is not None and not any(Path(path).is_relative_to(folder) for path in paths):
        click.echo(
            f"turnlog: sessions here are of the project {one_line(above)}: no more leaves than its level says", err=True
        )


def _known_folder(folder: str, known: Collection[str]) -> str | None:
    return next((path for path in (folder, os.path.realpath(folder)) if path in known), None)


def _write_levels(projects: Collection[ProjectSummary], state: MachineState) -> None:
    """The level of every project, and every rule: also those of folders without a project."""
    from turnlog.hub.machine.pusher import current_levels
    from turnlog.settings import load_settings

    levels, settings = current_levels(state), load_settings().hub
    for project in projects:
        click.echo(f"{levels.of(project.path):9} {plain(project.path)}")
    click.echo("Rules; a folder's holds for all below it:")
    _write_rules(state.levels(), "")
    _write_rules({path: held for path, held in settings.projects.items() if path not in state.levels()}, "  (settings)")
    click.echo(f"  {levels.of(None):9} everything else")


def _write_rules(rules: Mapping[str, str], origin: str) -> None:
    for path, held in sorted(rules.items()):
        click.echo(f"  {held:9} {plain(path)}{origin}")
