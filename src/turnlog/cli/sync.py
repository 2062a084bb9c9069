"""`turnlog sync` and `turnlog import`: read the agents' logs, or one file, into the store."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from turnlog import paths
from turnlog.cli import formatting
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.terminal import PARTIAL, progress, write_json
from turnlog.errors import FormatError
from turnlog.plain_text import plain

if TYPE_CHECKING:
    from turnlog.cli.documents import ImportDocument, SyncDocument
    from turnlog.sync.importing import ImportSummary
    from turnlog.sync.summary import SyncSummary


@click.command(
    epilog=examples(
        "turnlog sync",
        "turnlog sync --root /mnt/laptop/.claude",
        "turnlog sync --sample --store sample.db",
        "turnlog sync --json",
    )
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Read this agent's home instead of your own; can be repeated.",
)
@click.option("--sample", is_flag=True, help="Read the bundled sample instead of your logs; needs --store.")
@json_option
@store_option
@click.pass_context
def sync(ctx: click.Context, roots: tuple[Path, ...], sample: bool, as_json: bool, store_path: Path) -> None:
    """Read what is new in the agents' logs.

    Nothing is written outside the store. If an agent deletes or rewrites a log, the store keeps what was read before.
    """
    from turnlog.runs.abandoned import close_abandoned_runs
    from turnlog.sync.syncer import sync as run

    if sample:
        roots = _sample_roots(roots, store_path)
    with progress() as on_progress:
        summary = run(store_path, roots=[root.absolute() for root in roots] or None, on_progress=on_progress)
    close_abandoned_runs(store_path)
    if as_json:
        write_json(_sync_document(summary))
    else:
        _write_sync(summary, roots)
    if summary.problems:
        ctx.exit(PARTIAL)


def _sample_roots(roots: Sequence[Path], store_path: Path) -> tuple[Path, ...]:
    from turnlog.server.sample import sample_roots

    if roots:
        raise click.UsageError("--sample and --root cannot be combined.")
    if store_path == paths.database_path():
        raise click.UsageError("--sample needs --store PATH: the sample must not get into your own store.")
    return tuple(sample_roots())


def _sync_document(summary: SyncSummary) -> SyncDocument:
    return {
        "sources": summary.sources,
        "changed": summary.changed,
        "vanished": summary.vanished,
        "bytes": summary.bytes,
        "sessions": summary.sessions,
        "new_sessions": summary.new_sessions,
        "new_subagents": summary.new_subagents,
        "messages": summary.messages,
        "diagnostics": summary.diagnostics,
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in summary.problems],
        "seconds": round(summary.seconds, 3),
    }


def _write_sync(summary: SyncSummary, roots: Sequence[Path]) -> None:
    for problem in summary.problems:
        click.echo(f"turnlog: {plain(problem.path)}: {plain(problem.reason)}", err=True)
    if not summary.sources:
        hint = (
            "A root is an agent's home, such as ~/.claude." if roots else "`turnlog agents` lists where they should be."
        )
        # What could not be read is the reason, and was said.
        click.echo("No logs found." if summary.problems else f"No logs found. {hint}")
        return
    took = formatting.duration(round(summary.seconds * 1000))
    read = f"{formatting.count(summary.changed)} of {formatting.plural(summary.sources, 'file')}"
    click.echo(f"Read {read} ({formatting.size(summary.bytes)}) in {took}.")
    if summary.sessions:
        click.echo(_written(summary, summary.sessions))
    if summary.vanished:
        click.echo(f"{formatting.plural(summary.vanished, 'file')} gone from disk; what was read from them stays.")
    if summary.diagnostics:
        click.echo(f"{formatting.plural(summary.diagnostics, 'record')} could not be understood: see `turnlog doctor`.")


def _written(summary: SyncSummary | ImportSummary, changed: int) -> str:
    """`3 new sessions and 1 subagent, 2 updated, 57 new messages.` `changed` counts all sessions that were written."""
    subagents = f" and {formatting.plural(summary.new_subagents, 'subagent')}" if summary.new_subagents else ""
    updated = changed - summary.new_sessions - summary.new_subagents
    return (
        f"{formatting.plural(summary.new_sessions, 'new session')}{subagents}, {formatting.count(updated)} updated,"
        f" {formatting.plural(summary.messages, 'new message')}."
    )


class _Readable(click.Path):
    """A path that exists. One below a folder that cannot be entered may exist: it cannot be read."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path; a usage error if nothing can be read there."""
        try:
            Path(value).stat()
        except PermissionError as error:
            self.fail(f"{os.fspath(value)!r} cannot be read: {error.strerror}.", param, ctx)
        except (OSError, ValueError):
            pass  # which click explains
        return super().convert(value, param, ctx)


@click.command(
    "import",
    epilog=examples(
        "turnlog import old-session.jsonl",
        "claude -p 'fix it' --output-format stream-json --verbose | tee /dev/tty | turnlog import -",
        "turnlog import exported.json --json",
        "turnlog import backup/opencode.db",
        "turnlog import chatgpt-export.zip",
        "turnlog import Downloads/chatgpt-export/",
        "turnlog import jobs/2026-11-20/",
    ),
)
@click.argument("file", type=_Readable(exists=True, allow_dash=True))
@click.option("--verbose", is_flag=True, help="Say of each agent why the file is not its, if it is of none.")
@json_option
@store_option
@click.pass_context
def import_file(ctx: click.Context, file: str, verbose: bool, as_json: bool, store_path: Path) -> None:
    """Read one FILE into the store; `-` reads a pipe.

    FILE is a session log, the output of an agent (as stream JSON), a trajectory (ATIF) or a folder of them, or a
    database or an export of ChatGPT or Claude.ai (a zip, or the folder that was in it), from which every session is
    read. The agent and its version are detected from the content. A copy is kept, so you may delete the file. Importing
    the same file again changes nothing.
    """
    from turnlog.sync.importing import import_file as import_path
    from turnlog.sync.importing import import_stream

    try:
        with progress() as on_progress:
            if file == "-":
                summary = import_stream(store_path, sys.stdin.buffer, on_progress=on_progress)
            else:
                summary = import_path(store_path, Path(file), on_progress=on_progress)
    except FormatError as error:
        if not error.of_agents:
            raise
        hint = "" if verbose else "; --verbose says why"
        lines = [f"{error}{hint}", *(f"  {reason}" for reason in error.of_agents if verbose)]
        raise FormatError("\n".join(lines)) from error
    if as_json:
        write_json(_import_document(summary))
    else:
        _write_import(summary)
    if summary.problems:
        ctx.exit(PARTIAL)


def _import_document(summary: ImportSummary) -> ImportDocument:
    return {
        "agent": summary.agent,
        "version": summary.version,
        "kind": summary.kind,
        "path": summary.path,
        "bytes": summary.bytes,
        "is_new": summary.is_new,
        "sessions": list(summary.sessions),
        "new_sessions": summary.new_sessions,
        "new_subagents": summary.new_subagents,
        "messages": summary.messages,
        "diagnostics": summary.diagnostics,
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in summary.problems],
        "seconds": round(summary.seconds, 3),
    }


def _write_import(summary: ImportSummary) -> None:
    version = f" {summary.version}" if summary.version else ""
    click.echo(plain(f"{summary.agent}{version}, {summary.kind} ({formatting.size(summary.bytes)})."))
    if not summary.is_new and not summary.problems:
        click.echo("It is in the store already.")
        return
    click.echo(_written(summary, len(summary.sessions)))
    for session_id in summary.sessions:
        click.echo(f"  turnlog show {quote(plain(session_id))}")
    if summary.diagnostics:
        click.echo(f"{formatting.plural(summary.diagnostics, 'record')} could not be understood: see `turnlog doctor`.")
    for problem in summary.problems:
        click.echo(f"turnlog: {plain(problem.path)}: {plain(problem.reason)}", err=True)
