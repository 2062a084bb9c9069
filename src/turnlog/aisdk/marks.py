"""What AI SDK said of a message or part that the canonical model has no field for: kept in `metadata["aisdk"]`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

KEY = "aisdk"


class Marks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The marks on one message, part or result."""

    metadata: Raw | UnsetType = UNSET
    """A UI message's own metadata."""
    named: bool = False
    """The call was a `tool-<name>` part."""
    ui_part: bool = False
    """The unknown part is a UI part, valid as it stands."""
    text_output: bool = False
    """The output was a string that happens to be JSON."""
    fields: dict[str, Raw] = {}
    """Keys of a UI part that nothing else stands for."""

    def to_metadata(self) -> dict[str, Any]:
        """The canonical `metadata` with these marks; empty where nothing is marked."""
        marks: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {KEY: marks} if marks else {}


class _Metadata(msgspec.Struct, frozen=True):
    aisdk: Marks = Marks()


_decoder = msgspec.json.Decoder(_Metadata)


def marks_of(metadata: Raw) -> Marks:
    """The marks in a canonical `metadata`; none where somebody else wrote something else there."""
    try:
        return _decoder.decode(metadata).aisdk
    except msgspec.ValidationError:
        return Marks()
