"""Questions about many sessions together: tool calls, files, tokens and cost, and what there is at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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

if TYPE_CHECKING:
    pass


class OverviewQuestions(Protocol):
    """What a store answers about many sessions together."""

    def tool_calls(
        self,
        filter: ToolCallFilter = EVERY_TOOL_CALL,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ToolCall]:
        """Tool calls, newest first; those of one session in their order (R-S27, R-C12)."""
        ...

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        """How often each tool was called and failed, the most called first (R-S41)."""
        ...

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        """How much was thought, in one session or in all (R-S41)."""
        ...

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        """What was done to a file, told by its path, or to every file whose path ends with this one.

        A path that a session wrote without its folder is understood from the session's. `changed` leaves out calls
        that only read. An unknown path has no history. Raises ValueError for a foreign cursor.
        """
        ...

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """Files that calls read or changed, the last touched first."""
        ...

    def usage(self, by: UsageBy = "day", filter: UsageFilter = ALL_USAGE) -> UsageReport:
        """Tokens and cost, from the totals kept at every write."""
        ...

    def projects(self) -> list[ProjectSummary]:
        """All projects, the last used first."""
        ...

    def models(self) -> list[ModelSummary]:
        """All models, the most called first."""
        ...

    def agents(self) -> list[AgentSummary]:
        """All agents of which there is anything, by name."""
        ...
