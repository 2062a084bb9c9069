"""`open_store()` and `connect_sql()` open the database of sessions. SQLite is imported only then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from turnlog.arguments import checked
from turnlog.errors import StoreError
from turnlog.paths import database_path

if TYPE_CHECKING:
    from turnlog.store.base import Store
    from turnlog.store.connection import Connection

_SQLITE = "sqlite:///"


@checked(store="a path, a URL or None")
def open_store(store: str | Path | None = None, *, create: bool = False) -> Store:
    """Open a store.

    Args:
        store: A path; or a URL, `sqlite:///` and a path (`sqlite:///turnlog.db` is in the current folder,
            `sqlite:////var/turnlog.db` is absolute); None for the user's own store.
        create: Create an empty store, and its folder, if it does not exist. The user's own store is always created.

    Raises:
        SchemaTooNewError: It was written by a newer turnlog.
        StoreError: It does not exist, is not a store, cannot be opened, or the URL's scheme is unknown.
        TypeError: `store` is neither a path nor a URL.
    """
    from turnlog.store.sqlite import open_sqlite

    path = _path(store)
    if store is not None and not create and not path.exists():
        raise StoreError(f"there is no store at {path}: open_store({str(path)!r}, create=True) makes one")
    return open_sqlite(path)


@checked(store="a path, a URL or None")
def connect_sql(store: str | Path | None = None) -> Connection:
    """A connection of the module `sqlite3` for SQL of one's own, which only reads; close it at the end.

    It has the views of docs/reference/sql.md. `store` is that of `open_store`.

    Raises:
        SchemaTooNewError: A newer turnlog has written it.
        StoreError: There is none, it is of an older turnlog (`open_store` brings it up), or it is not a store.
    """
    from turnlog.store.sqlite.sql import connect_for_sql

    return connect_for_sql(_path(store))


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
