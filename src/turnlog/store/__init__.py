"""Where histories are kept: `open_store()`. SQLite is imported when a store is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from turnlog.errors import StoreError
from turnlog.paths import database_path

if TYPE_CHECKING:
    from turnlog.store.base import Store

_SQLITE = "sqlite:///"


def open_store(store: str | Path | None = None) -> Store:
    """Open a store for reading; it is made, empty, when it is not there.

    Args:
        store: A path; a URL `sqlite:///` and a path (`sqlite:///turnlog.db` is in the current folder,
            `sqlite:////var/turnlog.db` is not); None for the user's own store.

    Raises:
        SchemaTooNewError: A newer turnlog has written it.
        StoreError: It is not a store, cannot be opened, or the URL is of a kind that is not known.
    """
    from turnlog.store.sqlite import open_sqlite

    return open_sqlite(_path(store))


def _path(store: str | Path | None) -> Path:
    if store is None:
        return database_path()
    if isinstance(store, Path):
        return store
    if store.startswith(_SQLITE):
        return Path(store.removeprefix(_SQLITE))
    if "://" in store:
        raise StoreError(f"{store.partition('://')[0]} stores are not supported: use a path or {_SQLITE}<path>")
    return Path(store)
