"""`turnlog db`: where the store is, for tools that read SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.terminal import plain, write_json

if TYPE_CHECKING:
    from turnlog.cli.documents import DatabaseDocument


@click.group()
def db() -> None:
    """Where the store is."""


@db.command(epilog=examples("turnlog db path", 'sqlite3 "$(turnlog db path)" .tables'))
@json_option
@store_option
def path(as_json: bool, store_path: Path) -> None:
    """Print the path of the store. It need not be there yet."""
    if as_json:
        document: DatabaseDocument = {"path": str(store_path.absolute()), "exists": store_path.exists()}
        write_json(document)
    else:
        click.echo(plain(str(store_path.absolute())))
