"""`turnlog files`: which sessions touched a file, and how; or which files were touched."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from turnlog.cli import formatting
from turnlog.cli.filters import agent_option, project_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import (
    complete_session,
    examples,
    find_session,
    json_option,
    limit_option,
)
from turnlog.cli.short_ids import shown_ids
from turnlog.cli.terminal import Column, write_json, write_note, write_table
from turnlog.plain_text import one_line
from turnlog.store.base import FileFilter
from turnlog.store.names import find_agent, find_project
from turnlog.store.values import FileUse, TouchedFile

if TYPE_CHECKING:
    from turnlog.cli.documents import FilesDocument
    from turnlog.store.base import Store


@click.command(
    epilog=examples(
        "turnlog files src/shop.py                # every shop.py in a folder src",
        "turnlog files .sql                       # every file with this suffix",
        "turnlog files ./shop.py                  # the one in this folder",
        "turnlog files --session 3f2a91c0         # what a session touched",
        "turnlog files --contains migrations --changed",
    )
)
@click.argument("path", required=False)
@click.option(
    "--session", metavar="SESSION", shell_complete=complete_session, help="Only files that this session touched."
)
@project_option
@agent_option
@click.option("--contains", metavar="TEXT", help="Only files whose path contains this.")
@click.option("--changed", is_flag=True, help="Leave out reads: list only changes.")
@limit_option(100)
@json_option
@fresh_store_option
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
    """List the sessions that read or changed the file at PATH; without PATH, list the files that were touched."""
    if path is not None and (session or project or agent or contains):
        raise click.UsageError("filters select files; they cannot be combined with a PATH")
    with open_fresh(store_path) as store:
        if path is not None:
            uses = store.file_history(_resolved_path(path), changed=changed, limit=1).uses[:limit]
            found: list[TouchedFile] = []
        else:
            uses = ()
            name = None if session is None else find_session(store, session).id
            whose = find_agent(store, agent)
            wanted = FileFilter(
                text=contains, session=name, project=find_project(store, project), agent=whose, changed=changed or None
            )
            found = store.touched_files(wanted, limit=limit)
        if as_json:
            write_json(_document(uses, found))
        elif path is not None:
            _write_uses(store, uses)
            if not uses:
                _note_similar(store, path)
        else:
            _write_files(found)


def _note_similar(store: Store, path: str) -> None:
    """Say that files contain a path that is no file's last components."""
    similar = store.touched_files(FileFilter(text=path), limit=1)
    if similar:
        write_note(
            f"Paths that contain it, such as {one_line(similar[0].path)}: turnlog files --contains {quote(path)}"
        )


def _resolved_path(path: str) -> str:
    """A path that begins with `./` or `../` is relative to this folder; any other is the end of a path."""
    return str(Path(path.replace("\\", "/")).absolute()) if path in (".", "..") or path.startswith(_HERE) else path


_HERE = ("./", "../", ".\\", "..\\")


def _document(uses: tuple[FileUse, ...], found: list[TouchedFile]) -> FilesDocument:
    from msgspec.structs import asdict

    sessions: list[Any] = []
    for use in uses:
        facts = asdict(use)
        sessions.append({"session": facts.pop("session_id"), **facts})
    return {"sessions": sessions, "files": found}


def _write_uses(store: Store, uses: tuple[FileUse, ...]) -> None:
    columns = (
        Column("Session", style="cyan"),
        Column("First", is_optional=True),
        Column("Last"),
        Column("Title", can_shrink=True),
        Column("How", can_shrink=True, is_optional=True),
        Column("Calls", right=True, is_optional=True),
        Column("Changes", right=True),
    )
    shown = shown_ids(store, (use.session_id for use in uses))
    rows = [
        (
            shown[use.session_id],
            formatting.moment(use.first_at),
            formatting.moment(use.last_at),
            store.session(use.session_id).title or formatting.UNKNOWN,
            ", ".join(use.kinds),
            formatting.count(use.calls),
            formatting.count(use.edits),
        )
        for use in uses
    ]
    write_table(columns, rows)


def _write_files(found: list[TouchedFile]) -> None:
    columns = (
        Column("File", can_shrink=True, is_path=True),
        Column("Last"),
        Column("Sessions", right=True),
        Column("Calls", right=True),
        Column("Changes", right=True),
    )
    rows = [
        (
            file.path,
            formatting.moment(file.last_at),
            formatting.count(file.sessions),
            formatting.count(file.calls),
            formatting.count(file.edits),
        )
        for file in found
    ]
    write_table(columns, rows)
