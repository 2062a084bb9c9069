"""What the store holds: usage, sessions, files, runs, what a search finds, what the user said."""

from __future__ import annotations

from typing import Any, TypedDict


class UsageNumbers(TypedDict):
    """Sums over model calls, and what they do not contain."""

    calls: int
    unknown_calls: int
    unpriced_calls: int
    lower_bound_calls: int
    tokens: int
    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    cache_write: int
    output: int
    reasoning: int
    tool_prompt: int
    cost: float | None
    reported_cost: float | None


class UsageRowDocument(TypedDict):
    """One day, model, project, session, agent or subagent; `name` is null where the log does not tell."""

    name: str | None
    label: str | None
    totals: UsageNumbers


class UsageDocument(TypedDict):
    """`turnlog usage`."""

    by: str
    rows: list[UsageRowDocument]
    totals: UsageNumbers
    contains: list[str]
    missing: list[str]


class AnnotationsDocument(TypedDict):
    """`turnlog annotate`."""

    session: str
    title: str | None
    starred: bool
    archived: bool
    tags: list[str]
    note: str | None
    changed_at: str | None


class FileUseDocument(TypedDict):
    """What one session did to a file."""

    session: str
    calls: int
    edits: int
    kinds: list[str]
    first_at: str | None
    last_at: str | None


class TouchedFileDocument(TypedDict):
    """A file, and how much was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    last_at: str | None


class FilesDocument(TypedDict):
    """`turnlog files`: the sessions of the file that was named, or the files where none was."""

    sessions: list[FileUseDocument]
    files: list[TouchedFileDocument]


class RunDocument(TypedDict):
    """`turnlog runs show` and `turnlog runs link`."""

    id: str
    origin: str
    status: str
    agent: str | None
    session_id: str | None
    command: list[str]
    cwd: str | None
    prompt: str | None
    model: str | None
    system_prompt: str | None
    created_at: str | None
    started_at: str | None
    ended_at: str | None
    exit_code: int | None
    error: str | None
    result: str | None
    log_path: str | None
    log_problem: str | None
    tokens: int | None
    usage: dict[str, Any] | None
    cost: float | None
    tool_calls: int | None
    pid: int | None
    boot_id: str | None
    metadata: dict[str, Any]


class RunsDocument(TypedDict):
    """`turnlog runs`."""

    items: list[RunDocument]
    next_cursor: str | None
    total: int | None


class SessionsDocument(TypedDict):
    """`turnlog sessions`: items are the model's sessions."""

    items: list[dict[str, Any]]
    next_cursor: str | None
    total: int | None


class ShowDocument(TypedDict):
    """`turnlog show`: the model's session and history events."""

    session: dict[str, Any]
    events: list[dict[str, Any]]


class PlaceDocument(TypedDict):
    """A session that holds the message of a hit, and where."""

    session_id: str
    position: int
    title: str | None
    project: str | None


class HitDocument(TypedDict):
    """A part in which the query was found; `marks` are characters of the snippet."""

    message_id: str
    agent: str
    role: str
    sequence: int
    field: str
    tool_name: str | None
    created_at: str | None
    snippet: str
    marks: list[list[int]]
    places: list[PlaceDocument]


class SearchDocument(TypedDict):
    """`turnlog search`. `behind`: messages that are not searchable yet."""

    hits: list[HitDocument]
    next_cursor: str | None
    total: int | None
    total_is_exact: bool
    behind: int
