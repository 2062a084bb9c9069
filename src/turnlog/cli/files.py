"""`turnlog files`: which sessions touched a file, and how; or which files were touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnlog.cli import figures
from turnlog.cli.lookup import abbreviations, complete_session, external_id, find_agent, find_session, open_existing
from turnlog.cli.options import examples, json_option, limit_option, store_option
from turnlog.cli.terminal import Column, is_terminal, write_json, write_table
from turnlog.store.base import FileFilter
from turnlog.store.values import FileUse, TouchedFile

if TYPE_CHECKING:
    from turnlog.cli.documents import FilesDocument


@click.command(
    epilog=examples(
        "turnlog files src/shop.py                # who touched it, wherever that was",
        "turnlog files ./shop.py                  # this one",
        "turnlog files --session 3f2a91c0         # what a session touched",
        "turnlog files --contains migrations --changed",
    )
)
@click.argument("path", required=False)
@click.option(
    "--session", metavar="SESSION", shell_complete=complete_session, help="Only files that this session touched."
)
@click.option("--project", help="Only this project: its path or name.")
@click.option("--agent", help="Only this agent, as `turnlog agents` names it, or the beginning of that.")
@click.option("--contains", metavar="TEXT", help="Only files whose path contains this.")
@click.option("--changed", is_flag=True, help="Only what changed files, not what read them.")
@limit_option(100)
@json_option
@store_option
def files(
    *,
    path: str | None,
    session: str | None,
    project: str | None,
    agent: str | None,
    contains: str | None,
    changed: bool,
    limit: int,
    as_json: bool,
    store_path: Path,
) -> None:
    """List the sessions that read or changed a file; without PATH, the files that were touched."""
    if path is not None and (session or project or agent or contains):
        raise click.UsageError("a path asks for its sessions: the filters are for lists of files")
    with open_existing(store_path) as store:
        if path is not None:
            uses = store.file_history(_path_meant(path), changed=changed, limit=1).uses[:limit]
            found: list[TouchedFile] = []
        else:
            uses = ()
            name = None if session is None else find_session(store, session).id
            whose = find_agent(store, agent)
            wanted = FileFilter(text=contains, session=name, project=project, agent=whose, changed=changed or None)
            found = store.touched_files(wanted, limit=limit)
    if as_json:
        write_json(_document(uses, found))
    elif path is not None:
        _write_uses(uses)
    else:
        _write_files(found)


def _path_meant(path: str) -> str:
    """A path that begins with a dot is one from here; any other stands for every file whose path ends so."""
    return str(Path(path).absolute()) if path.startswith(".") else path


def _document(uses: tuple[FileUse, ...], found: list[TouchedFile]) -> FilesDocument:
    from msgspec.structs import asdict

    sessions: list[Any] = []
    for use in uses:
        facts = asdict(use)
        sessions.append({"session": facts.pop("session_id"), **facts})
    return {"sessions": sessions, "files": found}


def _write_uses(uses: tuple[FileUse, ...]) -> None:
    columns = (
        Column("Session", style="cyan"),
        Column("First"),
        Column("Last"),
        Column("How", gives_way=True),
        Column("Calls", right=True),
        Column("Changes", right=True),
    )
    short = abbreviations(external_id(use.session_id) for use in uses) if is_terminal() else {}
    rows = [
        (
            short.get(external_id(use.session_id), use.session_id),
            figures.moment(use.first_at),
            figures.moment(use.last_at),
            ", ".join(use.kinds),
            figures.count(use.calls),
            figures.count(use.edits),
        )
        for use in uses
    ]
    write_table(columns, rows)


def _write_files(found: list[TouchedFile]) -> None:
    columns = (
        Column("File", gives_way=True, is_path=True),
        Column("Last"),
        Column("Sessions", right=True),
        Column("Calls", right=True),
        Column("Changes", right=True),
    )
    rows = [
        (
            file.path,
            figures.moment(file.last_at),
            figures.count(file.sessions),
            figures.count(file.calls),
            figures.count(file.edits),
        )
        for file in found
    ]
    write_table(columns, rows)
