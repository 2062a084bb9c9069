"""What a command did, or would do."""

from __future__ import annotations

from typing import TypedDict


class ProblemDocument(TypedDict):
    """A file, or a folder of files, that could not be read."""

    path: str
    reason: str


class SyncDocument(TypedDict):
    """`turnlog sync`."""

    sources: int
    changed: int
    vanished: int
    bytes: int
    sessions: int
    new_sessions: int
    messages: int
    diagnostics: int
    problems: list[ProblemDocument]
    seconds: float


class ImportDocument(TypedDict):
    """`turnlog import`."""

    agent: str
    version: str | None
    kind: str
    path: str
    bytes: int
    is_new: bool
    sessions: list[str]
    new_sessions: int
    messages: int
    diagnostics: int
    problems: list[ProblemDocument]
    seconds: float


class RunImportDocument(TypedDict):
    """`turnlog runs import`; the path of a problem is its place in the file."""

    runs: int
    new_runs: int
    linked: int
    histories: int
    problems: list[ProblemDocument]


class AgentHooksDocument(TypedDict):
    """One agent's hooks; in a failure `problem` says why, and nothing was changed."""

    agent: str
    path: str | None
    state: str | None
    changed: bool
    diff: str
    problem: str | None


class HooksDocument(TypedDict):
    """`turnlog hooks install`, `status` and `remove`."""

    hooks: list[AgentHooksDocument]


class RestoredFileDocument(TypedDict):
    """A file that was written, and where it lay."""

    path: str
    source: str
    size: int


class RestoreDocument(TypedDict):
    """`turnlog restore`."""

    files: list[RestoredFileDocument]


class ForgetDocument(TypedDict):
    """`turnlog forget`; `shared` says how many messages other sessions hold too and keep."""

    forgotten: bool
    session_ids: list[str]
    messages: int
    files: list[str]
    archived_bytes: int
    shared: dict[str, int]


class RebuildDocument(TypedDict):
    """`turnlog rebuild`."""

    sources: int
    messages: int
    diagnostics: int
    skipped: list[str]
    seconds: float
