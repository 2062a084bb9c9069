"""The store in one SQLite file: the engine behind `store.base.Store`.

Each module has the queries of one subject, as methods of one class; what they return and raise is said in the protocol.
`connections` is what they share. `open_sqlite` puts the classes together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from turnlog.store.sqlite.usage import Usage

if TYPE_CHECKING:
    from turnlog.store.base import Store


class UsageStore(Usage):
    """A store of which only usage was asked yet; at any other query it becomes a whole `SqliteStore`.

    What decodes messages takes longer to import than a usage report to make.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from turnlog.store.sqlite.store import SqliteStore

            self.__class__ = SqliteStore
            return getattr(self, name)


def open_sqlite(path: Path) -> Store:
    """Open the file, made or brought up to the newest schema where that is needed.

    Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is none.
    """
    return cast("Store", UsageStore(path))
