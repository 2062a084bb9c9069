"""`turnlog resume`: go on with a session in the agent that it comes from, or in another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.handoff import document_of, handoff_options, is_changed, plan_handoff, write_plan
from turnlog.cli.options import complete_session, examples, find_session, json_option
from turnlog.cli.terminal import write_json
from turnlog.errors import NotFoundError, TurnlogError
from turnlog.paths import find_program
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
        "turnlog resume 3f2a91c0 --in codex # another agent goes on, as by `turnlog handoff`",
    )
)
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=complete_session)
@click.option("--in", "target", metavar="AGENT", help="Hand it to this agent, and start that one.")
@handoff_options
@click.option("--print", "only_print", is_flag=True, help="Print the command, and start, write and restore nothing.")
@json_option
@fresh_store_option
def resume(
    session_id: str | None,
    target: str | None,
    only_print: bool,
    as_json: bool,
    store_path: Path,
    **options: object,
) -> None:
    """Start the agent of a session where the session ended, in the session's folder.

    With `--in`, or with an option that changes what is carried, the session is handed over first, as a new session.

    If the agent has deleted the session's log, it is first restored from the archive, byte for byte. `--json` prints
    the command, as `--print` does.
    """
    from turnlog.runs.resuming import plan_resumption, shell_line

    with open_fresh(store_path) as store:
        session = _newest_here(store) if session_id is None else find_session(store, session_id)
        if target is not None or is_changed(options):
            folder, command = _hand_over(store, session, target, options, only_print=only_print, as_json=as_json)
            if not only_print and not as_json:
                _start(folder, command)
            return
        planned = plan_resumption(store, session)
        if planned.problems and not only_print and not as_json:
            raise NotFoundError(planned.problems[0])
        for problem in planned.problems:
            click.echo(plain(problem), err=True)
        if as_json:
            write_json(_document(session, planned))
            return
        if only_print:
            click.echo(shell_line(str(planned.folder), planned.command))
            _write_missing(planned)
            return
        if planned.home is not None:
            # The agent needs its log, and its home nothing else.
            files = store.restore(session.id, planned.home, copies=False)
            restored = formatting.plural(len(files), "file")
            click.echo(f"Restored {restored} below {plain(str(planned.home))}.", err=True)
    if session_id is None:
        click.echo(f"{one_line(session.title or session.id)}  {plain(session.id)}", err=True)
    _start(planned.folder, planned.command)


def _start(folder: Path, command: list[str]) -> NoReturn:
    """Become the agent. Raises TurnlogError if it cannot be started."""
    # Looked up before the folder changes: a file of that folder must not be taken for the agent.
    program = find_program(command[0])
    if program is None:
        raise TurnlogError(f"{command[0]} is not installed")
    try:
        os.chdir(folder)
        os.execv(program, command)
    except OSError as error:
        raise TurnlogError(f"{command[0]} cannot be started in {folder} ({error.strerror})") from None


def _hand_over(
    store: Store, session: Session, target: str | None, options: dict[str, object], *, only_print: bool, as_json: bool
) -> tuple[Path, list[str]]:
    """Hand a session to an agent, by default its own; return where to start what."""
    planned = plan_handoff(store, session.id, session.agent if target is None else target, options)
    only_print = only_print or as_json
    if not only_print:
        planned.write()
    if as_json:
        write_json(document_of(planned, is_written=not only_print))
    else:
        write_plan(planned, is_written=not only_print, err=not only_print)
    return planned.folder, list(planned.command)


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
