"""The store in one SQLite file: the engine behind `store.base.Store`.

Each module has the queries of one subject, as methods of one class; what they return and raise is said in the protocol.
`reading` is what they share. `store` puts all of them together, `lists` those that decode no message. `forget` removes
a session for good. What writes is in `store.writing` and `store.reconcile`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from turnlog.store.sqlite.usage import UsageQueries

if TYPE_CHECKING:
    from turnlog.store.base import Store

_LARGER: Final = (("turnlog.store.sqlite.lists", "ListStore"), ("turnlog.store.sqlite.store", "SqliteStore"))


class UsageStore(UsageQueries):
    """A store of which nothing but usage was queried yet. At any other query it becomes the next larger class.

    What decodes messages takes longer to import than a usage report or a list of runs to make.
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
    """Open the file, made or brought up to the newest schema where that is needed.

    Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is none.
    """
    return cast("Store", UsageStore(path))
