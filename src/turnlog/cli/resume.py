"""`turnlog resume`: go on with a session in the agent that it comes from."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import complete_session, examples, find_session, json_option
from turnlog.cli.terminal import write_json
from turnlog.errors import NotFoundError
from turnlog.plain_text import one_line, plain

if TYPE_CHECKING:
    from turnlog.cli.documents import ResumeDocument
    from turnlog.model import Session
    from turnlog.runs.resuming import Resumption
    from turnlog.store.base import Store


@click.command(
    epilog=examples(
        "turnlog resume                     # the newest session of the current folder's project",
        "turnlog resume 3f2a91c0",
        "turnlog resume 3f2a91c0 --print    # the command only",
    )
)
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=complete_session)
@click.option("--print", "only_print", is_flag=True, help="Print the command, and start and restore nothing.")
@json_option
@fresh_store_option
def resume(session_id: str | None, only_print: bool, as_json: bool, store_path: Path) -> None:
    """Start the agent of a session where the session ended, in the session's folder.

    If the agent has deleted the session's log, it is first restored from the archive, byte for byte. `--json` prints
    the command, as `--print` does.
    """
    from turnlog.runs.resuming import plan_resumption

    with open_fresh(store_path) as store:
        session = find_session(store, session_id) if session_id else _newest_here(store)
        planned = plan_resumption(store, session)
        if as_json:
            write_json(_document(session, planned))
            return
        if only_print:
            click.echo(f"cd {shlex.quote(str(planned.folder))} && {shlex.join(planned.command)}")
            _write_missing(planned)
            return
        if planned.home is not None:
            files = store.restore(session.id, planned.home)
            restored = formatting.plural(len(files), "file")
            click.echo(f"Restored {restored} below {plain(str(planned.home))}.", err=True)
    if not session_id:
        click.echo(f"{one_line(session.title or session.id)}  {plain(session.id)}", err=True)
    os.chdir(planned.folder)
    os.execvp(planned.command[0], planned.command)


def _newest_here(store: Store) -> Session:
    """The newest session of the project in the current folder that is no subagent's."""
    from turnlog.store.base import SessionFilter

    here = Path.cwd()
    found = store.sessions(SessionFilter(project=str(here)), limit=1).items
    if not found:
        raise NotFoundError(f"no session was read of the project {here}: name one, as `turnlog sessions` lists them")
    return found[0]


def _document(session: Session, planned: Resumption) -> ResumeDocument:
    return {
        "session_id": session.id,
        "command": planned.command,
        "folder": str(planned.folder),
        "missing": [str(path) for path in planned.missing],
    }


def _write_missing(planned: Resumption) -> None:
    if planned.home is not None:
        deleted = formatting.plural(len(planned.missing), "file")
        click.echo(f"The agent has deleted {deleted} of it: without --print they are restored first.", err=True)
