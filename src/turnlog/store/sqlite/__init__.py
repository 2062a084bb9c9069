"""The store in one SQLite file: the engine behind `store.base.Store`.

Each module has the queries of one subject as methods of one class; the protocol documents what they return and raise.
`reading` is shared by all. `store` combines all of them, `lists` those that decode no message. `forget` deletes a
session. `store.writing` and `store.reconcile` write.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from turnlog.store.sqlite.spending import SpendingQueries

if TYPE_CHECKING:
    from turnlog.store.base import Store

_LARGER: Final = (
    ("turnlog.store.sqlite.usage", "UsageStore"),
    ("turnlog.store.sqlite.lists", "ListStore"),
    ("turnlog.store.sqlite.store", "SqliteStore"),
)


class SmallStore(SpendingQueries):
    """A store that has only imported the query of a status line. Any other query turns it into the next larger class.

    Importing the code that decodes messages takes longer than a usage report or a list of runs.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            for module, kind in _LARGER:
                larger = getattr(import_module(module), kind)
                if name in dir(larger):
                    self.__class__ = larger
                    return getattr(self, name)
            raise AttributeError(f"a store has no {name!r}")


def open_sqlite(path: Path) -> Store:
    """Open the file, creating or migrating it if necessary.

    Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is not a store.
    """
    return cast("Store", SmallStore(path))
