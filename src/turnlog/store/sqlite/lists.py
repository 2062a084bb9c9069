"""The queries that decode no message: sessions, their state, runs, tool calls, files and sources, for lists."""

from __future__ import annotations

from turnlog.store.base import check_arguments
from turnlog.store.sqlite import SmallStore
from turnlog.store.sqlite.runs import RunQueries
from turnlog.store.sqlite.sessions import SessionQueries
from turnlog.store.sqlite.sources import SourceQueries
from turnlog.store.sqlite.tool_calls import FileQueries, ToolCallQueries
from turnlog.store.sqlite.turns import TurnQueries


class ListStore(SessionQueries, TurnQueries, RunQueries, ToolCallQueries, FileQueries, SourceQueries, SmallStore):
    """A store that has only imported queries for lists."""


check_arguments(ListStore)
