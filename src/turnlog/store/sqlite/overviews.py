"""Answers about many sessions together: tool calls, files, tokens and cost, and what there is at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.store.shapes.files import EVERY_FILE, FileFilter, FileHistory, TouchedFile
from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.tools import EVERY_TOOL_CALL, ReasoningVolume, ToolCall, ToolCallFilter, ToolUsage
from turnlog.store.shapes.usage import (
    ALL_USAGE,
    AgentSummary,
    ModelSummary,
    ProjectSummary,
    UsageBy,
    UsageFilter,
    UsageReport,
)
from turnlog.store.sqlite.snapshots import Snapshots

if TYPE_CHECKING:
    pass


class OverviewAnswers(Snapshots):
    """What `OverviewQuestions` asks."""

    def tool_calls(
        self, filter: ToolCallFilter = EVERY_TOOL_CALL, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ToolCall]:
        """A page of tool calls."""
        from turnlog.store.queries.tool_calls import load_tool_calls

        with self._snapshot() as connection:
            return load_tool_calls(connection, filter, limit, cursor)

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        """How often each tool was called, and how that ended."""
        from turnlog.store.queries.tool_calls import load_tool_usage

        with self._snapshot() as connection:
            return load_tool_usage(connection, filter)

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        """How much was thought."""
        from turnlog.store.queries.tool_calls import load_reasoning

        with self._snapshot() as connection:
            return load_reasoning(connection, session_id)

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        """What was done to a file."""
        from turnlog.store.queries.files import load_file_history

        with self._snapshot() as connection:
            return load_file_history(connection, path, changed, limit, cursor)

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """Files that calls read or changed."""
        from turnlog.store.queries.files import load_touched_files

        with self._snapshot() as connection:
            return load_touched_files(connection, filter, limit)

    def usage(self, by: UsageBy = "day", filter: UsageFilter = ALL_USAGE) -> UsageReport:
        """Tokens and cost."""
        from turnlog.store.queries.usage import load_usage

        with self._snapshot() as connection:
            return load_usage(connection, by, filter)

    def projects(self) -> list[ProjectSummary]:
        """All projects."""
        from turnlog.store.queries.sources import load_projects

        with self._snapshot() as connection:
            return load_projects(connection)

    def models(self) -> list[ModelSummary]:
        """All models."""
        from turnlog.store.queries.sources import load_models

        with self._snapshot() as connection:
            return load_models(connection)

    def agents(self) -> list[AgentSummary]:
        """All agents."""
        from turnlog.store.queries.sources import load_agents

        with self._snapshot() as connection:
            return load_agents(connection)
