"""The records of a log, and how they are decoded. Every field has a default: a log may contain anything."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines


class Tokens(msgspec.Struct):
    """Tokens of one model call."""

    input: Count | None = msgspec.field(name="in", default=None)
    output: Count | None = msgspec.field(name="out", default=None)


class Call(msgspec.Struct):
    """A tool call in an answer."""

    id: str = ""
    tool: str = ""
    input: Raw | UnsetType = UNSET


class Record(msgspec.Struct):
    """A line of a log."""

    session: str = ""
    id: str = ""
    type: str = ""
    at: datetime | None = None
    text: str = ""
    calls: list[Call] = []
    call: str = ""
    failed: bool = False
    model: str | None = None
    tokens: Tokens | None = None
    cwd: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not listed here, which a coming version may write."""


_CompleteRecord = cast(
    "type[Record]", msgspec.defstruct("_CompleteRecord", (), bases=(Record,), forbid_unknown_fields=True)
)

LINES = JsonLines(
    Record,
    first_keys=("session",),
    plausible=lambda record: bool(record.session and record.type),
    complete=_CompleteRecord,
)
"""Reads records out of lines."""
