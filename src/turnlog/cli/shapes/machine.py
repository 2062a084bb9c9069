"""What is on this machine: the store, the agents and their homes, and what could not be read there."""

from __future__ import annotations

from typing import TypedDict


class DatabaseDocument(TypedDict):
    """`turnlog db path`."""

    path: str
    exists: bool


class AgentVersionDocument(TypedDict):
    """A version of an agent, and how many sessions it wrote last."""

    version: str
    sessions: int


class AgentKindDocument(TypedDict):
    """Records of an agent of a kind that is not known."""

    kind: str
    count: int


class AgentDocument(TypedDict):
    """An agent, its homes on this machine, and how much of it the store holds."""

    agent: str
    display_name: str | None
    roots: list[str]
    sources: int
    sessions: int
    subagents: int
    updated_at: str | None
    versions: list[AgentVersionDocument]
    unknown_kinds: list[AgentKindDocument]


class AgentsDocument(TypedDict):
    """`turnlog agents`."""

    items: list[AgentDocument]


class StoreDocument(TypedDict):
    """The store, as `Store.status` says."""

    path: str
    schema_version: int
    file_size: int
    sessions: int
    subagents: int
    messages: int
    sources: int
    source_bytes: int
    archive_bytes: int
    vanished: int
    unreadable: int
    diagnostics: int
    last_sync_at: str | None
    change_sequence: int


class RootDocument(TypedDict):
    """An agent's home: files found, and how many of them the store does not have as they are now.

    `retention_days`: after how many days the agent deletes its logs; null where it does not or where nobody knows.
    """

    path: str
    sources: int
    pending: int
    retention_days: int | None


class FoundAgentDocument(TypedDict):
    """An agent and its homes here."""

    agent: str
    display_name: str
    roots: list[RootDocument]


class DiagnosticDocument(TypedDict):
    """What could not be read: a file (no line), or a record of it."""

    path: str
    line: int | None
    offset: int | None
    severity: str
    reason: str


class UnknownKindDocument(TypedDict):
    """Records of a kind that this version has never heard of; they are kept as they are."""

    agent: str
    kind: str
    count: int


class VersionsDocument(TypedDict):
    """What is at work."""

    turnlog: str
    python: str
    sqlite: str
    prices: str


class DoctorDocument(TypedDict):
    """`turnlog doctor`. `search_behind`: messages that are not searchable yet; null without a store."""

    versions: VersionsDocument
    store: StoreDocument | None
    search_behind: int | None
    agents: list[FoundAgentDocument]
    diagnostics: list[DiagnosticDocument]
    diagnostics_total: int
    unknown_kinds: list[UnknownKindDocument]
    warnings: list[str]
