"""`turnlog sync`: read what is new in the agents' logs into the store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import figures
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.terminal import PARTIAL, plain, write_json

if TYPE_CHECKING:
    from turnlog.cli.documents import SyncDocument
    from turnlog.sync.summary import SyncSummary

PHASES = {"find": "Finding logs", "read": "Reading", "index": "Indexing", "rebuild": "Rebuilding"}
"""What is told of, and how that is shown."""


@click.command(epilog=examples("turnlog sync", "turnlog sync --root /mnt/laptop/.claude", "turnlog sync --json"))
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Look in this agent's home instead of your own (again for more).",
)
@json_option
@store_option
@click.pass_context
def sync(ctx: click.Context, roots: tuple[Path, ...], as_json: bool, store_path: Path) -> None:
    """Read what is new in the agents' logs.

    Nothing is written outside the store. What a log can no longer tell, because the agent deleted or rewrote it,
    stays in the store.
    """
    from turnlog.runs.lifecycle import close_abandoned_runs
    from turnlog.sync.syncer import sync as run

    with progress() as tell:
        summary = run(store_path, roots=[root.absolute() for root in roots] or None, on_progress=tell)
    close_abandoned_runs(store_path)
    if as_json:
        write_json(_document(summary))
    else:
        _write_summary(summary, roots)
    if summary.problems:
        ctx.exit(PARTIAL)


@contextmanager
def progress() -> Generator[Callable[[str, int, int], None]]:
    """Bars on standard error while somebody is looking; else nothing."""
    if not sys.stderr.isatty():
        yield lambda phase, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<14}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def tell(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(PHASES.get(phase, phase))
            bars.update(tasks[phase], completed=done, total=total)

        yield tell


def _document(summary: SyncSummary) -> SyncDocument:
    return {
        "sources": summary.sources,
        "changed": summary.changed,
        "vanished": summary.vanished,
        "bytes": summary.bytes,
        "sessions": summary.sessions,
        "new_sessions": summary.new_sessions,
        "messages": summary.messages,
        "diagnostics": summary.diagnostics,
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in summary.problems],
        "seconds": round(summary.seconds, 3),
    }


def _write_summary(summary: SyncSummary, roots: Sequence[Path]) -> None:
    for problem in summary.problems:
        click.echo(f"turnlog: {plain(problem.path)}: {plain(problem.reason)}", err=True)
    if not summary.sources:
        hint = (
            "A root is an agent's home, as ~/.claude is." if roots else "`turnlog agents` says where they should lie."
        )
        click.echo(f"No logs found. {hint}")
        return
    took = figures.duration(round(summary.seconds * 1000))
    read = f"{figures.count(summary.changed)} of {figures.plural(summary.sources, 'file')}"
    click.echo(f"Read {read} ({figures.size(summary.bytes)}) in {took}.")
    if summary.sessions:
        updated = summary.sessions - summary.new_sessions
        click.echo(
            f"{figures.plural(summary.new_sessions, 'new session')}, {figures.count(updated)} updated,"
            f" {figures.plural(summary.messages, 'new message')}."
        )
    if summary.vanished:
        click.echo(f"{figures.plural(summary.vanished, 'file')} gone from disk; what was read from them stays.")
    if summary.diagnostics:
        click.echo(f"{figures.plural(summary.diagnostics, 'record')} could not be understood: see `turnlog doctor`.")
