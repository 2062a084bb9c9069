"""What a fold must remember, as bytes and back: kept with the cursor of its source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

StateT = TypeVar("StateT", bound=msgspec.Struct)


def codec_of(kind: type[StateT]) -> tuple[Callable[[StateT], bytes], Callable[[bytes], StateT]]:
    """How a state of this kind is written, and how what was written is read."""
    return msgspec.json.Encoder().encode, msgspec.json.Decoder(kind).decode
