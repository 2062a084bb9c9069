"""What all answers are."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import msgspec

from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    InterruptEvent,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
    ToolResultEvent,
)

PlacedEvent: TypeAlias = (
    ToolResultEvent | CompactionEvent | RewindEvent | InterruptEvent | ErrorEvent | RunMetadataEvent | RecordEvent
)
"""What a session holds besides messages."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A value that only this server's clients see."""

    @classmethod
    def of(cls, value: object, **given: Any) -> Self:
        """Make it of the attributes of the same names, but for those that are given."""
        return cls(**{name: given[name] if name in given else getattr(value, name) for name in cls.__struct_fields__})
