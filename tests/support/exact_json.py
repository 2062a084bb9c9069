"""JSON that a part keeps as it was written."""

from __future__ import annotations

from msgspec import Raw, UnsetType


def exact(value: Raw | UnsetType) -> bytes:
    """Its bytes; it must be there."""
    assert isinstance(value, Raw)
    return bytes(value)
