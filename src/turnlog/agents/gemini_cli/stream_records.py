"""The shapes of what `gemini -o stream-json` prints, and what each kind of it becomes."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.gemini_cli.kinds import Becomes
from turnlog.agents.jsonl import JsonLines

STREAM_KINDS: dict[str, Becomes] = {
    "init": Becomes.RUN_METADATA,
    "message/user": Becomes.MESSAGE,
    "message/assistant": Becomes.MESSAGE,
    "tool_use": Becomes.MESSAGE,
    "tool_result": Becomes.MESSAGE,
    "error": Becomes.ERROR,
    "result": Becomes.RUN_METADATA,
}
"""Kind -> what it becomes: a line's type, of a message with its role."""

STREAM_FIELDS: dict[str, tuple[str, ...]] = {"init": ("model",), "result": ("status", "error", "stats")}
"""What events keep of their lines."""

_TYPES = frozenset(kind.partition("/")[0] for kind in STREAM_KINDS)


class StreamFailure(msgspec.Struct):
    """Why a call or a run failed."""

    type: str | None = None
    message: str | None = None


class StreamLine(msgspec.Struct):
    """A line."""

    type: str = ""
    timestamp: datetime | None = None
    session_id: str | None = None
    model: str | None = None
    role: str | None = None
    content: str | None = None
    delta: bool | None = None
    tool_name: str | None = None
    tool_id: str | None = None
    parameters: Raw | UnsetType = UNSET
    status: str | None = None
    output: str | None = None
    severity: str | None = None
    message: str | None = None
    error: StreamFailure | None = None
    stats: Raw | UnsetType = UNSET


def stream_kind(line: StreamLine) -> str:
    """A line's kind, as `STREAM_KINDS` names it."""
    return f"message/{line.role or ''}" if line.type == "message" else line.type


def _is_line(line: StreamLine) -> bool:
    return line.type in _TYPES


STREAM_LINES = JsonLines(StreamLine, first_keys=("type",), plausible=_is_line)
