"""`turnlog restore`, `forget` and `rebuild`: what can be done with the archived logs."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import figures
from turnlog.cli.lookup import complete_session, find_session, open_existing
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.sync import progress
from turnlog.cli.terminal import PARTIAL, one_line, plain, write_json

if TYPE_CHECKING:
    from turnlog.cli.documents import ForgetDocument, RebuildDocument, RestoreDocument
    from turnlog.store.forget import Forgetting
    from turnlog.sync.rebuild import RebuildSummary


@click.command(
    epilog=examples(
        "turnlog restore 3f2a91c0 --to ~/restored",
        "turnlog restore 3f2a91c0 --to ~/.claude        # where Claude Code can resume it",
    )
)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option(
    "--to",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder to write below, laid out as the agent's home.",
)
@json_option
@store_option
def restore(session_id: str, folder: Path, as_json: bool, store_path: Path) -> None:
    """Write a session's log files as they were, with those of its subagents.

    Byte for byte, from the archive, also when the originals are gone. A file that is there already stays as it is;
    one with other content is an error (exit code 4).
    """
    from turnlog.store.connection import connect
    from turnlog.store.restore import restore as run

    with open_existing(store_path) as store:
        session = find_session(store, session_id)
    with closing(connect(store_path, read_only=True)) as connection:
        files = run(connection, session.id, folder)
    if as_json:
        document: RestoreDocument = {
            "files": [{"path": str(file.path), "source": file.source, "size": file.size} for file in files]
        }
        write_json(document)
    else:
        for file in files:
            click.echo(f"{plain(str(file.path))}  {figures.size(file.size)}")


@click.command(epilog=examples("turnlog forget 3f2a91c0", "turnlog forget 3f2a91c0 --yes"))
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option("--yes", is_flag=True, help="Do it without asking. Without it and a terminal, only say what would go.")
@json_option
@store_option
def forget(session_id: str, yes: bool, as_json: bool, store_path: Path) -> None:
    """Remove a session for good, with its subagents, its archived logs and its words in the search.

    It does not come back with the next sync. The agent's own files are not touched, and what other sessions share
    stays with them.
    """
    from turnlog.store.connection import connect
    from turnlog.store.forget import forget_for_good, plan_forgetting

    with open_existing(store_path) as store:
        session = find_session(store, session_id)
    with closing(connect(store_path, read_only=True)) as connection:
        plan = plan_forgetting(connection, session.id)
    if not as_json:
        _write_plan(plan, session.title)
    agreed = yes or (not as_json and sys.stdin.isatty() and click.confirm("Forget it?"))
    if agreed:
        plan = forget_for_good(store_path, session.id)
    if as_json:
        write_json(_forget_document(plan, forgotten=agreed))
    else:
        click.echo("Forgotten." if agreed else "Nothing was removed; --yes removes it.")


def _write_plan(plan: Forgetting, title: str | None) -> None:
    click.echo(one_line(title or plan.session_ids[0]))
    for session_id in plan.session_ids:
        click.echo(f"  {plain(session_id)}")
    archived = figures.size(plan.archived_bytes)
    click.echo(
        f"{figures.plural(len(plan.session_ids), 'session')}, {figures.plural(len(plan.message_keys), 'message')},"
        f" {figures.plural(len(plan.files), 'archived file')} ({archived})."
    )
    for session_id, shared in plan.shared.items():
        click.echo(f"{figures.plural(shared, 'message')} of it also in {plain(session_id)}, and stay there.")


def _forget_document(plan: Forgetting, *, forgotten: bool) -> ForgetDocument:
    return {
        "forgotten": forgotten,
        "session_ids": list(plan.session_ids),
        "messages": len(plan.message_keys),
        "files": list(plan.files),
        "archived_bytes": plan.archived_bytes,
        "shared": plan.shared,
    }


@click.command(epilog=examples("turnlog rebuild"))
@json_option
@store_option
@click.pass_context
def rebuild(ctx: click.Context, as_json: bool, store_path: Path) -> None:
    """Make all sessions anew from the archived logs, with this version's parsers and prices.

    The originals are not needed. Titles, stars, tags and notes stay, and so do sessions that came from no log.
    """
    from turnlog.sync.rebuild import rebuild as run

    open_existing(store_path).close()
    with progress() as tell:
        summary = run(store_path, lambda done, total: tell("rebuild", done, total))
    if as_json:
        write_json(_rebuild_document(summary))
    else:
        took = figures.duration(round(summary.seconds * 1000))
        click.echo(
            f"Read {figures.plural(summary.sources, 'archived file')} and"
            f" {figures.plural(summary.messages, 'message')} in {took}."
        )
    for path in summary.skipped:
        click.echo(f"turnlog: {plain(path)}: its agent is not installed", err=True)
    if summary.skipped:
        ctx.exit(PARTIAL)


def _rebuild_document(summary: RebuildSummary) -> RebuildDocument:
    return {
        "sources": summary.sources,
        "messages": summary.messages,
        "diagnostics": summary.diagnostics,
        "skipped": summary.skipped,
        "seconds": round(summary.seconds, 3),
    }
