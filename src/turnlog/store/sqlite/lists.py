"""The queries that decode no message: usage, runs, tool calls, files and sources, for commands that list these."""

from __future__ import annotations

from turnlog.store.sqlite import UsageStore
from turnlog.store.sqlite.runs import RunQueries
from turnlog.store.sqlite.sources import SourceQueries
from turnlog.store.sqlite.tool_calls import FileQueries, ToolCallQueries


class ListStore(RunQueries, ToolCallQueries, FileQueries, SourceQueries, UsageStore):
    """A store of which only lists were queried yet."""
