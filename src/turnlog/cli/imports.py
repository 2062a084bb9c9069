"""`turnlog import`: read one file, or what comes through a pipe, into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from turnlog.cli import figures
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.sync import progress
from turnlog.cli.terminal import PARTIAL, plain, write_json

if TYPE_CHECKING:
    from turnlog.cli.documents import ImportDocument
    from turnlog.sync.importing import ImportSummary


@click.command(
    "import",
    epilog=examples(
        "turnlog import old-session.jsonl",
        "claude -p 'fix it' --output-format stream-json --verbose | tee /dev/tty | turnlog import -",
        "turnlog import exported.json --json",
        "turnlog import backup/opencode.db",
    ),
)
@click.argument("file", type=click.File("rb"))
@json_option
@store_option
@click.pass_context
def import_file(ctx: click.Context, file: BinaryIO, as_json: bool, store_path: Path) -> None:
    """Read one FILE into the store; `-` reads what comes through a pipe.

    Which agent wrote it, and in which version, is told by what stands in it. Session logs are read as well as what
    agents print while they run; of a database, every session in it. What was read is kept, so the file may go; given
    again, it changes nothing.
    """
    from turnlog.sync.importing import import_file as import_path
    from turnlog.sync.importing import import_stream

    with progress() as tell:
        if file.name in ("-", "<stdin>"):
            summary = import_stream(store_path, file, on_progress=tell)
        else:
            summary = import_path(store_path, Path(file.name), on_progress=tell)
    if as_json:
        write_json(_document(summary))
    else:
        _write_summary(summary)
    if summary.problems:
        ctx.exit(PARTIAL)


def _document(summary: ImportSummary) -> ImportDocument:
    return {
        "agent": summary.agent,
        "version": summary.version,
        "kind": summary.kind,
        "path": summary.path,
        "bytes": summary.bytes,
        "is_new": summary.is_new,
        "sessions": list(summary.sessions),
        "new_sessions": summary.new_sessions,
        "messages": summary.messages,
        "diagnostics": summary.diagnostics,
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in summary.problems],
        "seconds": round(summary.seconds, 3),
    }


def _write_summary(summary: ImportSummary) -> None:
    version = f" {summary.version}" if summary.version else ""
    click.echo(plain(f"{summary.agent}{version}, {summary.kind} ({figures.size(summary.bytes)})."))
    if not summary.is_new and not summary.problems:
        click.echo("It is in the store already.")
        return
    updated = len(summary.sessions) - summary.new_sessions
    click.echo(
        f"{figures.plural(summary.new_sessions, 'new session')}, {figures.count(updated)} updated,"
        f" {figures.plural(summary.messages, 'new message')}."
    )
    for session_id in summary.sessions:
        click.echo(f"  turnlog show {plain(session_id)}")
    if summary.diagnostics:
        click.echo(f"{figures.plural(summary.diagnostics, 'record')} could not be understood: see `turnlog doctor`.")
    for problem in summary.problems:
        click.echo(f"turnlog: {plain(problem.path)}: {plain(problem.reason)}", err=True)
