"""A piece of a list. Only the shape; cursors are `store.queries.paging`."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

ItemT = TypeVar("ItemT")


class Page(NamedTuple, Generic[ItemT]):
    """A piece of a list, and where the next one begins."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page. It stays good while sessions come and go."""
    total: int | None = None
    """How many items all pages hold, where it was asked for."""
