"""The whole store in an SQLite file: the queries of all subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.store.base import Store, check_arguments
from turnlog.store.sqlite.changes import ChangeQueries
from turnlog.store.sqlite.context_growth import ContextQueries
from turnlog.store.sqlite.history import HistoryQueries
from turnlog.store.sqlite.insights import InsightQueries
from turnlog.store.sqlite.native import NativeQueries
from turnlog.store.sqlite.projects import ProjectQueries
from turnlog.store.sqlite.runs import RunQueries
from turnlog.store.sqlite.secret_places import SecretQueries
from turnlog.store.sqlite.sessions import SessionQueries
from turnlog.store.sqlite.sources import SourceQueries
from turnlog.store.sqlite.tasks import TaskQueries
from turnlog.store.sqlite.tool_calls import FileQueries, ToolCallQueries
from turnlog.store.sqlite.turns import TurnQueries
from turnlog.store.sqlite.usage import UsageQueries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class SqliteStore(
    NativeQueries,
    SessionQueries,
    TurnQueries,
    HistoryQueries,
    ChangeQueries,
    ToolCallQueries,
    FileQueries,
    InsightQueries,
    ContextQueries,
    RunQueries,
    SecretQueries,
    SourceQueries,
    ProjectQueries,
    TaskQueries,
    UsageQueries,
):
    """A `Store` in an SQLite file. Any number of threads may read at once."""


check_arguments(SqliteStore)


if TYPE_CHECKING:
    # Lets the type checker compare the engine with the protocol.
    _opens_a_store: Callable[[Path], Store] = SqliteStore
