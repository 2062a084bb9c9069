"""The store in one SQLite file: the engine behind `store.base.Store`.

Each module has the queries of one subject as methods of one class; the protocol documents what they return and raise.
`reading` is shared by all. `store` combines all of them, `lists` those that decode no message. `forget` deletes a
session. `store.writing` and `store.reconcile` write.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from turnlog.store.sqlite.spending import SpendingQueries

if TYPE_CHECKING:
    from turnlog.store.base import Store

_Larger: TypeAlias = tuple[str, str]
"""The module and name of a larger class."""

_USAGE: Final[_Larger] = ("turnlog.store.sqlite.usage", "UsageStore")
_LISTS: Final[_Larger] = ("turnlog.store.sqlite.lists", "ListStore")
_TRANSCRIPTS: Final[_Larger] = ("turnlog.store.sqlite.transcripts", "TranscriptStore")
_WHOLE: Final[_Larger] = ("turnlog.store.sqlite.store", "SqliteStore")

_REPORTS: Final = frozenset({"usage", "models", "agents"})
"""The queries of a `UsageStore`."""

_NEXT: Final[dict[str, tuple[_Larger, ...]]] = {
    "SmallStore": (_LISTS, _TRANSCRIPTS, _WHOLE),
    "ListStore": (_TRANSCRIPTS, _WHOLE),
    "UsageStore": (_WHOLE,),
    "TranscriptStore": (_WHOLE,),
}
"""Class -> those that have all that it has, and more."""


class SmallStore(SpendingQueries):
    """A store that has only imported the query of a status line. Any other query turns it into a larger class.

    Importing the code that decodes messages takes longer than a usage report or a list of runs.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            is_report = type(self) is SmallStore and name in _REPORTS
            for module, kind in (_USAGE,) if is_report else _NEXT[type(self).__name__]:
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
