"""What `--json` writes, a type a command. Stable: fields are added, never renamed or given another meaning.

The same shapes as the HTTP API's where it answers the same (docs/reference/http-api.md). Sessions and events stand in
them as the model's own JSON, where what is empty or unknown is left out; elsewhere unknown is null. Times are ISO 8601
in UTC, sizes bytes, money US dollars.
"""

from __future__ import annotations

from turnlog.cli.shapes.contents import (
    AnnotationsDocument,
    FilesDocument,
    FileUseDocument,
    HitDocument,
    PlaceDocument,
    RunDocument,
    RunsDocument,
    SearchDocument,
    SessionsDocument,
    ShowDocument,
    TouchedFileDocument,
    UsageDocument,
    UsageNumbers,
    UsageRowDocument,
)
from turnlog.cli.shapes.deeds import (
    AgentHooksDocument,
    ForgetDocument,
    HooksDocument,
    ImportDocument,
    ProblemDocument,
    RebuildDocument,
    RestoredFileDocument,
    RestoreDocument,
    RunImportDocument,
    SyncDocument,
)
from turnlog.cli.shapes.machine import (
    AgentDocument,
    AgentKindDocument,
    AgentsDocument,
    AgentVersionDocument,
    DatabaseDocument,
    DiagnosticDocument,
    DoctorDocument,
    FoundAgentDocument,
    RootDocument,
    StoreDocument,
    UnknownKindDocument,
    VersionsDocument,
)

__all__ = [
    "AgentDocument",
    "AgentHooksDocument",
    "AgentKindDocument",
    "AgentVersionDocument",
    "AgentsDocument",
    "AnnotationsDocument",
    "DatabaseDocument",
    "DiagnosticDocument",
    "DoctorDocument",
    "FileUseDocument",
    "FilesDocument",
    "ForgetDocument",
    "FoundAgentDocument",
    "HitDocument",
    "HooksDocument",
    "ImportDocument",
    "PlaceDocument",
    "ProblemDocument",
    "RebuildDocument",
    "RestoreDocument",
    "RestoredFileDocument",
    "RootDocument",
    "RunDocument",
    "RunImportDocument",
    "RunsDocument",
    "SearchDocument",
    "SessionsDocument",
    "ShowDocument",
    "StoreDocument",
    "SyncDocument",
    "TouchedFileDocument",
    "UnknownKindDocument",
    "UsageDocument",
    "UsageNumbers",
    "UsageRowDocument",
    "VersionsDocument",
]
