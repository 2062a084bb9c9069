"""`turnlog export`: a session as a document, with or without its secrets."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import complete_session, examples, find_session
from turnlog.cli.terminal import write_json_text
from turnlog.exports import Export, ExportFormat, export_session
from turnlog.plain_text import one_line, plain


@click.command(
    epilog=examples(
        "turnlog export 3f2a91c0 --as markdown --redact -o session.md",
        "turnlog export 3f2a91c0 --as html -o session.html",
        "turnlog export 3f2a91c0 --as json | jq '.events[].type'",
        "turnlog export 3f2a91c0 --as cassette --redact -o tests/cassettes/fix-the-bug.json",
        "turnlog export 3f2a91c0 --as responses --model gpt-5.5 --strict",
    )
)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option("--as", "format_name", type=click.Choice(list(map(str, ExportFormat))), required=True, help="The format.")
@click.option("--redact", is_flag=True, help="Mask secrets, and list what was masked on standard error.")
@click.option("--model", help="The model of the request; by default the last one that answered.")
@click.option("--strict", is_flag=True, help="Fail if the format would lose something.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, for you alone."
)
@fresh_store_option
def export(
    session_id: str,
    format_name: str,
    redact: bool,
    model: str | None,
    strict: bool,
    output: Path | None,
    store_path: Path,
) -> None:
    """Write a session as a document or as the body of the next request to a model.

    SESSION is an id or the beginning of one. Standard error lists what was lost, repaired or masked.
    """
    from turnlog.atomic_files import refuse_other_than_file

    if output is not None:
        refuse_other_than_file(output)
    with open_fresh(store_path) as store, _without_collecting():
        session = find_session(store, session_id)
        exported = export_session(store, session.id, format_name, redact=redact, model=model, strict=strict)
    if output is not None:
        _write(output, exported.data)
        click.echo(f"Wrote {plain(str(output))} ({formatting.size(len(exported.data))}).", err=True)
    else:
        write_json_text(exported.data.decode())
    _report_changes(exported)
    if redact and not exported.masked:
        click.echo("No secrets were found.", err=True)


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, for the user alone, as the store that it comes from."""
    from turnlog.atomic_files import write_atomically

    try:
        write_atomically(path, data, mode=0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def _without_collecting() -> Generator[None]:
    """Pause garbage collection: an export makes none before its end, and collecting takes a third of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _report_changes(exported: Export) -> None:
    masked = [f"{found.rule} at {found.place}: {found.times}" for found in exported.masked]
    for kind, lines in (("lost", exported.losses), ("repaired", exported.repairs), ("masked", masked)):
        for line in lines:
            click.echo(f"{kind}: {one_line(line)}", err=True)
