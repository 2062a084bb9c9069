"""`turnlog restore`, `forget`, `rebuild` and `db`: archived logs and the store that holds them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from turnlog.cli import formatting
from turnlog.cli.options import (
    WRONG_USE,
    complete_session,
    examples,
    find_session,
    json_option,
    open_existing,
    store_option,
)
from turnlog.cli.terminal import PARTIAL, progress, write_json
from turnlog.plain_text import one_line, plain

if TYPE_CHECKING:
    from turnlog.cli.documents import (
        CompactDocument,
        DatabaseDocument,
        ForgetDocument,
        RebuildDocument,
        RestoreDocument,
    )
    from turnlog.store.values import Forgetting
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
    help="Write into this folder, laid out like the agent's home.",
)
@json_option
@store_option
def restore(session_id: str, folder: Path, as_json: bool, store_path: Path) -> None:
    """Write the original log files of a session and its subagents again.

    The files come from the archive, byte for byte, even if the originals are gone. An existing file is left as it is;
    if its content differs, the command fails (exit code 4).
    """
    with open_existing(store_path) as store:
        files = store.restore(find_session(store, session_id).id, folder)
    if as_json:
        document: RestoreDocument = {
            "files": [{"path": str(file.path), "source": file.source, "size": file.size} for file in files]
        }
        write_json(document)
    else:
        for file in files:
            click.echo(f"{plain(str(file.path))}  {formatting.size(file.size)}")


@click.command(epilog=examples("turnlog forget 3f2a91c0", "turnlog forget 3f2a91c0 --yes"))
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option(
    "--yes",
    is_flag=True,
    help="Remove without asking. Without this and without a terminal, only list what would be removed, and fail.",
)
@json_option
@store_option
@click.pass_context
def forget(ctx: click.Context, session_id: str, yes: bool, as_json: bool, store_path: Path) -> None:
    """Remove a session permanently, with its subagents, its archived logs and its entries in the search index.

    The next sync does not bring it back. The agent's own files are not touched. Messages that other sessions share stay
    in those sessions.
    """
    with open_existing(store_path) as store:
        session = find_session(store, session_id)
        plan = store.plan_forgetting(session.id)
        if not as_json:
            _write_plan(plan, session.title)
        can_ask = not as_json and not yes and sys.stdin.isatty()
        agreed = yes or (can_ask and click.confirm("Forget it?"))
        if agreed:
            plan = store.forget(session.id)
    if as_json:
        write_json(_forget_document(plan, forgotten=agreed))
    elif agreed:
        click.echo("Forgotten.")
        _write_left(plan)
        _write_pending(store_path)
    if not agreed:
        click.echo("Nothing was removed; --yes removes it.", err=True)
    if not agreed and not can_ask:
        ctx.exit(WRONG_USE)


def _write_plan(plan: Forgetting, title: str | None) -> None:
    click.echo(one_line(title or plan.session_ids[0]))
    for session_id in plan.session_ids:
        click.echo(f"  {plain(session_id)}")
    archived = formatting.size(plan.archived_bytes)
    click.echo(
        f"{formatting.plural(len(plan.session_ids), 'session')},"
        f" {formatting.plural(plan.messages, 'message')},"
        f" {formatting.plural(len(plan.files), 'archived file')} ({archived})."
    )
    for session_id, shared in plan.shared.items():
        click.echo(f"{formatting.plural(shared, 'message')} of it are also in {plain(session_id)}, and stay there.")


def _write_left(plan: Forgetting) -> None:
    """Say which of the agent's own files are still there: they contain what was forgotten."""
    for path in plan.files:
        if Path(path).exists():
            click.echo(f"The agent still has {plain(path)}; turnlog does not read it again.")


def _write_pending(store_path: Path) -> None:
    """Say whether the file of a large index still has what was forgotten."""
    from turnlog.store.search import overwriting
    from turnlog.store.search.base import search_path

    if overwriting.is_pending(search_path(store_path)):
        click.echo("Its words are in no answer any more; a process overwrites their bytes in the search index.")


def _forget_document(plan: Forgetting, *, forgotten: bool) -> ForgetDocument:
    return {
        "forgotten": forgotten,
        "session_ids": list(plan.session_ids),
        "messages": plan.messages,
        "files": list(plan.files),
        "archived_bytes": plan.archived_bytes,
        "shared": plan.shared,
    }


@click.command(epilog=examples("turnlog rebuild"))
@json_option
@store_option
@click.pass_context
def rebuild(ctx: click.Context, as_json: bool, store_path: Path) -> None:
    """Build all sessions again from the archived logs, with this version's parsers and prices.

    The original logs are not needed. Titles, stars, tags, notes and sessions without a log are kept.
    """
    from turnlog.sync.rebuild import rebuild as run

    open_existing(store_path).close()
    with progress() as on_progress:
        summary = run(store_path, lambda done, total: on_progress("rebuild", done, total))
    if as_json:
        write_json(_rebuild_document(summary))
    else:
        took = formatting.duration(round(summary.seconds * 1000))
        click.echo(
            f"Read {formatting.plural(summary.sources, 'archived file')} and"
            f" {formatting.plural(summary.messages, 'message')} in {took}."
        )
    for problem in summary.problems:
        click.echo(f"turnlog: {plain(problem.path)}: {one_line(problem.reason)}", err=True)
    for path in summary.skipped:
        click.echo(f"turnlog: {plain(path)}: its agent is not installed", err=True)
    if summary.problems or summary.skipped:
        ctx.exit(PARTIAL)


def _rebuild_document(summary: RebuildSummary) -> RebuildDocument:
    return {
        "sources": summary.sources,
        "messages": summary.messages,
        "diagnostics": summary.diagnostics,
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in summary.problems],
        "skipped": summary.skipped,
        "seconds": round(summary.seconds, 3),
    }


@click.group()
def db() -> None:
    """Print where the store is, or make its files smaller."""


@db.command(epilog=examples("turnlog db path", 'sqlite3 "$(turnlog db path)" .tables'))
@json_option
@store_option
def path(as_json: bool, store_path: Path) -> None:
    """Print the path of the store, which need not exist yet."""
    if as_json:
        document: DatabaseDocument = {"path": str(store_path.absolute()), "exists": store_path.exists()}
        write_json(document)
    else:
        click.echo(plain(str(store_path.absolute())))


@db.command(epilog=examples("turnlog db compact --dry-run", "turnlog db compact"))
@click.option("--dry-run", is_flag=True, help="Only show how much smaller the files would become.")
@json_option
@store_option
def compact(dry_run: bool, as_json: bool, store_path: Path) -> None:
    """Write the store's files again without the space that deleted sessions left.

    It takes room on the disk for a copy of each file. Nothing else may use the store meanwhile.
    """
    from turnlog.store.disk import compact, database_files

    with open_existing(store_path):
        """The newest schema, before its pages are counted."""
    if dry_run:
        pairs = [
            (file, msgspec.structs.replace(file, size=file.size - file.free, free=0))
            for file in database_files(store_path)
        ]
    else:
        pairs = list(compact(store_path))
    if as_json:
        document: CompactDocument = {
            "files": [{"path": before.path, "size_before": before.size, "size": after.size} for before, after in pairs],
            "is_dry_run": dry_run,
        }
        write_json(document)
        return
    for before, after in pairs:
        change = f"{formatting.size(before.size)} → {formatting.size(after.size)}"
        click.echo(f"{plain(before.path)}  {change if after.size < before.size else 'nothing to gain'}")
    if dry_run:
        click.echo("Nothing was changed.")
