"""Opening the user's store for a command that reads it: what is new in the agents' logs is read first.

Only the user's own store is brought up to date; one that `--store` names is a copy or a backup, and stays as it is.
Everything that is said goes to standard error, so a pipe gets only the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnlog import paths
from turnlog.cli.options import CommandT, open_existing, store_option
from turnlog.errors import StoreBusyError, StoreError, TurnlogError
from turnlog.plain_text import plain

if TYPE_CHECKING:
    from turnlog.store.base import Store
    from turnlog.store.search.searcher import Searcher

_NO_SYNC = "turnlog.no_sync"
"""Key of `Context.meta`: whether `--no-sync` was given."""

_PROBLEMS = "turnlog.problems"
"""Key of `Context.meta`: how many logs and folders the sync of this command could not read."""


def fresh_store_option(command: CommandT) -> CommandT:
    """`--store` and `--no-sync`, for a command that calls `open_fresh`."""
    return click.option(
        "--no-sync",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Answer from what was read before; do not look for new logs.",
    )(store_option(command))


def _remember(ctx: click.Context, _: click.Parameter, no_sync: bool) -> None:
    ctx.meta[_NO_SYNC] = no_sync


def pass_options_on(ctx: click.Context) -> None:
    """Let the options before a subcommand, such as `--store`, hold for it unless it has its own."""
    names = ctx.command.list_commands(ctx) if isinstance(ctx.command, click.Group) else []
    given = {**ctx.params, "no_sync": ctx.meta[_NO_SYNC]}
    ctx.default_map = {name: given for name in names}


def open_fresh(store_path: Path, *, says_unread: bool = True) -> Store:
    """The store, after reading what is new in the agents' logs; it is made where there is none yet.

    A line on standard error says when something had to be left unread, unless the caller does (`note_unread`).

    Raises:
        NotFoundError: There is no store, and it is not to be made.
        StoreError: The store cannot be opened.
        TurnlogError: The settings cannot be used.
    """
    if _is_wanted(store_path):
        _bring_up_to_date(store_path)
        problems = click.get_current_context().meta.get(_PROBLEMS, 0)
        if says_unread and problems:
            _note_logs(problems, 0)
    return open_existing(store_path)


def note_unread(store: Store, store_path: Path) -> None:
    """Say in one line how many logs could not be read into the user's own store, now or earlier, or only in part."""
    if store_path != paths.database_path():
        return
    unread, partly = store.unread_logs()
    unread = max(unread, click.get_current_context().meta.get(_PROBLEMS, 0))
    if unread or partly:
        _note_logs(unread, partly)


def open_searcher(store_path: Path) -> Searcher:
    """The search index of a store that `open_fresh` has opened.

    A store that no sync brings up to date (chats, or a copy) is indexed first, unless its disk is read-only.
    """
    from turnlog.store.search.base import search_path
    from turnlog.store.search.searcher import Searcher

    if store_path != paths.database_path():
        _index(store_path)
    return Searcher(store_path, search_path(store_path))


def _index(store_path: Path) -> None:
    from turnlog.store.search.base import search_path
    from turnlog.store.search.indexer import Indexer

    with suppress(StoreError), Indexer(store_path, search_path(store_path)) as indexer:
        indexer.catch_up()


def refresher(store_path: Path) -> Callable[[], None]:
    """A function that reads what is new, if `open_fresh` would; for a command that answers for hours."""
    return partial(_bring_up_to_date, store_path) if _is_wanted(store_path) else lambda: None


def quiet_refresher(store_path: Path) -> Callable[[], None]:
    """As `refresher`, for a command that has the whole terminal: nothing is written to it.

    The function raises TurnlogError; a store that no sync brings up to date is only indexed.
    """
    return partial(_read_quietly, store_path) if _is_wanted(store_path) else partial(_index, store_path)


def _read_quietly(store_path: Path) -> None:
    from turnlog.sync.syncer import sync

    if _state_of_server(store_path) is None:
        with suppress(StoreBusyError):
            sync(store_path)


def _is_wanted(store_path: Path) -> bool:
    if store_path != paths.database_path() or click.get_current_context().meta.get(_NO_SYNC):
        return False
    if not paths.has_settings():
        return True
    from turnlog.settings import load_settings

    return load_settings().sync_before_reading


def _bring_up_to_date(store_path: Path) -> None:
    if _server_reads(store_path):
        return
    from turnlog.cli.terminal import progress
    from turnlog.sync.syncer import sync

    is_new = not store_path.exists()
    try:
        with progress(PATIENCE_SECONDS) as on_progress:
            summary = sync(store_path, on_progress=on_progress)
    except KeyboardInterrupt:
        # Newest logs are read first: whoever does not want to wait for the others has an answer.
        _note("interrupted: older logs are not read yet")
    except StoreBusyError:
        _note("another process is reading logs: something may be missing")
    except StoreError as error:
        if not store_path.exists():
            raise
        _note(f"new logs are not read: {error}")
    else:
        # A command that answers for hours reads in threads of its own, where no command is known.
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[_PROBLEMS] = len(summary.problems)
        if is_new and not summary.sources:
            _note("no logs of agents were found: `turnlog agents` lists where they should be")


PATIENCE_SECONDS = 0.5
"""How long reading may take before its progress is shown."""


def _server_reads(store_path: Path) -> bool:
    """Whether a running server reads logs into this store as they are written."""
    sync = _state_of_server(store_path)
    if sync is None:
        return False
    if not sync["passes"]:
        _note("the server is still reading logs for the first time: older sessions are missing")
    return True


def _state_of_server(store_path: Path) -> dict[str, Any] | None:
    """What a running server says of its reading of logs into this store; None where none reads."""
    from turnlog.hooks.send import SOCKET

    folder = store_path.parent
    if not (folder / SOCKET).exists():
        return None
    from turnlog.hooks.server_socket import ask_server

    try:
        status, answer = ask_server(folder, "GET", "/api/status")
    except TurnlogError:
        return None
    if status != _OK or answer["sync"]["state"] in ("off", "failed") or answer["store"]["path"] != str(store_path):
        return None
    return answer["sync"]


_OK = 200


def _note_logs(unread: int, partly: int) -> None:
    from turnlog.cli.formatting import plural

    whole = f"{plural(unread, 'log')} could not be read" if unread else ""
    part = f"{partly} only in part" if unread else f"{plural(partly, 'log')} could be read only in part"
    said = f"{whole}, {part}" if unread and partly else whole or part
    _note(f"{said}: `turnlog doctor` shows why")


def _note(text: str) -> None:
    click.echo(f"turnlog: {plain(text)}", err=True)
