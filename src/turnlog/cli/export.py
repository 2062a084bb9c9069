"""`turnlog export`: a session as a document, with or without its secrets."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from turnlog.cli import formatting
from turnlog.cli.filters import agent_option, project_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import Name, complete_session, examples, find_session, period_options
from turnlog.cli.terminal import progress, write_json_text
from turnlog.errors import NotFoundError, TurnlogError
from turnlog.exports import REQUESTS, Export, ExportFormat, export_session
from turnlog.garbage_collection import garbage_collection_paused
from turnlog.plain_text import one_line, plain
from turnlog.store.names import find_agent, find_project

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.store.base import SessionFilter, Store
    from turnlog.store.sqlite.tables import WrittenTable

_TABLES: Final = "parquet"

_TRANSCRIPTS: Final = "scout"

_FOLDERS: Final = (_TABLES, _TRANSCRIPTS)
"""Formats of many sessions."""

_SHORTEST_ID: Final = 4
"""Characters from which on a name of a folder may be meant as a session's id."""


@click.command(
    epilog=examples(
        "turnlog export 3f2a91c0 --as markdown --redact -o session.md",
        "turnlog export 3f2a91c0 --as html -o session.html",
        "turnlog export 3f2a91c0 --as json | jq '.events[].type'",
        "turnlog export 3f2a91c0 --as cassette --redact -o tests/cassettes/fix-the-bug.json",
        "turnlog export 3f2a91c0 --as responses --model gpt-5.5 --strict",
        "turnlog export --as parquet history/ --since 30d     # tables of all sessions",
        "turnlog export --as scout transcripts/ --redact      # for Inspect Scout",
    )
)
@click.argument("subject", metavar="SESSION|DIR", required=False, shell_complete=complete_session)
@click.option("--as", "format_name", type=Name([*map(str, ExportFormat), *_FOLDERS]), required=True, help="The format.")
@click.option("--redact", is_flag=True, help="Mask secrets, and list what was masked on standard error.")
@click.option("--model", help="The model of the request; by default the last one that answered.")
@click.option("--strict", is_flag=True, help="Fail if the format would lose something.")
@click.option("--content", is_flag=True, help="Put what was said into a trace too, without secrets.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, for you alone."
)
@agent_option
@project_option
@period_options()
@fresh_store_option
def export(
    subject: str | None,
    format_name: str,
    redact: bool,
    model: str | None,
    strict: bool,
    content: bool,
    output: Path | None,
    agent: str | None,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    store_path: Path,
) -> None:
    """Write a session as a document or as the body of the next request to a model, or many as tables.

    SESSION is an id or the beginning of one. Standard error lists what was lost, repaired or masked. `parquet` and
    `scout` write all sessions, or those of an agent, a project or a time, into the folder DIR.
    """
    from turnlog.atomic_files import refuse_other_than_file

    if not subject:
        what = "the folder" if format_name in _FOLDERS else "the session"
        name = "DIR" if format_name in _FOLDERS else "SESSION"
        raise click.UsageError(f"Name {what}: turnlog export --as {format_name} {name}.")
    if format_name in _FOLDERS:
        if model or strict or content or output:
            raise click.UsageError(f"--model, --strict, --content and --output are not for {format_name}.")
        write = _export_tables if format_name == _TABLES else _export_transcripts
        with _needs_parquet():
            write(subject, store_path, SessionsWanted(agent, project, since, until), redact=redact)
        return
    if agent or project or since or until:
        raise click.UsageError(f"--agent, --project, --since and --until are for {' and '.join(_FOLDERS)}.")
    if content and format_name != ExportFormat.OTEL:
        raise click.UsageError(f"--content is for {ExportFormat.OTEL}.")
    if model and format_name not in REQUESTS:
        raise click.UsageError(f"--model is for requests: {', '.join(REQUESTS)}.")

    if output is not None:
        refuse_other_than_file(output)
    with open_fresh(store_path) as store, garbage_collection_paused():
        session = find_session(store, subject)
        exported = export_session(
            store, session.id, format_name, redact=redact, model=model, strict=strict, content=content
        )
    if output is not None:
        document = _binary(exported.data) if _is_binary(format_name, output) else exported.data
        _write(output, document)
        for name, data in exported.files.items():
            (output.parent / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(output.parent / name, data)
        click.echo(f"Wrote {plain(str(output))} ({formatting.size(len(document))}).", err=True)
    else:
        write_json_text(exported.data.decode())
        if exported.files:
            click.echo(f"lost: media: {len(exported.files)} files, which only --output writes", err=True)
    _report_changes(exported)
    if redact and not exported.masked:
        click.echo("No secrets were found.", err=True)


def _is_binary(format_name: str, output: Path) -> bool:
    """A trace in a file whose name says that it has OTLP's binary form."""
    return format_name == ExportFormat.OTEL and output.suffix == ".pb"


def _binary(trace: bytes) -> bytes:
    from turnlog.formats.otel import to_protobuf

    try:
        return to_protobuf(trace)
    except ImportError as error:
        raise TurnlogError("OTLP's binary form needs more packages: pip install 'turnlog[otel]'") from error


class SessionsWanted(NamedTuple):
    """Which sessions tables are of; None: all."""

    agent: str | None
    project: str | None
    since: datetime | None
    until: datetime | None

    def filter(self, store: Store) -> SessionFilter:
        """As the store takes it, with subagents. Raises NotFoundError for an agent or a project that is not there."""
        from turnlog.store.base import SessionFilter

        return SessionFilter(
            agent=find_agent(store, self.agent),
            project=find_project(store, self.project),
            since=self.since,
            until=self.until,
            subagents=True,
        )


@contextmanager
def _needs_parquet() -> Generator[None]:
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.startswith("turnlog"):
            raise
        raise TurnlogError("tables need more packages: pip install 'turnlog[parquet]'") from error


def _export_tables(folder: str, store_path: Path, wanted: SessionsWanted, *, redact: bool) -> None:
    from turnlog.store.sqlite.tables import write_tables

    with open_fresh(store_path) as store:
        _refuse_session(store, folder)
        chosen = wanted.filter(store)
        sessions = [session.id for session in sessions_in(store, chosen)] if any(wanted) else None
    with progress() as on_progress:
        written = write_tables(
            store_path,
            Path(folder),
            sessions,
            redact=redact,
            on_progress=lambda done, total: on_progress("write", done, total),
        )
    for table in written:
        _say_written(table)


def _refuse_session(store: Store, name: str) -> None:
    """All sessions would be in a folder that has the name of the one that was meant."""
    if len(name) < _SHORTEST_ID or "/" in name or Path(name).exists():
        return
    with suppress(NotFoundError):
        session = find_session(store, name)
        raise click.UsageError(
            f"{plain(name)} is a session ({plain(session.id)}), and these formats write many into a folder. Name a "
            "folder; --agent, --project, --since and --until say which sessions."
        )


def _export_transcripts(folder: str, store_path: Path, wanted: SessionsWanted, *, redact: bool) -> None:
    from turnlog.exports.transcripts import write_transcripts

    with open_fresh(store_path) as store, progress() as on_progress:
        _refuse_session(store, folder)
        sessions = [session.id for session in sessions_in(store, wanted.filter(store))]
        written = write_transcripts(
            store,
            Path(folder),
            sessions,
            redact=redact,
            on_progress=lambda done, total: on_progress("write", done, total),
        )
    _say_written(written.table)
    for kind, times in written.losses.most_common():
        click.echo(f"lost: {kind}: {times}", err=True)


def _say_written(table: WrittenTable) -> None:
    rows = formatting.plural(table.rows, "row")
    click.echo(f"{plain(str(table.path))}  {rows}, {formatting.size(table.size)}")


def sessions_in(store: Store, wanted: SessionFilter) -> Iterator[Session]:
    """All sessions of a filter, page by page."""
    cursor: str | None = None
    while True:
        page = store.sessions(wanted, limit=200, cursor=cursor)
        yield from page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, for the user alone, as the store that it comes from."""
    from turnlog.atomic_files import write_atomically

    try:
        write_atomically(path, data, mode=0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _report_changes(exported: Export) -> None:
    masked = [f"{found.rule} at {found.place}: {found.times}" for found in exported.masked]
    for kind, lines in (("lost", exported.losses), ("repaired", exported.repairs), ("masked", masked)):
        for line in lines:
            click.echo(f"{kind}: {one_line(line)}", err=True)
