"""A batch of the change feed: rows as they are in the tables of the store, and what their keys mean.

Keys are private to a store. A batch has its store's own keys, and for each of them a name that is the same everywhere
(`KEYS`), so whoever takes it can replace them by its own.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

Row: TypeAlias = tuple[Any, ...]
"""Integers, texts, bytes and None."""

SHAPE: Final = 1
"""The number of this shape of batches: another one for every change of a table, a column or a field."""

TABLES: Final[dict[str, tuple[str, ...]]] = {
    "owners": ("key", "user", "team", "task", "machine"),
    "projects": ("key", "path", "name", "repository_key", "worktree", "merged_key"),
    "models": ("key", "name"),
    "price_versions": ("key", "name"),
    "sources": (
        *("key", "agent", "path", "root", "kind", "session_id", "appendable", "size", "mtime_ns", "device", "inode"),
        *("generation", "cursor", "head_hash", "tail_hash", "parser_version", "lines", "vanished_at", "problem"),
        "read_at",
    ),
    "sessions": (
        *("key", "owner_key", "agent", "external_id", "native", "project_key", "title", "title_source", "cwd"),
        *("git_branch", "git_commit", "agent_version", "created_at", "updated_at", "parent_key", "relationship"),
        *("shares", "has_branches", "active_leaf", "facts_position", "turns", "messages", "prompts", "steps"),
        *("tool_calls", "failed_tool_calls", "reasoning_parts", "files", "events", "calls", "unknown_calls"),
        *("unpriced_calls", "input", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write", "output"),
        *("reasoning", "tool_prompt", "lower_bound", "cost", "reported_cost", "titles", "metadata", "project_at"),
        *("titled_at", "folder_key", "active_ms", "active_since", "active_until", "totals", "covered_calls"),
        "session_totals",
    ),
    "messages": (
        *("key", "agent", "external_id", "role", "origin", "model_key", "created_at", "completed_at", "stop_reason"),
        *("revision", "has_tool_calls", "has_reasoning", "has_files", "text_preview", "input", "cache_read"),
        *("cache_write_5m", "cache_write_1h", "cache_write", "output", "reasoning", "tool_prompt", "exactness"),
        *("cost", "reported_cost", "price_key", "billed_key", "body_size"),
    ),
    "parts": (
        *("message_key", "sequence", "type", "tool_name", "tool_kind", "tool_call_id", "tool_state", "exit_code"),
        *("path", "media_type", "spill", "text_size", "output_size", "started_at", "completed_at", "duration_ms"),
        "command",
    ),
    "more_paths": ("path", "message_key", "sequence"),
    "blobs": ("sha256", "size", "media_type", "compressed", "data"),
    "blob_uses": ("sha256", "message_key"),
    "memberships": (
        *("session_key", "position", "message_key", "source_key", "generation", "parent_id", "parent_record", "turn"),
        *("step", "fate", "fate_cause", "copied", "records", "record_ids"),
    ),
    "superseded": (
        *("session_key", "position", "message_key", "source_key", "generation", "parent_id", "turn", "step"),
        *("fate_cause", "records", "fate"),
    ),
    "events": (
        *("session_key", "position", "external_id", "type", "kind", "known", "created_at", "source_key", "generation"),
        *("length", "record_id", "parent_id", "body", "data", "start"),
    ),
    "usage": (
        *("quarter_hour", "model_key", "session_key", "is_total", "calls", "unknown_calls", "unpriced_calls", "input"),
        *("cache_read", "cache_write_5m", "cache_write_1h", "cache_write", "output", "reasoning", "tool_prompt"),
        *("lower_bound", "cost", "reported_cost", "covered_calls", "session_totals"),
    ),
    "call_totals": (
        *("tool_name", "tool_kind", "command", "model_key", "quarter_hour", "session_key", "calls", "failed"),
        *("denied", "aborted", "open", "duration_ms", "unknown_durations"),
    ),
    "edit_totals": ("path", "session_key", "quarter_hour", "edits"),
    "streams": ("session_key", "source_key"),
    "links": (
        *("child_id", "parent_id", "kind", "agent", "tool_call_id", "message_id", "inferred", "metadata"),
        *("found_call_id", "found_message_id"),
    ),
    "annotations": ("session_id", "title", "starred", "archived", "note", "tags", "pins", "changed_at"),
    "answers": ("message_id", "session_id", "log_id", "run_id"),
    "diagnostics": ("source_key", "generation", "offset", "reason", "length", "line", "json_path", "severity"),
    "generations": ("source_key", "generation", "size", "shared_prefix", "mode", "mtime_ns", "started_at"),
    "spills": ("session_id", "name", "source_key", "media_type", "size"),
    "runs": (
        *("id", "origin", "status", "agent", "session_id", "command", "cwd", "prompt", "model", "system_prompt"),
        *("created_at", "started_at", "ended_at", "exit_code", "error", "result", "log_path", "log_problem", "usage"),
        *("cost", "tool_calls", "pid", "boot_id", "process_start", "metadata"),
    ),
}
"""Table -> the columns that rows of a batch have, in their order."""

KEYS: Final[dict[str, str]] = {
    "session_key": "sessions",
    "billed_key": "sessions",
    "parent_key": "sessions",
    "message_key": "messages",
    "source_key": "sources",
    "model_key": "models",
    "price_key": "price_versions",
    "project_key": "projects",
    "folder_key": "projects",
    "repository_key": "projects",
    "merged_key": "projects",
    "owner_key": "owners",
}
"""Column -> the table whose key it has."""

OF_SOURCE: Final = ("diagnostics", "generations", "spills")
"""Tables of which a batch has all rows of a source."""

IDENTITY: Final[dict[str, tuple[str, ...]]] = {
    "owners": ("user", "team", "task", "machine"),
    "projects": ("path",),
    "models": ("name",),
    "price_versions": ("name",),
    "sources": ("path",),
    "sessions": ("agent", "external_id"),
    "messages": ("agent", "external_id"),
}
"""Table with keys -> the columns that name a row of it in every store."""

UNKNOWN_MODEL: Final = 0
"""The key of usage whose model is not known; it is no row of `models`."""


class FeedPosition(NamedTuple):
    """How far a store was read."""

    sequence: int = 0
    """All changes up to this number."""
    message_sequence: int = 0
    message_key: int = 0
    """All messages up to this number of their last change, and of those with this number up to this key."""
    read_at: int = 0
    """Sources and runs up to this time, in Unix milliseconds."""


class FeedBatch(msgspec.Struct):
    """Rows that have changed after one position, up to another."""

    after: FeedPosition
    until: FeedPosition
    has_more: bool
    """Whether there is more to read already."""
    rows: dict[str, list[Row]] = {}
    """Table -> its rows, with the columns of `TABLES`. Those of `KEYS` have the keys of the store that was read."""
    names: dict[str, dict[int, Row]] = {}
    """Table with keys -> key -> the values of `IDENTITY`, for every key in `rows`."""
    bodies: dict[int, bytes] = {}
    """Key of a message -> its body, a zstd frame."""
    complete: list[int] = []
    """Sessions all of whose changes up to `until` are here or were before. Of them there are all places: others are
    gone. One of which messages come later is complete in the batch that has the last of them."""
    whole: list[int] = []
    """Sessions of `complete` of which there are all events: others are gone."""
    billed: dict[int, int | None] = {}
    """Key of a message with a place here -> key of the session that is billed for it."""
    forgotten: list[str] = []
    """Ids of sessions that are to be forgotten."""
    withdrawn: list[str] = []
    """Ids of sessions that go, and may come again."""
    remaining: list[str] | None = None
    """Ids of all sessions that are left, where some are gone: what else was taken is to go."""
    generation: int = 0
    """A higher one than before begins again with everything."""
    copies: dict[int, bytes] = {}
    """Key of a session that another store has, too -> the ids of all its messages here (`feed.copies`)."""
    levels: dict[int, str] = {}
    """Key of a session -> its upload level, where it is not `full`."""


class ArchivedBytes(msgspec.Struct):
    """Frames of the archive of one source, in order: everything from `start` on in `generation`, and what follows."""

    path: str
    generation: int
    start: int
    frames: list[tuple[int, int, int, bytes]]
    """Generation, first byte, number of bytes, zstd frame."""


class ArchivedSizes(msgspec.Struct):
    """How much of the bytes of sources a store has."""

    ends: dict[str, tuple[int, int]]
    """Path -> its newest generation, and how many bytes of it are stored."""
