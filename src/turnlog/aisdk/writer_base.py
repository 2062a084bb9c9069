"""What the pieces of the writer say to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from turnlog.aisdk.chunks import UIMessageChunk

FAILED: Final = "An error occurred."
"""What a client reads of an error whose text is empty or nobody's business."""

Chunks: TypeAlias = list[UIMessageChunk]

Lose: TypeAlias = Callable[[str, str], None]
"""Notes a loss at the event that is being written: feature, reason."""


class RefusedEvent(Exception):
    """An event that makes no sense where it stands."""
