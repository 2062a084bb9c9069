"""Histories that were handed over, as plain values in which an original and its continuation are equal.

`said` is what a plan was to carry, `stored` what the store has of the session that was written.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from turnlog.handoff import HandoffPlan
from turnlog.model import FilePart, Message, TextPart, ToolCallPart
from turnlog.store.base import Store

Said = list[tuple[str, list[Any]]]


def said(plan: HandoffPlan) -> Said:
    return [_plain(message) for message in plan.conversation.messages]


def stored(store: Store, session_id: str) -> Said:
    """The messages of a session that were handed over, in order."""
    placed = store.messages(session_id)
    return [_plain(each.message) for each in placed if not each.membership.is_billed]


def own_messages(store: Store, session_id: str) -> list[Message]:
    """The messages that the session has beside those."""
    return [each.message for each in store.messages(session_id) if each.membership.is_billed]


def _plain(message: Message) -> tuple[str, list[Any]]:
    role = "assistant" if message.role == "assistant" else "user"
    return role, [_plain_part(part) for part in message.parts]


def _plain_part(part: Any) -> Any:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, FilePart):
        return part.media_type, part.data
    assert isinstance(part, ToolCallPart)
    given = part.input_text if part.input_text is not None else msgspec.json.decode(part.input or b"{}")
    content = [_plain_part(each) for result in part.results for each in result.content]
    return part.tool_name, given, [result.status for result in part.results], content


def programs(folder: Path, *names: str) -> Path:
    """A folder with programs of these names, which do nothing."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def make_databases(home: Path) -> None:
    """Empty databases of OpenCode 1.18 and of Kilo CLI, as their programs make them when they start first."""
    home.mkdir(parents=True, exist_ok=True)
    for name in ("opencode", "kilo"):
        with closing(sqlite3.connect(home / f"{name}.db")) as connection, connection:
            connection.executescript(_TABLES)


_TABLES = """
CREATE TABLE `event_sequence` (`aggregate_id` text PRIMARY KEY, `seq` integer NOT NULL, `owner_id` text);
CREATE TABLE `project` (
    `id` text PRIMARY KEY, `worktree` text NOT NULL, `vcs` text, `name` text, `icon_url` text, `icon_color` text,
    `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `time_initialized` integer,
    `sandboxes` text NOT NULL, `commands` text
);
CREATE TABLE `session` (
    `id` text PRIMARY KEY, `project_id` text NOT NULL REFERENCES `project`(`id`) ON DELETE CASCADE, `workspace_id` text,
    `parent_id` text, `slug` text NOT NULL, `directory` text NOT NULL, `path` text, `title` text NOT NULL,
    `version` text NOT NULL, `share_url` text, `summary_additions` integer, `summary_deletions` integer,
    `summary_files` integer, `summary_diffs` text, `metadata` text, `cost` real DEFAULT 0 NOT NULL,
    `tokens_input` integer DEFAULT 0 NOT NULL, `tokens_output` integer DEFAULT 0 NOT NULL,
    `tokens_reasoning` integer DEFAULT 0 NOT NULL, `tokens_cache_read` integer DEFAULT 0 NOT NULL,
    `tokens_cache_write` integer DEFAULT 0 NOT NULL, `revert` text, `permission` text, `agent` text, `model` text,
    `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `time_compacting` integer, `time_archived` integer
);
CREATE TABLE `message` (
    `id` text PRIMARY KEY, `session_id` text NOT NULL REFERENCES `session`(`id`) ON DELETE CASCADE,
    `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL
);
CREATE TABLE `part` (
    `id` text PRIMARY KEY, `message_id` text NOT NULL REFERENCES `message`(`id`) ON DELETE CASCADE,
    `session_id` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL
);
"""
