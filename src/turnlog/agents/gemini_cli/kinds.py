"""Every kind of record that Gemini CLI is known to write, and what it becomes.

A kind is a message's `type`; a patch is named by what it changes: `$set/messages`, `$rewindTo`.
`docs/formats/gemini-cli.md` describes each of them, which a test compares with this table.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Becomes(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    ERROR = "error"
    CHECKPOINT = "checkpoint"
    REWIND = "rewind"
    RUN_METADATA = "run metadata"
    RECORD = "record"


KINDS: dict[str, Becomes] = {
    "user": Becomes.MESSAGE,
    "gemini": Becomes.MESSAGE,
    "error": Becomes.ERROR,
    "info": Becomes.RECORD,
    "warning": Becomes.RECORD,
    "header": Becomes.RUN_METADATA,
    "$set/messages": Becomes.CHECKPOINT,
    "$set/sessionId": Becomes.RUN_METADATA,
    "$set/summary": Becomes.RUN_METADATA,
    "$set/directories": Becomes.RUN_METADATA,
    "$set/memoryScratchpad": Becomes.RUN_METADATA,
    "$set/kind": Becomes.RUN_METADATA,
    "$set/startTime": Becomes.RUN_METADATA,
    "$set/projectHash": Becomes.RUN_METADATA,
    "$set/lastUpdated": Becomes.RUN_METADATA,
    "$rewindTo": Becomes.REWIND,
    "logs.json": Becomes.RUN_METADATA,
}

_PATCHES = tuple(kind.removeprefix("$set/") for kind in KINDS if kind.startswith("$set/"))

MESSAGE_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
"""The `type` of every record that has an id and a place in the conversation."""


def kind_of_patch(names: Collection[str]) -> str:
    """The kind of a `$set` by the fields it has: its first in the table's order, else its first."""
    return f"$set/{next((name for name in _PATCHES if name in names), min(names, default=''))}"
