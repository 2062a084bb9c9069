"""The whole store in an SQLite file, of the queries of all subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.store.sqlite.changes import Changes
from turnlog.store.sqlite.files import Files
from turnlog.store.sqlite.history import History
from turnlog.store.sqlite.runs import Runs
from turnlog.store.sqlite.sessions import Sessions
from turnlog.store.sqlite.sources import Sources
from turnlog.store.sqlite.tool_calls import ToolCalls
from turnlog.store.sqlite.turns import Turns
from turnlog.store.sqlite.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from turnlog.store.base import Store


class SqliteStore(Sessions, Turns, History, Changes, ToolCalls, Files, Runs, Sources, Usage):
    """A `Store` in an SQLite file. Any number of threads may read at once."""


if TYPE_CHECKING:
    # The type checker compares the engine with the protocol.
    _opens_a_store: Callable[[Path], Store] = SqliteStore
