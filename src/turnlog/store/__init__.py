"""`open_store()` and `connect_sql()` open the database of sessions. A database is imported only then."""

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
_POSTGRES = ("postgresql://", "postgres://")


@checked(store="a path, a URL or None")
def open_store(store: str | Path | None = None, *, create: bool = False) -> Store:
    """Open a store.

    Args:
        store: A path; or a URL, `sqlite:///` and a path (`sqlite:///turnlog.db` is in the current folder,
            `sqlite:////var/turnlog.db` is absolute), or `postgresql://…` of a database (which needs the extra
            `turnlog[postgres]`); None for the user's own store.
        create: Create an empty store, and its folder, if it does not exist. The user's own store is always created. In
            a database of PostgreSQL this creates the schema `turnlog`, not the database.

    Raises:
        SchemaTooNewError: It was written by a newer turnlog.
        StoreError: It does not exist, is not a store, cannot be opened, or the URL's scheme is unknown.
        TypeError: `store` is neither a path nor a URL.
    """
    if isinstance(store, str) and store.startswith(_POSTGRES):
        return _open_postgres(store, create=create)
    from turnlog.store.sqlite import open_sqlite

    path = _path(store)
    if store is not None and not create and not path.exists():
        raise StoreError(f"there is no store at {path.absolute()}: open_store({str(path)!r}, create=True) makes one")
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


def add_sql_views(connection: Connection) -> None:
    """Give another program's connection to a store the views of docs/reference/sql.md, until it is closed.

    For a tool that opens the file itself, such as Datasette. Nothing is written to the file.
    """
    from turnlog.store.sqlite.sql import add_views

    add_views(connection)


def _open_postgres(url: str, *, create: bool) -> Store:
    try:
        from turnlog.store.postgres.store import PostgresStore
    except ImportError as error:
        if error.name is None or error.name.startswith("turnlog"):
            raise
        raise StoreError("PostgreSQL needs more packages: pip install 'turnlog[postgres]'") from error
    return PostgresStore(url, create=create)


def _path(store: str | Path | None) -> Path:
    if store is None:
        return database_path()
    if isinstance(store, Path):
        return store
    if store.startswith(_SQLITE):
        return Path(store.removeprefix(_SQLITE))
    if "://" in store:
        known = f"a path, {_SQLITE}<path> or {_POSTGRES[0]}<database>"
        raise StoreError(f"{store.partition('://')[0]} stores are not supported: use {known}")
    return Path(store)
