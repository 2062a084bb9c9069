"""What every store answers: the `Store` protocol (`store.questions`), and what it asks and answers (`store.shapes`).

How it answers is `store.sqlite` and `store.queries`. Values that hold messages and sessions come from
`turnlog.model`. Importing this module imports no database and nothing of the model, so that a light question (`usage`)
starts fast.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from turnlog.store.questions.changes import ChangeQuestions
from turnlog.store.questions.messages import MessageQuestions
from turnlog.store.questions.overviews import OverviewQuestions
from turnlog.store.questions.sessions import SessionQuestions
from turnlog.store.questions.sources import SourceQuestions
from turnlog.store.shapes.changes import LONGEST_MEMORY, ChangeEntry, ChangeKind, SessionChanges, StoreStatus
from turnlog.store.shapes.files import EVERY_FILE, FileFilter, FileHistory, FileTouch, FileUse, TouchedFile
from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.runs import EVERY_RUN, RunFilter
from turnlog.store.shapes.sessions import (
    EVERY_SESSION,
    Annotations,
    AnnotationsChange,
    MessagePlace,
    OutlineEntry,
    Passage,
    PlacedMessage,
    SessionFilter,
    SessionLink,
    SessionPreview,
    SessionSort,
)
from turnlog.store.shapes.sources import (
    EVERY_DIAGNOSTIC,
    BlobContent,
    DiagnosticFilter,
    RawRecord,
    RawSource,
    SourceInfo,
    StoredDiagnostic,
)
from turnlog.store.shapes.tools import EVERY_TOOL_CALL, ReasoningVolume, ToolCall, ToolCallFilter, ToolUsage
from turnlog.store.shapes.usage import (
    ALL_USAGE,
    AgentSummary,
    ModelSummary,
    ProjectSummary,
    UsageBy,
    UsageFilter,
    UsageReport,
    UsageRow,
    UsageTotals,
)

__all__ = [
    "ALL_USAGE",
    "EVERY_DIAGNOSTIC",
    "EVERY_FILE",
    "EVERY_RUN",
    "EVERY_SESSION",
    "EVERY_TOOL_CALL",
    "LONGEST_MEMORY",
    "AgentSummary",
    "Annotations",
    "AnnotationsChange",
    "BlobContent",
    "ChangeEntry",
    "ChangeKind",
    "DiagnosticFilter",
    "FileFilter",
    "FileHistory",
    "FileTouch",
    "FileUse",
    "MessagePlace",
    "ModelSummary",
    "OutlineEntry",
    "Page",
    "Passage",
    "PlacedMessage",
    "ProjectSummary",
    "RawRecord",
    "RawSource",
    "ReasoningVolume",
    "RunFilter",
    "SessionChanges",
    "SessionFilter",
    "SessionLink",
    "SessionPreview",
    "SessionSort",
    "SourceInfo",
    "Store",
    "StoreStatus",
    "StoredDiagnostic",
    "ToolCall",
    "ToolCallFilter",
    "ToolUsage",
    "TouchedFile",
    "UsageBy",
    "UsageFilter",
    "UsageReport",
    "UsageRow",
    "UsageTotals",
]


class Store(SessionQuestions, MessageQuestions, OverviewQuestions, SourceQuestions, ChangeQuestions, Protocol):
    """A store of sessions: read by many threads at once, closed once.

    Times in answers are UTC and aware. Every method that takes the id of a session or message raises NotFoundError
    when there is none of that id, and StoreError when the database cannot be read.
    """

    def __enter__(self) -> Self:
        """The store itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        ...

    def close(self) -> None:
        """Close every connection. The store answers nothing afterwards."""
        ...
