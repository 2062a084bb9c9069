"""`turnlog tui`: all sessions on the whole terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from turnlog.cli.fresh_store import fresh_store_option, open_fresh, quiet_refresher
from turnlog.cli.options import examples, open_existing
from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.store.base import Store

_MISSING = "turnlog tui needs more packages: pip install 'turnlog[tui]'"


def is_possible() -> bool:
    """Whether both ends of the command are a terminal, and the extra is installed."""
    return sys.stdin.isatty() and sys.stdout.isatty() and find_spec("textual") is not None


@click.command(epilog=examples("turnlog tui", "turnlog        # the same, on a terminal"))
@fresh_store_option
@click.pass_context
def tui(ctx: click.Context, store_path: Path) -> None:
    """Search, read, resume and hand over sessions on the whole terminal. `?` lists the keys."""
    if find_spec("textual") is None:
        raise TurnlogError(_MISSING)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("turnlog tui needs a terminal; `turnlog sessions` writes into a pipe.")
    refresh = quiet_refresher(store_path)
    # What is stored is shown first; the logs are read while the user looks.
    with open_existing(store_path) if store_path.exists() else open_fresh(store_path) as store:
        command = _run(store, store_path, refresh)
    if command is not None:
        from turnlog.cli.main import cli

        is_own = ctx.get_parameter_source("store_path") is ParameterSource.DEFAULT
        cli.main([*command, *([] if is_own else ["--store", str(store_path)])], prog_name="turnlog")


def _run(store: Store, store_path: Path, refresh: Callable[[], None]) -> list[str] | None:
    from turnlog.platforms.terminals import keys_kept
    from turnlog.tui import first_paint
    from turnlog.tui.listing import Filters, Listing

    listing = Listing(store, store_path)
    with keys_kept():
        page = first_paint.paint(listing, Filters())
        try:
            from turnlog.tui.app import AppContext, run

            return run(AppContext(store, listing, refresh, partial(_open_page, store_path), page))
        finally:
            # Textual has left this screen already, unless it could not be imported.
            click.echo(first_paint.LEAVE, nl=False)
            listing.close()


def _open_page(store_path: Path, session_id: str) -> str:
    """Open a session in the browser, through the running server; what to tell the user."""
    from turnlog.cli.serve import open_session

    address = open_session(store_path, session_id)
    return "Opened in the browser." if address is None else f"There is no browser here. The page: {address}"
