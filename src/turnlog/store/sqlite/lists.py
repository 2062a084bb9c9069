"""The queries that decode no message: usage, runs, tool calls and files, for commands that list these."""

from __future__ import annotations

from turnlog.store.sqlite import UsageStore
from turnlog.store.sqlite.files import Files
from turnlog.store.sqlite.runs import Runs
from turnlog.store.sqlite.tool_calls import ToolCalls


class ListStore(Runs, ToolCalls, Files, UsageStore):
    """A store of which only lists were queried yet."""
